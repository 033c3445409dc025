// Parses the notation of layouts, with the same grammar and messages as the parser in Rust.
const Notation = (() => {
  'use strict';

  const EXAMPLE = 'S[(8,4):(4@laneid,1@laneid)] + R[2:4@warpid] + 5@warpid';
  const SWIZZLE_EXAMPLE = 'swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]';
  const SPACE = /\p{White_Space}*/uy;
  const INTEGER = /-?[0-9]+/y;
  const NAME = /[\p{Alphabetic}\p{N}_]+/uy;
  const NAME_START = /[\p{Alphabetic}_]/u;
  const LAST_SPACE = /\p{White_Space}+$/u;

  const greater = (a, b) => (a > b ? a : b);

  // The tile, or its error reported for the text from `start` to `end`.
  function atText(parser, start, end, make) {
    try {
      return make();
    } catch (error) {
      throw error instanceof LayoutError ? parser.problem(start, end, error.problem) : error;
    }
  }

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

    // The next character, even if it takes two units of UTF-16.
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
      if (!Layouts.fitsI64(value)) throw this.problem(start, this.at, 'this number does not fit in 64 bits');
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

    // `[extents : strides]` after `S` or `R`; without strides, row-major on `m`.
    bracket() {
      const opened = this.at;
      this.expect('[');
      const extents = this.list(this.extent);
      if (!this.take(':')) {
        if (!this.nextIs(']')) throw this.problemHere('`:` and strides, or `]`');
        this.expect(']');
        return atText(this, opened, this.at, () => Layouts.rowMajor(extents));
      }
      this.skipSpace();
      const start = this.at;
      const strides = this.list(this.stride);
      if (strides.length !== extents.length) {
        const asMany = extents.map((_, i) => (i < strides.length ? Layouts.printStride(strides[i]) : '1'));
        const problem = `stride count ${strides.length} differs from extent count ${extents.length}`;
        throw this.problem(start, this.at, problem, this.with(start, this.at, Layouts.tuple(asMany)));
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
      const merged = Layouts.printBracket(letter, [...first.iters, ...iters]);
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
      const make = () => Layouts.tile(iters(parts.shard), iters(parts.replica), parts.offset);
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
      const problem = Layouts.swizzleProblem(M, B, S);
      if (problem === null) return { M: Number(M), B: Number(B), S: Number(S), inner };
      const nearest = { M: greater(M, 0n), B: greater(B, 0n), S: greater(S, B), inner };
      throw this.problem(start, end, problem, this.with(start, end, Layouts.printSwizzle(nearest)));
    }
  }

  // Where a whole word stands in a text; the whole text if it does not.
  function wordIn(text, word) {
    const found = [...text.matchAll(new RegExp(word, 'gu'))].map((match) => match.index).find((start) => {
      const [before, after] = [text.slice(0, start), text.slice(start + word.length)];
      return !/[\p{Alphabetic}\p{N}_]$/u.test(before) && !/^[\p{Alphabetic}\p{N}_]/u.test(after);
    });
    return found === undefined ? [0, text.length] : [found, found + word.length];
  }

  // A layout from text; errors have the fix that the parser suggests, not yet checked.
  function read(text) {
    const parser = new Parser(text);
    const layer = parser.wordAhead('swizzle') ? parser.swizzle() : null;
    const below = parser.sum();
    if (!layer) return below;
    const found = Layouts.misfit(below);
    if (found === null) return { ...below, swizzle: layer };
    const { problem, axis, least } = found;
    if (axis === undefined) throw parser.problem(0, text.length, problem, `${text} + ${-least}`);
    throw parser.problem(...wordIn(text, axis), problem, text.replaceAll(`@${axis}`, '@m'));
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

  // A layout from text; throws LayoutError.
  function parse(text) {
    try {
      return read(text);
    } catch (error) {
      if (error instanceof LayoutError && error.start !== undefined) error.fix = Fix.of(error, isLayout);
      throw error;
    }
  }

  return { parse };
})();
