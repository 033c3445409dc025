// Suggestions for "did you mean ...?", the same as those of `tilewright_diag::nearest`.
const Nearest = (() => {
  'use strict';

  // How many characters must be inserted, deleted, replaced or exchanged with their neighbour to turn `a` into `b`;
  // between two exchanged ones, others may be inserted or deleted (Damerau-Levenshtein).
  function distance(a, b) {
    const [from, to] = [[...a], [...b]];
    const far = from.length + to.length;
    // rows[i + 1][j + 1] is the distance of the first i characters from the first j; the edges are out of reach.
    const first = [far, ...Array.from({ length: to.length + 1 }, (_, j) => j)];
    const rows = [first.map(() => far), first];
    const lastRow = new Map();
    from.forEach((character, i) => {
      const [above, row] = [rows[i + 1], [far, i + 1]];
      let lastColumn = 0;
      to.forEach((other, j) => {
        const match = lastRow.get(other) ?? 0;
        const exchanged = rows[match][lastColumn] + (i - match) + 1 + (j - lastColumn);
        const replaced = above[j + 1] + (character === other ? 0 : 1);
        row.push(Math.min(replaced, exchanged, above[j + 2] + 1, row[j + 1] + 1));
        if (character === other) lastColumn = j + 1;
      });
      rows.push(row);
      lastRow.set(character, i + 1);
    });
    return rows[from.length + 1][to.length + 1];
  }

  // The known name that was probably meant: the only one that `given` abbreviates, otherwise the closest of those that
  // are close enough and have at least half of their characters in `given`; else null. Among equally close names, those
  // that begin with `given` come first.
  function of(given, known) {
    const abbreviated = known.filter((name) => name.startsWith(given));
    if (abbreviated.length === 1 && given !== '') return abbreviated[0];
    const hasHalf = (name) => 2 * [...name].filter((letter) => given.includes(letter)).length >= name.length;
    const ranked = known.filter(hasHalf).map((name) => ({ name, edits: distance(given, name), other: name.startsWith(given) ? 0 : 1 }));
    ranked.sort((a, b) => a.edits - b.edits || a.other - b.other || (a.name < b.name ? -1 : 1));
    const [best] = ranked;
    return best && best.edits <= Math.floor(best.name.length / 3) + 1 ? best.name : null;
  }

  return { of };
})();
