// Layouts as values: {shard, replica, offset, swizzle}. Shard and replica are lists of {extent, stride, axis} and the
// offset a map from axis to position, all BigInt; the swizzle is {M, B, S, inner} or null. Limits and text are Rust's.
const Layouts = (() => {
  'use strict';

  const I64_MAX = (1n << 63n) - 1n;
  const I64_MIN = -(1n << 63n);
  const REACH_LIMIT = 1n << 56n;
  const MOST_ITERS = 256;

  const fitsI64 = (value) => value >= I64_MIN && value <= I64_MAX;
  const absolute = (value) => (value < 0n ? -value : value);
  const tuple = (values) => `(${values.join(',')})`;

  function overflow() {
    const legal = 'fewer than 2^56 elements, at positions below 2^56';
    return new LayoutError('L0112', "the layout's size or positions do not fit in 56 bits", { legal });
  }

  // The axes that a layout mentions, in order of name.
  function axes(layout) {
    const names = [...layout.shard, ...layout.replica].map((iter) => iter.axis);
    return [...new Set([...names, ...layout.offset.keys()])].sort();
  }

  // How many elements a layout places.
  function size(layout) {
    return layout.shard.reduce((product, iter) => product * iter.extent, 1n);
  }

  // The iters of a row-major tile on `m`.
  function rowMajor(extents) {
    let stride = 1n;
    const iters = [];
    for (const extent of [...extents].reverse()) {
      iters.unshift({ extent, stride, axis: 'm' });
      stride *= extent;
      if (!fitsI64(stride)) throw overflow();
    }
    return tile(iters, [], []).shard;
  }

  // A layout without swizzle. Sizes and the farthest positions must fit 56 bits.
  function tile(shard, replica, offsets) {
    const most = Math.max(shard.length, replica.length);
    if (most > MOST_ITERS) throw new LayoutError('L0123', `${most} iters in one bracket; the limit is ${MOST_ITERS}`);
    const offset = new Map();
    for (const { stride, axis } of offsets) {
      const sum = (offset.get(axis) || 0n) + stride;
      if (!fitsI64(sum)) throw overflow();
      offset.set(axis, sum);
    }
    for (const [axis, value] of [...offset]) if (value === 0n) offset.delete(axis);
    if (size({ shard }) >= REACH_LIMIT) throw overflow();
    const reach = new Map([...offset].map(([axis, value]) => [axis, [value, value]]));
    for (const { extent, stride, axis } of [...shard, ...replica]) {
      if (extent === 1n && absolute(stride) >= REACH_LIMIT << 4n) throw overflow();
      const far = (extent - 1n) * stride;
      const [low, high] = reach.get(axis) ?? [0n, 0n];
      reach.set(axis, far < 0n ? [low + far, high] : [low, high + far]);
    }
    if ([...reach.values()].some(([low, high]) => -low >= REACH_LIMIT || high >= REACH_LIMIT)) throw overflow();
    return { swizzle: null, shard, replica, offset };
  }

  // What is wrong with the parameters of a swizzle; null if nothing is.
  function swizzleProblem(M, B, S) {
    const fits = (value) => value >= 0n && value <= 62n;
    const written = `swizzle(M=${M},B=${B},S=${S})`;
    if (![M, B, S].every(fits) || M + B + S > 62n) return `${written} does not fit in a 62-bit address`;
    return S < B ? `${written}: S must be at least B` : null;
  }

  // Why a swizzle cannot act on a tile: {problem, axis} for an axis other than `m`, {problem, least} for a least
  // position below 0; null if it can.
  function misfit(below) {
    const axis = axes(below).find((name) => name !== 'm');
    if (axis !== undefined) return { problem: `a swizzle acts on linear memory \`m\`, not on \`${axis}\``, axis };
    const down = [...below.shard, ...below.replica].filter((iter) => iter.stride < 0n);
    const start = below.offset.get('m') || 0n;
    const least = down.reduce((sum, { extent, stride }) => sum + (extent - 1n) * stride, start);
    if (least >= 0n) return null;
    return { problem: `a swizzle needs positions that are not negative; this tile reaches ${least}`, least };
  }

  // A tile with a swizzle over it; throws LayoutError.
  function compose(layer, below) {
    const found = misfit(below);
    if (found !== null) throw new LayoutError('L0110', found.problem);
    return { ...below, swizzle: layer };
  }

  const printStride = ({ stride, axis }) => `${stride}@${axis}`;

  function printBracket(letter, iters) {
    const strides = iters.map(printStride);
    if (iters.length === 1) return `${letter}[${iters[0].extent}:${strides[0]}]`;
    return `${letter}[${tuple(iters.map((iter) => iter.extent))}:${tuple(strides)}]`;
  }

  function printSwizzle({ M, B, S, inner }) {
    return `swizzle(M=${M},B=${B},S=${S}${inner ? '' : ',inner=false'})`;
  }

  // Canonical text: axes always explicit, one `R[...]`, offsets in order of axis name.
  function print(layout) {
    const terms = [printBracket('S', layout.shard)];
    if (layout.replica.length > 0) terms.push(printBracket('R', layout.replica));
    for (const axis of [...layout.offset.keys()].sort()) terms.push(`${layout.offset.get(axis)}@${axis}`);
    const sum = terms.join(' + ');
    return layout.swizzle ? `${printSwizzle(layout.swizzle)} o ${sum}` : sum;
  }

  return {
    fitsI64, tuple, axes, size, rowMajor, tile, swizzleProblem, misfit, compose, printStride, printBracket,
    printSwizzle, print,
  };
})();
