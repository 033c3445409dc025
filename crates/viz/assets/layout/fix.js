// The nearest text that is a layout: what an invalid text was perhaps meant to be.
const Fix = (() => {
  'use strict';

  // Pieces to insert, since they are often forgotten; pieces to substitute; and the longest text that is repaired.
  const INSERTED = [']', ')', ')]', ':', '(', '[', ',', '1', 'o '];
  const REPLACED = ['[', ']', ')', '(', ':', '+', ',', ''];
  const LONGEST_MENDED = 400;

  // Small edits at the place of an error.
  function edits({ text, start, end }) {
    const [before, there, after] = [text.slice(0, start), text.slice(start, end), text.slice(end)];
    const inserted = INSERTED.map((piece) => before + piece + there + after);
    const replaced = there === '' ? [] : REPLACED.map((piece) => before + piece + after);
    const sum = there === '-' ? [`${before}+ -${after.replace(/^\p{White_Space}+/u, '')}`] : [];
    return [...sum, ...inserted, ...replaced];
  }

  // The text that the parser suggests, if that is a layout; else the first small edit that makes one; else null.
  function of(error, isLayout) {
    if (error.fix !== null && isLayout(error.fix)) return error.fix;
    if (new TextEncoder().encode(error.text).length > LONGEST_MENDED) return null;
    return edits(error).find(isLayout) ?? null;
  }

  return { of };
})();
