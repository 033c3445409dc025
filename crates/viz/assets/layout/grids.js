// Grids to draw, from evaluated layouts: the tensor, its hardware (owners and slots), and the banks of shared memory.
// Besides what `GridView` needs, a grid has title, legend, elementsOf(id), cellsOf(element), softOf(id) (the other
// elements of the same owner), idsIn(hit) for heads, and describe(id).
const Grids = (() => {
  'use strict';

  const LINE_BITS = 1024;
  const BANK_BITS = 32;
  const CHUNK_BITS = 128;
  // The widest table, in columns, whose blocks are placed side by side rather than one below the other, and the least
  // height of such blocks: that of a warp with few registers.
  const SIDE_BY_SIDE = 64;
  const FEW = 8;

  const tone = (hue, level) => (Math.round(hue) % Palette.HUES) * Palette.LEVELS + (level % Palette.LEVELS);
  const range = (count) => Array.from({ length: count }, (_, i) => i);
  const isMemory = (table) => table.ownerAxes.length === 0 && table.slotAxes.length === 1;

  // The tone of every owner: few owners share the circle of hues, many are coloured by eighths of the innermost axis.
  function ownerTone(table) {
    if (table.owners <= 16) return (owner) => tone((owner * Palette.HUES) / table.owners, 1);
    const inner = table.ownerAxes[table.ownerAxes.length - 1].extent;
    const eighth = Math.max(1, inner / 8);
    return (owner) => {
      const [outer, within] = [Math.floor(owner / inner), owner % inner];
      const level = Math.floor(((within % eighth) * Palette.LEVELS) / eighth);
      return tone((Math.floor(within / eighth) % 8) * 3 + outer, level);
    };
  }

  // Linear memory is coloured by the 16-byte chunk of its 128-byte line, the unit that a swizzle moves.
  function addressTone(bits) {
    return (address) => {
      const chunk = Math.floor((address * bits) / CHUNK_BITS);
      return tone((((chunk % 8) + 8) % 8) * 3, Math.abs(Math.floor(chunk / 8)) % 2);
    };
  }

  // The bank view is coloured by the 16-byte chunk of its row that an element is from, to show how a swizzle moves it.
  function chunkTone(shape, bits) {
    const cols = shape[shape.length - 1];
    const chunk = (element) => Math.floor(((element % cols) * bits) / CHUNK_BITS) % 8;
    return (element) => tone(chunk(element) * 3, Math.floor(element / cols) % 2);
  }

  // The tone of each cell of the hardware table; its elements have the same.
  function cellTone(table, bits) {
    if (isMemory(table)) {
      const [axis, ofAddress] = [table.slotAxes[0], addressTone(bits)];
      return (cell) => ofAddress(axis.at(cell));
    }
    const ofOwner = ownerTone(table);
    return (cell) => ofOwner(Math.floor(cell / table.slots));
  }

  function legendOf(table) {
    if (isMemory(table)) return 'address in elements · colour: 16-byte chunk of a line';
    const said = ({ name, sign }) => (sign.endsWith('=') ? name : `${sign} ${name}`);
    return [...table.ownerAxes, ...table.slotAxes].map(said).join(' · ');
  }

  const coordinateText = (shape, element) => Shape.coordinate(shape, element).join(',');

  const widestCoordinate = (shape) => shape.map((extent) => extent - 1).join(',').length;

  // The name of the head under a hit: `row 3`, `bank 5`, `w6 T12`.
  function headName(grid, { kind, index }) {
    const [row, column] = grid.names;
    if (kind === 'row') return `${row} ${grid.rowLabel(index)}`.trim();
    const [{ span, label }] = grid.heads;
    return `${column} ${label(Math.floor(index / span))}`.trim();
  }

  // The ids that a head of a row or column covers.
  function idsIn(grid, hit) {
    if (hit.kind === 'cell') return hit.cell < 0 ? [] : [hit.cell];
    const span = grid.heads.length > 0 ? grid.heads[0].span : 1;
    const first = hit.index - (hit.index % span);
    const columns = range(span).map((i) => first + i).filter((c) => c < grid.cols);
    const pairs = hit.kind === 'row'
      ? range(grid.cols).map((c) => [hit.index, c])
      : range(grid.rows).flatMap((r) => columns.map((c) => [r, c]));
    return pairs.map(([r, c]) => grid.cell(r, c)).filter((id) => id >= 0);
  }

  // Rows by columns of the logical shape; leading dimensions beyond two fold into rows, one dimension into rows of 32.
  function tensor(table, shape, bits) {
    const { model } = table;
    const cols = shape.length > 1 ? shape[shape.length - 1] : Math.min(model.size, 32);
    const rows = Math.ceil(model.size / cols);
    const leading = shape.slice(0, -1);
    const first = (element) => table.cells[element * model.replicas];
    const toneOf = cellTone(table, bits);
    const lines = (element) => {
      const [owner, slot] = [Math.floor(first(element) / table.slots), first(element) % table.slots];
      if (isMemory(table)) return [String(table.slotAxes[0].at(slot))];
      const texts = [Table.positions(table.ownerAxes, owner), Table.positions(table.slotAxes, slot)];
      return texts.filter((pairs) => pairs.length > 0).map(Table.shortText);
    };
    const sample = [0, model.size >> 1, model.size - 1].flatMap(lines);
    return {
      title: 'Tensor', legend: legendOf(table), rows, cols,
      cell: (r, c) => (r * cols + c < model.size ? r * cols + c : -1),
      place: (id) => [Math.floor(id / cols), id % cols],
      tone: (id) => toneOf(first(id)),
      text: lines,
      chars: Math.max(...sample.map((line) => line.length)),
      lines: lines(0).length,
      mark: model.replicas > 1 ? () => true : null,
      names: ['row', 'column'],
      corner: shape.length > 1 ? '' : 'flat',
      rowLabel: (r) => (shape.length === 1 ? String(r * cols) : Shape.coordinate(leading, r).join(',')),
      heads: [{ span: 1, label: (c) => String(c) }],
      rowEvery: leading.length > 1 ? leading[leading.length - 1] : 0,
      colEvery: 0,
      elementsOf: (id) => [id],
      cellsOf: (element) => [element],
      softOf: () => [],
      describe: () => '',
    };
  }

  // The part that the grids of a hardware table have in common.
  function ofTable(table, shape, bits) {
    const { model } = table;
    const toneOf = cellTone(table, bits);
    const used = (cell) => table.start[cell + 1] > table.start[cell];
    return {
      title: isMemory(table) ? 'Memory' : 'Hardware',
      legend: 'cell: coordinate of its element',
      tone: (id) => (used(id) ? toneOf(id) : -1),
      text: (id) => {
        const elements = Table.elementsIn(table, id);
        if (elements.length === 0) return [];
        const more = elements.length > 1 ? `+${elements.length - 1}` : '';
        return [coordinateText(shape, elements[0]) + more];
      },
      chars: Math.max(3, widestCoordinate(shape)),
      lines: 1,
      names: ['', ''],
      elementsOf: (id) => Table.elementsIn(table, id),
      cellsOf: (element) => {
        const first = element * model.replicas;
        return [...new Set(table.cells.subarray(first, first + model.replicas))];
      },
      softOf: (id) => (isMemory(table) ? [] : ownerCells(table, Math.floor(id / table.slots))),
      describe: (id) => describeCell(table, id, bits),
    };
  }

  function ownerCells(table, owner) {
    return range(table.slots).map((slot) => owner * table.slots + slot);
  }

  function describeCell(table, cell, bits) {
    const [owner, slot] = [Math.floor(cell / table.slots), cell % table.slots];
    if (isMemory(table)) return `address ${table.slotAxes[0].at(slot)}${byteText(table.slotAxes[0].at(slot), bits)}`;
    const pairs = [...Table.positions(table.ownerAxes, owner), ...Table.positions(table.slotAxes, slot)];
    return Table.longText(pairs);
  }

  // ` = byte 144, line 1, bank 4` of an address in elements.
  function byteText(address, bits) {
    const bit = address * bits;
    const [byte, line] = [Math.floor(bit / 8), Math.floor(bit / LINE_BITS)];
    return ` = byte ${byte}, line ${line}, bank ${Math.floor(bit / BANK_BITS) - line * (LINE_BITS / BANK_BITS)}`;
  }

  // Owners by slots; linear memory in lines of 128 bytes; outer owners side by side if there is space.
  function hardware(table, shape, bits) {
    if (isMemory(table)) return memory(table, shape, bits);
    const { owners, slots, ownerAxes, slotAxes } = table;
    const inner = ownerAxes.length > 0 ? ownerAxes[ownerAxes.length - 1] : null;
    const height = blockHeight(table, inner);
    const blocks = Math.ceil(owners / height);
    const outerText = (block) => outerLabel(table, inner, height, block);
    const slotText = (c) => Table.shortText(Table.positions(slotAxes, c % slots));
    const ownerText = (owner) => Table.shortText(Table.positions(ownerAxes, owner)) || 'all';
    const slotHeads = slots > 1 || blocks === 1 ? [{ span: 1, label: slotText }] : [];
    const grid = {
      ...ofTable(table, shape, bits),
      rows: height,
      cols: blocks * slots,
      cell: (r, c) => {
        const owner = Math.floor(c / slots) * height + r;
        return owner < owners ? owner * slots + (c % slots) : -1;
      },
      place: (id) => {
        const owner = Math.floor(id / slots);
        return [owner % height, Math.floor(owner / height) * slots + (id % slots)];
      },
      corner: '',
      rowLabel: (r) => (blocks > 1 ? innerLabel(inner, height, r) : ownerText(r)),
      heads: blocks > 1 ? [{ span: slots, label: outerText }, ...slotHeads] : slotHeads,
      rowEvery: blocks === 1 && ownerAxes.length > 1 ? inner.extent : 0,
      colEvery: blocks > 1 ? slots : 0,
    };
    return blocks > 1 && height === FEW ? withOwners(grid, (id) => ownerText(Math.floor(id / slots))) : grid;
  }

  // Adds the owner to every cell, for blocks whose heads show it only in part.
  function withOwners(grid, ownerText) {
    const text = (id) => [...grid.text(id), ownerText(id)];
    const longest = ownerText(grid.cell(grid.rows - 1, grid.cols - 1)).length;
    return { ...grid, text, lines: 2, chars: Math.max(grid.chars, longest) };
  }

  // How many owners are placed one below the other in one block.
  function blockHeight({ owners, slots, ownerAxes }, inner) {
    if (!inner) return 1;
    const single = owners > 32 || slots > 4 ? 32 : FEW;
    const height = ownerAxes.length > 1 ? inner.extent : single;
    const fits = owners > height && owners % height === 0 && (owners / height) * slots <= SIDE_BY_SIDE;
    return fits && height >= FEW ? height : owners;
  }

  const isThread = (axis) => axis.name === 'tx' || axis.name === 'tid_in_wg';
  const inWarps = (axis, height) => isThread(axis) && height === 32 && axis.at(0) % 32 === 0;

  function outerLabel({ ownerAxes }, inner, height, block) {
    if (ownerAxes.length > 1) return Table.shortText(Table.positions(ownerAxes.slice(0, -1), block));
    if (inWarps(inner, height)) return `w${inner.at(block * height) / 32}`;
    return `${inner.sign}${inner.at(block * height)}–${inner.at(block * height + height - 1)}`;
  }

  function innerLabel(inner, height, r) {
    if (inner.extent === height) return inner.sign + inner.at(r);
    return inWarps(inner, height) ? `T${r}` : `+${r}`;
  }

  // Linear memory: a row is a line of 128 bytes, or all of the memory if that is less.
  function memory(table, shape, bits) {
    const axis = table.slotAxes[0];
    const count = axis.extent;
    const perLine = Math.max(1, Math.min(LINE_BITS / bits, axis.dense ? axis.at(count - 1) + 1 : count));
    const first = axis.dense ? Math.floor(axis.at(0) / perLine) * perLine : 0;
    const lead = axis.dense ? axis.at(0) - first : 0;
    const perChunk = CHUNK_BITS / bits;
    return {
      ...ofTable(table, shape, bits),
      rows: Math.ceil((lead + count) / perLine),
      cols: perLine,
      cell: (r, c) => {
        const id = r * perLine + c - lead;
        return id >= 0 && id < count ? id : -1;
      },
      place: (id) => [Math.floor((id + lead) / perLine), (id + lead) % perLine],
      names: [axis.name, axis.name],
      corner: axis.name,
      rowLabel: (r) => String(axis.dense ? first + r * perLine : r * perLine),
      heads: [{ span: 1, label: (c) => `+${c}` }],
      rowEvery: 8,
      colEvery: perChunk > 1 && perLine > perChunk ? perChunk : 0,
    };
  }

  // The elements of every word of 4 bytes, in order of address: word `w` has those of `holder` from `w * perWord` on.
  function wordHolder(model, bits) {
    const [column] = model.columns;
    const unitBits = Math.min(bits, BANK_BITS);
    const [perWord, perElement] = [BANK_BITS / unitBits, bits / unitBits];
    const greatest = column.reduce((most, address) => Math.max(most, address), 0);
    const lines = Math.ceil(((greatest + 1) * bits) / LINE_BITS);
    if (lines * (LINE_BITS / unitBits) > LayoutError.MOST_POINTS) {
      throw new LayoutError('L0111', `this needs ${lines} lines of 128 bytes, more than can be drawn`);
    }
    const holder = new Int32Array((lines * LINE_BITS) / unitBits).fill(-1);
    column.forEach((address, p) => {
      const element = Math.floor(p / model.replicas);
      for (let i = 0; i < perElement; i++) holder[address * perElement + i] = element;
    });
    const elementsOf = (word) => {
      const held = holder.subarray(word * perWord, (word + 1) * perWord);
      return [...new Set(held)].filter((element) => element >= 0);
    };
    return { lines, elementsOf };
  }

  // The first element of a word, and the second or the last of several.
  function wordText(shape, elements) {
    const texts = elements.map((element) => coordinateText(shape, element));
    if (texts.length <= 2) return texts;
    const together = elements.every((element, i) => element === elements[0] + i);
    return [texts[0], together ? `–${texts[texts.length - 1]}` : `+${texts.length - 1}`];
  }

  // Lines of 128 bytes by 32 banks of 4: a cell is a word. `counts` is the number of words that each bank moves, if an
  // access is stepped through.
  function banks(model, shape, bits, counts) {
    Banks.memory(model);
    const { lines, elementsOf } = wordHolder(model, bits);
    const perElement = Math.ceil(bits / BANK_BITS);
    const toneOf = chunkTone(shape, bits);
    const heads = [{ span: 1, label: (bank) => String(bank) }];
    if (counts) heads.push({ span: 1, label: (bank) => (counts[bank] ? `×${counts[bank]}` : '·') });
    const wordOf = (address) => Math.floor((address * bits) / BANK_BITS);
    return {
      title: 'Banks',
      legend: 'columns: 32 banks of 4 bytes · rows: lines of 128 bytes · colour: 16-byte chunk of its row',
      rows: lines,
      cols: Banks.BANKS,
      cell: (r, c) => r * Banks.BANKS + c,
      place: (word) => [Math.floor(word / Banks.BANKS), word % Banks.BANKS],
      tone: (word) => {
        const [element] = elementsOf(word);
        return element === undefined ? -1 : toneOf(element);
      },
      text: (word) => wordText(shape, elementsOf(word)),
      chars: Math.max(3, widestCoordinate(shape) + (bits < 16 ? 1 : 0)),
      lines: bits < BANK_BITS ? 2 : 1,
      names: ['line', 'bank'],
      corner: 'line',
      rowLabel: (r) => String(r),
      heads,
      rowEvery: 8,
      colEvery: 4,
      elementsOf,
      cellsOf: (element) => range(model.replicas).flatMap((k) => {
        const first = wordOf(model.columns[0][element * model.replicas + k]);
        return range(perElement).map((i) => first + i);
      }),
      softOf: () => [],
      describe: (word) => `line ${Math.floor(word / Banks.BANKS)}, bank ${word % Banks.BANKS}`,
    };
  }

  // The tensor in the colours of the bank view.
  function besideBanks(table, shape, bits) {
    const legend = isMemory(table) ? 'address in elements · colour: 16-byte chunk of its row' : legendOf(table);
    return { ...tensor(table, shape, bits), tone: chunkTone(shape, bits), legend };
  }

  return { tensor, hardware, banks, besideBanks, idsIn, headName, byteText, isMemory };
})();
