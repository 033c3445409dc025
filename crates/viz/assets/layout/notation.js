// The notation of layouts, read and printed: the same grammar, limits and messages as the parser in Rust.
const Notation = (() => {
  'use strict';

  const EXAMPLE = 'S[(8,4):(4@laneid,1@laneid)] + R[2:4@warpid] + 5@warpid';
  const SWIZZLE_EXAMPLE = 'swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]';
  const I64_MAX = (1n << 63n) - 1n;
  const I64_MIN = -(1n << 63n);
  const REACH_LIMIT = 1n << 56n;

  const SPACE = /\p{White_Space}*/uy;
  const INTEGER = /-?[0-9]+/y;
  const NAME = /[\p{Alphabetic}\p{N}_]+/uy;
  const NAME_START = /[\p{Alphabetic}_]/u;

  // What is wrong with a layout. `place` is {start, end, legal} for text at fault, in UTF-16 units of `text`.
  class LayoutError extends Error {
    constructor(code, message, place) {
      super(message);
      this.code = code;
      this.problem = message;
      Object.assign(this, place);
    }
  }

  const overflow = () => new LayoutError('L0112', "the layout's size does not fit 64 bits");
  const absolute = (value) => (value < 0n ? -value : value);
  const tuple = (values) => `(${values.join(',')})`;

  class Parser {
    constructor(text) {
      this.text = text;
      this.at = 0;
    }

    problem(start, end, problem) {
      const legal = this.text.trimStart().startsWith('swizzle') ? SWIZZLE_EXAMPLE : EXAMPLE;
      const character = [...this.text.slice(0, start)].length + 1;
      const error = new LayoutError('L0101', `${problem}, at character ${character} of \`${this.text}\``);
      return Object.assign(error, { problem, start, end, legal });
    }

    problemHere(expected) {
      this.skipSpace();
      const next = this.peek();
      if (next === undefined) {
        return this.problem(this.text.length, this.text.length, `expected ${expected}, but the text ends`);
      }
      return this.problem(this.at, this.at + next.length, `expected ${expected}, not \`${next}\``);
    }

    // The next character, whole even where UTF-16 needs two units for it.
    peek() {
      const code = this.text.codePointAt(this.at);
      return code === undefined ? undefined : String.fromCodePoint(code);
    }

    match(pattern) {
      pattern.lastIndex = this.at;
      const found = pattern.exec(this.text);
      return found ? found[0] : '';
    }

    skipSpace() {
      this.at += this.match(SPACE).length;
    }

    nextIs(wanted) {
      this.skipSpace();
      return this.peek() === wanted;
    }

    take(wanted) {
      const found = this.nextIs(wanted);
      if (found) this.at += wanted.length;
      return found;
    }

    expect(wanted) {
      if (!this.take(wanted)) throw this.problemHere(`\`${wanted}\``);
    }

    wordAhead(word) {
      this.skipSpace();
      return this.text.startsWith(word, this.at);
    }

    integer() {
      this.skipSpace();
      const digits = this.match(INTEGER);
      if (digits === '') throw this.problemHere('a number');
      const start = this.at;
      this.at += digits.length;
      const value = BigInt(digits);
      if (value > I64_MAX || value < I64_MIN) {
        throw this.problem(start, this.at, 'this number does not fit 64 bits');
      }
      return value;
    }

    name() {
      this.skipSpace();
      const name = this.match(NAME);
      if (name === '' || /^[0-9]/.test(name)) {
        throw this.problemHere('the name of an axis, such as `laneid` or `m`');
      }
      this.at += name.length;
      return name;
    }

    // `4@laneid`, `4` (on `m`) or `laneid` (one step).
    stride() {
      this.skipSpace();
      const next = this.peek();
      if (next !== undefined && NAME_START.test(next)) return { stride: 1n, axis: this.name() };
      const stride = this.integer();
      return { stride, axis: this.take('@') ? this.name() : 'm' };
    }

    extent() {
      this.skipSpace();
      const start = this.at;
      const extent = this.integer();
      if (extent < 1n) throw this.problem(start, this.at, 'an extent must be at least 1');
      return extent;
    }

    // `x`, `x, y` or `(x, y)`, possibly empty inside parentheses.
    list(item) {
      const parenthesised = this.take('(');
      const items = [];
      if (parenthesised && this.take(')')) return items;
      do {
        items.push(item.call(this));
      } while (this.take(',') && !(parenthesised && this.nextIs(')')));
      if (parenthesised) this.expect(')');
      return items;
    }

    // `[extents : strides]` behind `S` or `R`; without strides, row-major on `m`.
    bracket() {
      this.expect('[');
      const extents = this.list(this.extent);
      if (!this.take(':')) {
        if (!this.nextIs(']')) throw this.problemHere('`:` and strides, or `]`');
        this.expect(']');
        return rowMajor(extents);
      }
      this.skipSpace();
      const start = this.at;
      const strides = this.list(this.stride);
      if (strides.length !== extents.length) {
        throw this.problem(start, this.at, `${strides.length} strides for ${extents.length} extents`);
      }
      if (!this.nextIs(']')) throw this.problemHere('`]`');
      this.expect(']');
      return extents.map((extent, i) => ({ extent, ...strides[i] }));
    }

    iters(parts, part, letter, name) {
      const start = this.at;
      this.at += 1;
      const iters = this.bracket();
      if (parts[part]) {
        throw this.problem(start, this.at, `a second ${letter}[...]: all ${name} iters belong in one`);
      }
      parts[part] = iters;
    }

    term(parts) {
      this.skipSpace();
      const next = this.peek();
      if (next === 'S') this.iters(parts, 'shard', 'S', 'shard');
      else if (next === 'R') this.iters(parts, 'replica', 'R', 'replica');
      else if (next !== undefined && /[-0-9]/.test(next)) parts.offset.push(this.stride());
      else throw this.problemHere('S[...], R[...] or an offset such as 5@warpid');
    }

    sum() {
      const parts = { shard: null, replica: null, offset: [] };
      this.term(parts);
      while (this.take('+')) this.term(parts);
      this.skipSpace();
      if (this.at < this.text.length) throw this.problemHere('`+` or the end');
      return tile(parts.shard || [], parts.replica || [], parts.offset);
    }

    // `swizzle(M=3,B=3,S=3[,inner=false]) o`
    swizzle() {
      this.at += 'swizzle'.length;
      this.expect('(');
      const values = ['M', 'B', 'S'].map((name, position) => {
        if (position > 0) this.expect(',');
        this.expect(name);
        this.expect('=');
        return this.integer();
      });
      let inner = true;
      if (this.take(',')) {
        if (!this.wordAhead('inner=false')) throw this.problemHere('`inner=false`');
        this.at += 'inner=false'.length;
        inner = false;
      }
      this.expect(')');
      this.expect('o');
      return swizzle(...values, inner);
    }
  }

  function rowMajor(extents) {
    let stride = 1n;
    const iters = [];
    for (const extent of [...extents].reverse()) {
      iters.unshift({ extent, stride, axis: 'm' });
      stride *= extent;
      if (stride > I64_MAX) throw overflow();
    }
    return tile(iters, [], []).shard;
  }

  // A layout without swizzle. Sizes and the farthest positions must fit 56 bits.
  function tile(shard, replica, offsets) {
    const offset = new Map();
    for (const { stride, axis } of offsets) {
      const sum = (offset.get(axis) || 0n) + stride;
      if (sum > I64_MAX || sum < I64_MIN) throw overflow();
      offset.set(axis, sum);
    }
    for (const [axis, value] of [...offset]) if (value === 0n) offset.delete(axis);
    if (size({ shard }) >= REACH_LIMIT) throw overflow();
    let reach = 0n;
    for (const { extent, stride } of [...shard, ...replica]) reach += extent * absolute(stride);
    for (const value of offset.values()) reach += absolute(value);
    if (reach >= REACH_LIMIT) throw overflow();
    return { swizzle: null, shard, replica, offset };
  }

  function swizzle(M, B, S, inner) {
    const fits = (value) => value >= 0n && value <= 62n;
    const written = `swizzle(M=${M},B=${B},S=${S})`;
    if (![M, B, S].every(fits) || M + B + S > 62n) {
      throw new LayoutError('L0110', `${written} does not fit an address of 62 bits`);
    }
    if (S < B) throw new LayoutError('L0110', `${written}: S must be at least B`);
    return { M: Number(M), B: Number(B), S: Number(S), inner };
  }

  // A swizzle over a tile that lives on `m` only, at positions that are not negative.
  function compose(layer, below) {
    const foreign = axes(below).find((axis) => axis !== 'm');
    if (foreign !== undefined) {
      throw new LayoutError('L0110', `a swizzle acts on linear memory \`m\`, not on \`${foreign}\``);
    }
    let lowest = below.offset.get('m') || 0n;
    for (const { extent, stride } of [...below.shard, ...below.replica]) {
      if (stride < 0n) lowest += (extent - 1n) * stride;
    }
    if (lowest < 0n) {
      const problem = `a swizzle needs positions that are not negative; this tile reaches ${lowest}`;
      throw new LayoutError('L0110', problem);
    }
    return { ...below, swizzle: layer };
  }

  // A layout from text; throws LayoutError.
  function parse(text) {
    const parser = new Parser(text);
    const layer = parser.wordAhead('swizzle') ? parser.swizzle() : null;
    const below = parser.sum();
    return layer ? compose(layer, below) : below;
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

  function printBracket(letter, iters) {
    const strides = iters.map((iter) => `${iter.stride}@${iter.axis}`);
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

  return { LayoutError, parse, print, compose, axes, size, tuple };
})();
