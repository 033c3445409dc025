// Logical shapes of a tile.
const Shape = (() => {
  'use strict';

  // The coordinate of a flat index.
  function coordinate(shape, flat) {
    let rest = flat;
    const found = [];
    for (const extent of [...shape].reverse()) {
      found.unshift(rest % extent);
      rest = Math.floor(rest / extent);
    }
    return found;
  }

  // A shape for a layout that was given none: two dimensions, as square as the iters allow.
  function of(layout) {
    const extents = layout.shard.map((iter) => Number(iter.extent));
    const product = (list) => list.reduce((all, extent) => all * extent, 1);
    const cuts = extents.slice(1).map((_, i) => [product(extents.slice(0, i + 1)), product(extents.slice(i + 1))]);
    const longest = (shape) => Math.max(...shape);
    return cuts.reduce((best, shape) => (longest(shape) < longest(best) ? shape : best), cuts[0] || [product(extents)]);
  }

  // The extents of a shape written as `8,16`, `8x16` or `(8, 16)`; throws LayoutError.
  function parse(text) {
    const bare = text.trim().replace(/^\((.*)\)$/, '$1').trim();
    if (bare === '') return [];
    return bare.split(/\s*[,x×]\s*/).map((part) => {
      if (!/^[0-9]+$/.test(part)) throw new LayoutError('L0105', `\`${part}\` is not an extent of a shape`);
      const extent = Number(part);
      if (extent < 1) throw new LayoutError('L0102', `an extent must be at least 1, not ${extent}`);
      return extent;
    });
  }

  // The shape, if it has as many elements as the layout; throws LayoutError.
  function check(shape, size) {
    const elements = shape.reduce((product, extent) => product * extent, 1);
    if (elements === size) return shape;
    const message = `shape ${Layouts.tuple(shape)} has size ${elements}, but the layout has size ${size}`;
    throw new LayoutError('L0105', message, { legal: `extents of at least 1 whose product is ${size}` });
  }

  return { coordinate, of, parse, check };
})();
