// A line of facts about the layout that is shown.
const Facts = (() => {
  'use strict';

  const counted = (count, one) => `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`;

  // How many neighbours along the last dimension are contiguous within one owner, for all elements.
  function run({ model, table, shape }) {
    const row = shape[shape.length - 1];
    const first = (element) => table.cells[element * model.replicas];
    const inOneRow = (a, b) => Math.floor(a / table.slots) === Math.floor(b / table.slots);
    let length = 1;
    while (row % (length * 2) === 0 && length < 64) {
      for (let start = 0; start < model.size; start += length * 2) {
        for (let i = 1; i < length * 2; i++) {
          const [at, cell] = [first(start), first(start + i)];
          if (cell !== at + i || !inOneRow(at, cell)) return length;
        }
      }
      length *= 2;
    }
    return length;
  }

  // Axes that hardware does not have, each with the hardware axis that was perhaps meant.
  function strangers(model) {
    return model.axes.filter((axis) => !Axes.isKnown(axis)).map((axis) => {
      const meant = Nearest.of(axis, Axes.ORDER);
      return `\`${axis}\` is an axis of your own${meant === null ? '' : `; did you mean \`${meant}\`?`}`;
    });
  }

  function list(scene) {
    const { model, table, layout, state } = scene;
    const facts = [counted(model.size, 'element')];
    if (model.replicas > 1) facts.push(`${model.replicas} places each`);
    if (!table) return facts;
    if (Grids.isMemory(table)) {
      const { at, extent } = table.slotAxes[0];
      const bytes = Math.ceil(((at(extent - 1) + 1) * state.bits) / 8);
      facts.push(`span ${(at(extent - 1) + 1).toLocaleString('en')} (${counted(bytes, 'byte')})`);
    } else {
      facts.push(`${counted(table.owners, 'owner')} x ${counted(table.slots, 'slot')}`);
    }
    facts.push(`contiguous run ${run(scene)}`);
    if (layout.swizzle) facts.push('swizzled');
    if ([...table.ownerAxes, ...table.slotAxes].some((range) => !range.dense)) facts.push('unused positions left out');
    return facts;
  }

  function show(root, scene) {
    root.replaceChildren();
    const { layout, model, table, shape } = scene;
    root.hidden = !model || !shape;
    if (root.hidden) return;
    const add = (tag, text, className = '') => {
      root.append(Object.assign(document.createElement(tag), { textContent: text, className }));
    };
    add('code', Layouts.print(layout));
    for (const fact of list(scene)) add('span', fact);
    for (const stranger of strangers(model)) add('span', stranger);
    if (!table) return;
    if (Table.isInjective(table)) add('span', 'injective');
    else add('span', 'different elements share a place', 'bad');
  }

  return { show };
})();
