// Layouts evaluated: the places of every element as typed arrays.
const Model = (() => {
  'use strict';

  // The swizzle as a function from numbers to numbers.
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
      if (extent * offsets.length > LayoutError.MOST_POINTS) throw LayoutError.tooLarge(extent * offsets.length);
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

  // The position of every element on one axis, without replicas: built up from the fastest iter.
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

  // Positions are plain numbers here, exact up to 2^53; throws LayoutError if a layout reaches farther.
  function checkReach(layout) {
    let reach = 0n;
    const absolute = (value) => (value < 0n ? -value : value);
    for (const { extent, stride } of [...layout.shard, ...layout.replica]) reach += extent * absolute(stride);
    for (const value of layout.offset.values()) reach += absolute(value);
    const { M, B, S, inner } = layout.swizzle || { M: 0, B: 0, S: 0, inner: true };
    if (reach > BigInt(Number.MAX_SAFE_INTEGER) || (!inner && M + B + S > 52)) {
      throw new LayoutError('L0112', 'positions beyond 2^53 cannot be drawn');
    }
  }

  // Every place of every element: `columns[a][e * replicas + k]` is the position on axis `a` of the k-th place, in
  // order, of element `e`; `base[a][e]` is that of its place without the replicas. Throws LayoutError if there are
  // too many places.
  function evaluate(layout) {
    const points = Layouts.size(layout);
    if (points > BigInt(LayoutError.MOST_POINTS)) throw LayoutError.tooLarge(points);
    checkReach(layout);
    const size = Number(points);
    const axes = Layouts.axes(layout);
    const offsets = replicaOffsets(layout, axes);
    const replicas = offsets.length;
    if (size * replicas > LayoutError.MOST_POINTS) throw LayoutError.tooLarge(size * replicas);
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

  // The same with its swizzle, which acts on `m`; a swizzled layout has no other axis.
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

  return { evaluate, places };
})();
