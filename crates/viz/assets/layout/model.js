// Layouts evaluated: the places of every element as typed arrays, and the elements of every owner and slot.
const Model = (() => {
  'use strict';

  // The most places that are enumerated, as in Rust.
  const ENUMERATION_LIMIT = 2 ** 22;
  // Axes from the outermost owner to the innermost; a name that is not here is the user's own, and outermost.
  const ORDER = [
    'gpuid_x', 'gpuid_y', 'gpuid_z', 'bx', 'by', 'bz', 'cbx', 'cby', 'cbz', 'wgid', 'warpid', 'wid_in_wg', 'tx',
    'tid_in_wg', 'laneid', 'Bank', 'P', 'TLane', 'F', 'TCol', 'm', 'reg',
  ];
  // Axes that count elements inside an owner.
  const SLOT_AXES = ['F', 'TCol', 'm', 'reg'];
  // Thread axes and the threads that one step of theirs moves.
  const THREAD_STEP = { tx: 1, laneid: 1, tid_in_wg: 1, warpid: 32, wid_in_wg: 32, wgid: 128 };
  // Threads that a CTA can have (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
  const MOST_THREADS = 1024;
  const LETTERS = {
    laneid: 'T', tx: 'T', tid_in_wg: 'T', warpid: 'w', wid_in_wg: 'w', wgid: 'wg', TLane: 'L', TCol: 'C', gpuid_x: 'x',
    gpuid_y: 'y', gpuid_z: 'z', m: 'm', reg: 'r',
  };

  function tooLarge(points) {
    const message = `this needs ${points} points, more than the ${ENUMERATION_LIMIT} that may be enumerated`;
    return new Notation.LayoutError('L0111', message);
  }

  // A copy of the swizzle that takes and gives plain numbers.
  function swizzler({ M, B, S, inner }) {
    if (M + B + S <= 30) {
      const mask = (1 << B) - 1;
      const narrow = inner
        ? (address) => address ^ (((address >> (M + S)) & mask) << M)
        : (address) => address ^ (((address >> M) & mask) << (M + S));
      const wide = swizzlerOf64(M, B, S, inner);
      return (address) => (address < 2 ** 31 ? narrow(address) : wide(address));
    }
    return swizzlerOf64(M, B, S, inner);
  }

  function swizzlerOf64(M, B, S, inner) {
    const mask = (1n << BigInt(B)) - 1n;
    const [low, high] = [BigInt(M), BigInt(M + S)];
    const [from, to] = inner ? [high, low] : [low, high];
    return (address) => {
      const wide = BigInt(address);
      return Number(wide ^ (((wide >> from) & mask) << to));
    };
  }

  // The distinct offsets of the replicas, in order, one position per axis.
  function replicaOffsets(layout, axes) {
    let offsets = [axes.map(() => 0)];
    for (const iter of layout.replica) {
      const [extent, stride, at] = [Number(iter.extent), Number(iter.stride), axes.indexOf(iter.axis)];
      if (extent * offsets.length > ENUMERATION_LIMIT) throw tooLarge(extent * offsets.length);
      const seen = new Map();
      for (const offset of offsets) {
        for (let k = 0; k < extent; k++) {
          const moved = offset.slice();
          moved[at] += k * stride;
          seen.set(moved.join(), moved);
        }
      }
      offsets = [...seen.values()];
    }
    return offsets.sort(byPosition);
  }

  function byPosition(a, b) {
    const at = a.findIndex((value, i) => value !== b[i]);
    return at < 0 ? 0 : a[at] - b[at];
  }

  // The position of every element on one axis, replicas left out: built from the fastest iter up.
  function baseColumn(layout, axis, size) {
    const column = new Float64Array(size);
    column[0] = Number(layout.offset.get(axis) || 0n);
    let filled = 1;
    for (const iter of [...layout.shard].reverse()) {
      const step = iter.axis === axis ? Number(iter.stride) : 0;
      const extent = Number(iter.extent);
      for (let digit = 1; digit < extent; digit++) {
        const [at, add] = [digit * filled, digit * step];
        for (let i = 0; i < filled; i++) column[at + i] = column[i] + add;
      }
      filled *= extent;
    }
    return column;
  }

  // Positions are plain numbers here, exact up to 2^53; throws LayoutError where a layout reaches farther.
  function checkReach(layout) {
    let reach = 0n;
    const absolute = (value) => (value < 0n ? -value : value);
    for (const { extent, stride } of [...layout.shard, ...layout.replica]) reach += extent * absolute(stride);
    for (const value of layout.offset.values()) reach += absolute(value);
    const { M, B, S, inner } = layout.swizzle || { M: 0, B: 0, S: 0, inner: true };
    if (reach > BigInt(Number.MAX_SAFE_INTEGER) || (!inner && M + B + S > 52)) {
      throw new Notation.LayoutError('L0112', 'positions beyond 2^53 cannot be drawn');
    }
  }

  // Every place of every element: `columns[a][e * replicas + k]` is the position on axis `a` of the k-th place, in
  // order, of element `e`; `base[a][e]` is that of its place without the replicas. Throws LayoutError where there are too
  // many places.
  function evaluate(layout) {
    const points = Notation.size(layout);
    if (points > BigInt(ENUMERATION_LIMIT)) throw tooLarge(points);
    checkReach(layout);
    const size = Number(points);
    const axes = Notation.axes(layout);
    const offsets = replicaOffsets(layout, axes);
    const replicas = offsets.length;
    if (size * replicas > ENUMERATION_LIMIT) throw tooLarge(size * replicas);
    const base = axes.map((axis) => baseColumn(layout, axis, size));
    const copied = (column, a) => repeated(column, offsets.map((offset) => offset[a]));
    const columns = replicas === 1 ? base : base.map(copied);
    const plain = { layout, size, axes, replicas, base, columns };
    return layout.swizzle ? swizzled(plain) : plain;
  }

  // A column with a place for every offset of the replicas.
  function repeated(column, offsets) {
    const places = new Float64Array(column.length * offsets.length);
    for (let e = 0, p = 0; e < column.length; e++) {
      for (let k = 0; k < offsets.length; k++) places[p++] = column[e] + offsets[k];
    }
    return places;
  }

  // The same with its swizzle. It acts on `m`, and there is no other axis then.
  function swizzled(model) {
    const { layout, replicas } = model;
    const swizzle = swizzler(layout.swizzle);
    const permuted = (column) => column.map((address) => swizzle(address));
    const [base, columns] = [model.base.map(permuted), model.columns.map(permuted)];
    for (const column of columns) {
      for (let p = 0; p < column.length; p += replicas) column.subarray(p, p + replicas).sort();
    }
    return { ...model, base, columns };
  }

  // The places of an element as objects, axis to position, in order.
  function places(model, flat) {
    const found = [];
    for (let k = 0; k < model.replicas; k++) {
      const p = flat * model.replicas + k;
      found.push(Object.fromEntries(model.axes.map((axis, a) => [axis, model.columns[a][p]])));
    }
    return found;
  }

  const rank = (axis) => ORDER.indexOf(axis);
  const byRank = (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1);

  // The positions of one axis that are worth a row: all between the least and the greatest where most are in use.
  function axisRange(name, column) {
    let [least, greatest] = [Infinity, -Infinity];
    for (const position of column) {
      if (position < least) least = position;
      if (position > greatest) greatest = position;
    }
    const extent = greatest - least + 1;
    if (extent <= Math.max(64, 4 * column.length)) {
      return { name, extent, at: (i) => least + i, find: (position) => position - least, dense: true };
    }
    const used = [...new Set(column)].sort((a, b) => a - b);
    const index = new Map(used.map((position, i) => [position, i]));
    return { name, extent: used.length, at: (i) => used[i], find: (position) => index.get(position), dense: false };
  }

  // Rows and columns of a table by owner (threads, lanes, devices) and slot (memory, registers): for every place its
  // cell, for every cell its elements. Throws LayoutError where the table would have too many cells.
  function hardware(model) {
    const order = model.axes.slice().sort(byRank);
    const range = (axis) => axisRange(axis, model.columns[model.axes.indexOf(axis)]);
    const ownerAxes = order.filter((axis) => !SLOT_AXES.includes(axis)).map(range);
    const slotAxes = order.filter((axis) => SLOT_AXES.includes(axis)).map(range);
    const count = (ranges) => ranges.reduce((product, range) => product * range.extent, 1);
    nameShort([...ownerAxes, ...slotAxes]);
    const [owners, slots] = [count(ownerAxes), count(slotAxes)];
    if (owners * slots > ENUMERATION_LIMIT) throw tooLarge(owners * slots);
    const cells = new Int32Array(model.size * model.replicas);
    for (const range of [...ownerAxes, ...slotAxes]) {
      const column = model.columns[model.axes.indexOf(range.name)];
      for (let p = 0; p < cells.length; p++) cells[p] = cells[p] * range.extent + range.find(column[p]);
    }
    return { model, ownerAxes, slotAxes, owners, slots, cells, ...byCell(cells, owners * slots, model.replicas) };
  }

  // The elements of cell `c` are `elements[start[c] .. start[c + 1]]`, in order.
  function byCell(cells, count, replicas) {
    const start = new Int32Array(count + 1);
    for (const cell of cells) start[cell + 1] += 1;
    for (let c = 0; c < count; c++) start[c + 1] += start[c];
    const next = start.slice();
    const elements = new Int32Array(cells.length);
    for (let p = 0; p < cells.length; p++) elements[next[cells[p]]++] = Math.floor(p / replicas);
    return { start, elements };
  }

  function elementsOfCell(table, cell) {
    return [...new Set(table.elements.subarray(table.start[cell], table.start[cell + 1]))];
  }

  // True when different elements never share a place.
  function isInjective(table) {
    for (let c = 0; c + 1 < table.start.length; c++) {
      for (let i = table.start[c] + 1; i < table.start[c + 1]; i++) {
        if (table.elements[i] !== table.elements[i - 1]) return false;
      }
    }
    return true;
  }

  const isThreadAxis = (axis) => axis in THREAD_STEP;

  // Gives each axis its sign in short labels: a letter, or `axis=` where another has the same. In a fragment without
  // `reg`, `m` counts registers.
  function nameShort(ranges) {
    const names = ranges.map((range) => range.name);
    const registers = names.some(isThreadAxis) && !names.includes('reg');
    const letters = names.map((name) => (name === 'm' && registers ? 'r' : LETTERS[name]));
    ranges.forEach((range, i) => {
      const alone = letters[i] && letters.filter((letter) => letter === letters[i]).length === 1;
      range.sign = alone ? letters[i] : `${range.name}=`;
    });
  }

  // The positions, one per range, that an index over the ranges stands for: `[{name, sign, position}, ..]`.
  function positions(ranges, index) {
    let rest = index;
    const found = [];
    for (const range of [...ranges].reverse()) {
      found.unshift({ name: range.name, sign: range.sign, position: range.at(rest % range.extent) });
      rest = Math.floor(rest / range.extent);
    }
    return found;
  }

  // The index over the ranges of positions given by name; -1 if there is no such row.
  function indexOf(ranges, wanted) {
    let index = 0;
    for (const range of ranges) {
      const i = range.find(wanted[range.name]);
      if (!(i >= 0 && i < range.extent)) return -1;
      index = index * range.extent + i;
    }
    return index;
  }

  const longText = (found) => found.map(({ name, position }) => `${name} ${position}`).join(', ');
  const shortText = (found) => found.map(({ sign, position }) => sign + position).join(' ');

  // The table by thread and register that conversions and accesses work on: `element[t * registers + r]`, -1 for none,
  // and the cell of every place. Throws LayoutError where the layout is not a fragment.
  function fragment(model) {
    const refuse = (problem) => new Notation.LayoutError('L0113', `this is not a register fragment: ${problem}`);
    const isUsed = (a) => model.columns[a].some((position) => position !== 0);
    const foreign = model.axes.find((axis, a) => !isThreadAxis(axis) && axis !== 'm' && axis !== 'reg' && isUsed(a));
    if (foreign !== undefined) throw refuse(`\`${foreign}\` is not an axis of a register fragment`);
    const count = model.size * model.replicas;
    const [thread, register] = [new Float64Array(count), new Float64Array(count)];
    model.axes.forEach((axis, a) => {
      const [sum, step] = isThreadAxis(axis) ? [thread, THREAD_STEP[axis]] : [register, 1];
      for (let p = 0; p < count; p++) sum[p] += model.columns[a][p] * step;
    });
    const threads = span(thread, MOST_THREADS, 'threads', refuse);
    const registers = span(register, Infinity, 'registers', refuse);
    if (threads * registers > ENUMERATION_LIMIT) throw tooLarge(threads * registers);
    const element = new Int32Array(threads * registers).fill(-1);
    const cells = new Int32Array(count);
    for (let p = 0; p < count; p++) {
      const [cell, held] = [thread[p] * registers + register[p], Math.floor(p / model.replicas)];
      if (element[cell] >= 0 && element[cell] !== held) {
        throw refuse(`register ${register[p]} of thread ${thread[p]} holds the elements ${element[cell]} and ${held}`);
      }
      cells[p] = cell;
      element[cell] = held;
    }
    return { threads, registers, element, cells, model };
  }

  function span(column, most, what, refuse) {
    let [least, greatest] = [0, 0];
    for (const position of column) {
      least = Math.min(least, position);
      greatest = Math.max(greatest, position);
    }
    if (least < 0 || greatest >= most) throw refuse(`${what} ${least} to ${greatest}`);
    return greatest + 1;
  }

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
  function shapeOf(layout) {
    const extents = layout.shard.map((iter) => Number(iter.extent));
    const product = (list) => list.reduce((all, extent) => all * extent, 1);
    const cuts = extents.slice(1).map((_, i) => [product(extents.slice(0, i + 1)), product(extents.slice(i + 1))]);
    const longest = (shape) => Math.max(...shape);
    return cuts.reduce((best, shape) => (longest(shape) < longest(best) ? shape : best), cuts[0] || [product(extents)]);
  }

  // The extents of a shape written as `8,16`, `8x16` or `(8, 16)`; throws LayoutError.
  function parseShape(text) {
    const bare = text.trim().replace(/^\((.*)\)$/, '$1').trim();
    if (bare === '') return [];
    return bare.split(/\s*[,x×]\s*/).map((part) => {
      if (!/^[0-9]+$/.test(part)) throw new Notation.LayoutError('L0105', `\`${part}\` is no extent of a shape`);
      const extent = Number(part);
      if (extent < 1) throw new Notation.LayoutError('L0102', `an extent must be at least 1, not ${extent}`);
      return extent;
    });
  }

  // The shape, if it has as many elements as the layout; throws LayoutError.
  function checkShape(shape, size) {
    const elements = shape.reduce((product, extent) => product * extent, 1);
    if (elements === size) return shape;
    const message = `shape ${Notation.tuple(shape)} has ${elements} elements, the layout ${size}`;
    throw new Notation.LayoutError('L0105', message, { legal: `extents of at least 1 whose product is ${size}` });
  }

  return {
    ENUMERATION_LIMIT, ORDER, isThreadAxis, evaluate, places, hardware, fragment, elementsOfCell, isInjective,
    positions, indexOf, longText, shortText, coordinate, shapeOf, parseShape, checkShape,
  };
})();
