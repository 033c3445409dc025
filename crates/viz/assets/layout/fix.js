// The nearest text that is a layout: what an invalid text was perhaps meant to be.
const Fix = (() => {
  'use strict';

  // Pieces to insert, since they are often forgotten; pieces to substitute; and the longest text that is repaired.
  const INSERTED = [']', ')', ')]', ':', '(', '[', ',', '1', 'o '];
  const REPLACED = ['[', ']', ')', '(', ':', '+', ',', ''];
  const LONGEST_MENDED = 400;

  // The text with brackets around iters that are written without them: `S(8,4):(4,1)`, and `(8,4):(4,1)` as in CuTe.
  function bracketed(text) {
    const at = text.indexOf(' o ');
    const [before, sum] = at < 0 ? ['', text] : [text.slice(0, at + 3), text.slice(at + 3)];
    const trimmed = (part) => part.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '');
    const term = (part) => {
      const inner = trimmed(part);
      if (inner.includes('[') || !/[(:]/.test(inner)) return inner;
      return /^[SR]/.test(inner) ? `${inner[0]}[${trimmed(inner.slice(1))}]` : `S[${inner}]`;
    };
    return before + sum.split('+').map(term).join(' + ');
  }

  // Small edits at the place of an error.
  function edits({ text, start, end }) {
    const [before, there, after] = [text.slice(0, start), text.slice(start, end), text.slice(end)];
    const inserted = INSERTED.map((piece) => before + piece + there + after);
    const replaced = there === '' ? [] : REPLACED.map((piece) => before + piece + after);
    const sum = there === '-' ? [`${before}+ -${after.replace(/^\p{White_Space}+/u, '')}`] : [];
    return [...sum, ...inserted, ...replaced];
  }

  // The text that the parser suggests, if that is a layout; else the text with the missing brackets, or the first small
  // edit that gives a layout; else null.
  function of(error, isLayout) {
    if (error.fix !== null && isLayout(error.fix)) return error.fix;
    if (new TextEncoder().encode(error.text).length > LONGEST_MENDED) return null;
    return [bracketed(error.text), ...edits(error)].find(isLayout) ?? null;
  }

  return { of };
})();
