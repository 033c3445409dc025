// The notation of layouts, read and printed: the same grammar, limits and messages as the parser in Rust.
const Notation = (() => {
  'use strict';

  const EXAMPLE = 'S[(8,4):(4@laneid,1@laneid)] + R[2:4@warpid] + 5@warpid';
  const SWIZZLE_EXAMPLE = 'swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]';
  const I64_MAX = (1n << 63n) - 1n;
  const I64_MIN = -(1n << 63n);
  const REACH_LIMIT = 1n << 56n;
  const MOST_ITERS = 256;

  // What is often forgotten, and what stands where something else should; longer texts are not mended.
  const INSERTED = [']', ')', ')]', ':', '(', '[', ',', '1', 'o '];
  const REPLACED = ['[', ']', ')', '(', ':', '+', ',', ''];
  const LONGEST_MENDED = 400;

  const SPACE = /\p{White_Space}*/uy;
  const INTEGER = /-?[0-9]+/y;
  const NAME = /[\p{Alphabetic}\p{N}_]+/uy;
  const NAME_START = /[\p{Alphabetic}_]/u;
  const LAST_SPACE = /\p{White_Space}+$/u;

  // What is wrong with a layout, and what would be `legal`. For a text also where in it, from `start` to `end` in
  // UTF-16 units, and the `fix`: the nearest text that is a layout, where there is an obvious one.
  class LayoutError extends Error {
    constructor(code, message, details) {
      super(message);
      this.code = code;
      this.problem = message;
      Object.assign(this, details);
    }
  }

  function overflow() {
    const legal = 'fewer than 2^56 elements, at positions below 2^56';
    return new LayoutError('L0112', "the layout's size or positions do not fit 56 bits", { legal });
  }

  // The tile, or its error told as one of the text from `start` to `end`.
  function atText(parser, start, end, make) {
    try {
      return make();
    } catch (error) {
      throw error instanceof LayoutError ? parser.problem(start, end, error.problem) : error;
    }
  }

  const greater = (a, b) => (a > b ? a : b);
  const absolute = (value) => (value < 0n ? -value : value);
  const tuple = (values) => `(${values.join(',')})`;

  class Parser {
    constructor(text) {
      this.text = text;
      this.at = 0;
    }

    // What is wrong from `start` to `end`; `fix` is the text that was perhaps meant.
    problem(start, end, problem, fix = null) {
      const example = /^\p{White_Space}*swizzle/u.test(this.text) ? SWIZZLE_EXAMPLE : EXAMPLE;
      const character = [...this.text.slice(0, start)].length + 1;
      const message = `${problem}, at character ${character} of \`${this.text}\``;
      return new LayoutError('L0101', message, { text: this.text, problem, start, end, example, fix });
    }

    // The text with another part from `start` to `end`.
    with(start, end, part) {
      return this.text.slice(0, start) + part + this.text.slice(end);
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
      if (extent < 1n) {
        throw this.problem(start, this.at, 'an extent must be at least 1', this.with(start, this.at, '1'));
      }
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
      const opened = this.at;
      this.expect('[');
      const extents = this.list(this.extent);
      if (!this.take(':')) {
        if (!this.nextIs(']')) throw this.problemHere('`:` and strides, or `]`');
        this.expect(']');
        return atText(this, opened, this.at, () => rowMajor(extents));
      }
      this.skipSpace();
      const start = this.at;
      const strides = this.list(this.stride);
      if (strides.length !== extents.length) {
        const asMany = extents.map((_, i) => (i < strides.length ? printStride(strides[i]) : '1'));
        const problem = `${strides.length} strides for ${extents.length} extents`;
        throw this.problem(start, this.at, problem, this.with(start, this.at, tuple(asMany)));
      }
      if (!this.nextIs(']')) throw this.problemHere('`]`');
      this.expect(']');
      return extents.map((extent, i) => ({ extent, ...strides[i] }));
    }

    // `S[...]` or `R[...]`, of which there may be one each.
    iters(parts, part, letter) {
      const start = this.at;
      this.at += 1;
      const iters = this.bracket();
      const first = parts[part];
      if (!first) {
        parts[part] = { iters, start, end: this.at };
        return;
      }
      const merged = printBracket(letter, [...first.iters, ...iters]);
      const trimmed = this.text.slice(first.end, start).replace(LAST_SPACE, '');
      const between = trimmed.replace(/\++$/, '').replace(LAST_SPACE, '');
      const fix = this.text.slice(0, first.start) + merged + between + this.text.slice(this.at);
      throw this.problem(start, this.at, `a second ${letter}[...]: all ${part} iters belong in one`, fix);
    }

    term(parts) {
      this.skipSpace();
      const next = this.peek();
      if (next === 'S') this.iters(parts, 'shard', 'S');
      else if (next === 'R') this.iters(parts, 'replica', 'R');
      else if (next !== undefined && /[-0-9]/.test(next)) parts.offset.push(this.stride());
      else throw this.problemHere('S[...], R[...] or an offset such as 5@warpid');
    }

    sum() {
      const parts = { shard: null, replica: null, offset: [] };
      this.term(parts);
      while (this.take('+')) this.term(parts);
      this.skipSpace();
      if (this.at < this.text.length) throw this.problemHere('`+` or the end');
      const iters = (part) => (part ? part.iters : []);
      const make = () => tile(iters(parts.shard), iters(parts.replica), parts.offset);
      return atText(this, 0, this.text.length, make);
    }

    // `swizzle(M=3,B=3,S=3[,inner=false]) o`
    swizzle() {
      const start = this.at;
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
      const end = this.at;
      this.expect('o');
      const [M, B, S] = values;
      const problem = swizzleProblem(M, B, S);
      if (problem === null) return { M: Number(M), B: Number(B), S: Number(S), inner };
      const nearest = { M: greater(M, 0n), B: greater(B, 0n), S: greater(S, B), inner };
      throw this.problem(start, end, problem, this.with(start, end, printSwizzle(nearest)));
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
    const most = Math.max(shard.length, replica.length);
    if (most > MOST_ITERS) throw new LayoutError('L0123', `${most} iters in one bracket, more than ${MOST_ITERS}`);
    const offset = new Map();
    for (const { stride, axis } of offsets) {
      const sum = (offset.get(axis) || 0n) + stride;
      if (sum > I64_MAX || sum < I64_MIN) throw overflow();
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

  // What is wrong with the parameters of a swizzle; null where nothing is.
  function swizzleProblem(M, B, S) {
    const fits = (value) => value >= 0n && value <= 62n;
    const written = `swizzle(M=${M},B=${B},S=${S})`;
    if (![M, B, S].every(fits) || M + B + S > 62n) return `${written} does not fit an address of 62 bits`;
    return S < B ? `${written}: S must be at least B` : null;
  }

  // The axis of a tile that no swizzle can act on; undefined where there is none.
  const foreignAxis = (below) => axes(below).find((axis) => axis !== 'm');
  const foreignProblem = (axis) => `a swizzle acts on linear memory \`m\`, not on \`${axis}\``;
  const negativeProblem = (least) => `a swizzle needs positions that are not negative; this tile reaches ${least}`;

  // The least position on `m`.
  function leastOf(below) {
    const down = [...below.shard, ...below.replica].filter((iter) => iter.stride < 0n);
    return down.reduce((least, { extent, stride }) => least + (extent - 1n) * stride, below.offset.get('m') || 0n);
  }

  // A swizzle over a tile that lives on `m` only, at positions that are not negative; throws LayoutError.
  function compose(layer, below) {
    const foreign = foreignAxis(below);
    if (foreign !== undefined) throw new LayoutError('L0110', foreignProblem(foreign));
    const least = leastOf(below);
    if (least < 0n) throw new LayoutError('L0110', negativeProblem(least));
    return { ...below, swizzle: layer };
  }

  // Where a whole word stands in a text; the whole text if it does not.
  function wordIn(text, word) {
    const found = [...text.matchAll(new RegExp(word, 'gu'))].map((match) => match.index).find((start) => {
      const [before, after] = [text.slice(0, start), text.slice(start + word.length)];
      return !/[\p{Alphabetic}\p{N}_]$/u.test(before) && !/^[\p{Alphabetic}\p{N}_]/u.test(after);
    });
    return found === undefined ? [0, text.length] : [found, found + word.length];
  }

  // A layout from text; errors have the fix that the parser thinks of, not yet checked.
  function read(text) {
    const parser = new Parser(text);
    const layer = parser.wordAhead('swizzle') ? parser.swizzle() : null;
    const below = parser.sum();
    if (!layer) return below;
    const foreign = foreignAxis(below);
    if (foreign !== undefined) {
      throw parser.problem(...wordIn(text, foreign), foreignProblem(foreign), text.replaceAll(`@${foreign}`, '@m'));
    }
    const least = leastOf(below);
    if (least < 0n) throw parser.problem(0, text.length, negativeProblem(least), `${text} + ${-least}`);
    return { ...below, swizzle: layer };
  }

  function isLayout(text) {
    try {
      read(text);
      return true;
    } catch (error) {
      if (error instanceof LayoutError) return false;
      throw error;
    }
  }

  // Small edits at the place of an error.
  function edits({ text, start, end }) {
    const [before, there, after] = [text.slice(0, start), text.slice(start, end), text.slice(end)];
    const inserted = INSERTED.map((piece) => before + piece + there + after);
    const replaced = there === '' ? [] : REPLACED.map((piece) => before + piece + after);
    const sum = there === '-' ? [`${before}+ -${after.replace(/^\p{White_Space}+/u, '')}`] : [];
    return [...sum, ...inserted, ...replaced];
  }

  // The text that the parser thinks was meant if that is a layout, else the first small edit that makes one, else null.
  function fixOf(error) {
    if (error.fix !== null && isLayout(error.fix)) return error.fix;
    if (new TextEncoder().encode(error.text).length > LONGEST_MENDED) return null;
    return edits(error).find(isLayout) ?? null;
  }

  // A layout from text; throws LayoutError.
  function parse(text) {
    try {
      return read(text);
    } catch (error) {
      if (error instanceof LayoutError && error.start !== undefined) error.fix = fixOf(error);
      throw error;
    }
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

  return { LayoutError, parse, print, compose, axes, size, tuple };
})();
