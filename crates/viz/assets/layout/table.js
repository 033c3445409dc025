// A layout as a table by owner and slot: the cell of every place, and the elements of every cell.
const Table = (() => {
  'use strict';

  // The positions of one axis that get a row: all from the least to the greatest if most are in use, else those used.
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
  // cell, for every cell its elements. Throws LayoutError if the table would have too many cells.
  function of(model) {
    const order = Axes.sorted(model.axes);
    const [owning, held] = [order.filter((axis) => !Axes.isSlot(axis)), order.filter(Axes.isSlot)];
    const signs = Axes.signs([...owning, ...held]);
    const range = (axis, at) => ({ ...axisRange(axis, model.columns[model.axes.indexOf(axis)]), sign: signs[at] });
    const ownerAxes = owning.map(range);
    const slotAxes = held.map((axis, at) => range(axis, owning.length + at));
    const count = (ranges) => ranges.reduce((product, { extent }) => product * extent, 1);
    const [owners, slots] = [count(ownerAxes), count(slotAxes)];
    if (owners * slots > LayoutError.MOST_POINTS) throw LayoutError.tooLarge(owners * slots);
    const cells = new Int32Array(model.size * model.replicas);
    for (const { name, extent, find } of [...ownerAxes, ...slotAxes]) {
      const column = model.columns[model.axes.indexOf(name)];
      for (let p = 0; p < cells.length; p++) cells[p] = cells[p] * extent + find(column[p]);
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

  function elementsIn(table, cell) {
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

  // The positions, one per range, that an index over the ranges represents: `[{name, sign, position}, ..]`.
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

  return { of, elementsIn, isInjective, positions, indexOf, longText, shortText };
})();
