// The page: turns inputs into state and state into panels, and highlights cells when one is pointed at.
(() => {
  'use strict';

  const byId = (id) => document.getElementById(id);
  const MOST_NAMED = 16;

  let state = Address.normal(DATA.state);
  let scene = null;
  let look = Palette.theme();
  let selection = null;
  let pinned = null;
  let steps = null;
  let stepMarks = null;
  const timings = { ready: null, hover: null };

  const panels = [...document.querySelectorAll('.panel')].map((root, index) => {
    const part = (name) => root.querySelector(name);
    const panel = { root, part, grid: null };
    panel.view = new GridView(part('.viewport'), {
      point: (hit) => pointAt(index, hit),
      pick: (hit) => pickAt(index, hit),
      leave: () => pointAt(index, null),
    });
    const zooms = { out: (v) => v.zoomBy(1 / 1.3), in: (v) => v.zoomBy(1.3), fit: (v) => v.zoomToFit() };
    for (const [how, zoom] of Object.entries(zooms)) {
      part(`[data-zoom=${how}]`).addEventListener('click', () => zoom(panel.view));
    }
    return panel;
  });
  const stepper = new Stepper(byId('steps'), showStep);

  // Applies a change of the state: draws it, and writes it into the address.
  function setState(change) {
    const view = state.view;
    state = Address.normal({ ...state, ...change });
    if (view !== state.view) panels.forEach((panel) => (panel.view.zoom = null));
    refresh();
    history.replaceState(null, '', Address.write(state));
  }

  function refresh() {
    const next = Scene.of(state);
    const stale = next.panels === null && scene !== null && scene.panels !== null;
    scene = stale ? { ...scene, errors: next.errors, waves: null, conversion: null, command: null } : next;
    byId('panels').classList.toggle('stale', stale);
    byId('panels').dataset.view = state.view;
    Forms.show(state, next);
    Facts.show(byId('facts'), next);
    if (!stale) showPanels();
    restorePin();
    showSteps();
    light();
  }

  // Divides the width by the preferred widths of the grids, within limits.
  function shareRoom() {
    const [left, right] = scene.panels.slice(0, 2).map((shown) => (shown.notice ? 400 : GridView.wish(shown)));
    const part = Math.min(0.66, Math.max(0.34, left / (left + right)));
    byId('panels').style.setProperty('--left', `${part}fr`);
    byId('panels').style.setProperty('--right', `${1 - part}fr`);
  }

  function showPanels() {
    if (scene.panels) shareRoom();
    const missing = { notice: 'Nothing to draw: see the error above.' };
    panels.forEach((panel, i) => {
      const shown = scene.panels ? scene.panels[i] || { absent: true } : i === 0 ? missing : { absent: true };
      panel.root.hidden = Boolean(shown.absent);
      panel.grid = shown.notice || shown.absent ? null : shown;
      panel.part('h2').textContent = shown.title || '';
      panel.part('.legend').textContent = shown.legend || '';
      panel.part('.viewport').hidden = panel.part('header').hidden = !panel.grid;
      panel.part('.notice').hidden = Boolean(panel.grid);
      panel.part('.notice').textContent = shown.notice || '';
      if (!panel.grid) return;
      const size = `${shown.rows} rows, ${shown.cols} columns`;
      panel.part('.viewport').setAttribute('aria-label', `${shown.title}, ${size}: arrow keys move, Enter pins`);
      panel.view.show(shown, look);
    });
  }

  // What a hit selects: its cells and elements, and those of the same owner, which are highlighted more softly.
  function selectionOf(index, hit) {
    const { grid } = panels[index];
    if (!grid || !hit) return null;
    const cells = Grids.idsIn(grid, hit);
    const elements = [...new Set(cells.flatMap((cell) => grid.elementsOf(cell)))];
    const owned = hit.kind === 'cell' && hit.cell >= 0 ? grid.softOf(hit.cell) : [];
    const others = new Set(owned.flatMap((cell) => grid.elementsOf(cell)));
    for (const element of elements) others.delete(element);
    if (cells.length === 0) return null;
    return { index, hit, cells, owned, elements, soft: [...others] };
  }

  // The selection of one element, as if it were pointed at in the tensor.
  function selectionOfElement(element) {
    return { index: -1, hit: null, cells: [], owned: [], elements: [element], soft: [] };
  }

  function pointAt(index, hit) {
    const began = performance.now();
    selection = selectionOf(index, hit);
    light();
    timings.hover = performance.now() - began;
  }

  function pickAt(index, hit) {
    const picked = selectionOf(index, hit);
    const same = picked && pinned && String(picked.cells) === String(pinned.cells) && picked.index === pinned.index;
    pin(same ? null : picked);
  }

  function pin(picked) {
    pinned = picked;
    const element = picked && picked.elements.length === 1 ? picked.elements[0] : null;
    if (element !== state.pinned) setState({ pinned: element });
    else light();
  }

  // After a redraw only the pinned element is still known, not the cell that it was pinned in.
  function restorePin() {
    const exists = scene.model && state.pinned !== null && state.pinned < scene.model.size;
    const current = pinned && pinned.elements[0] === state.pinned && panels[pinned.index]?.grid;
    if (!current || !exists) pinned = exists ? selectionOfElement(state.pinned) : null;
    selection = null;
  }

  function marksOf(panel, index, chosen) {
    const { grid } = panel;
    const cellsOf = (elements) => [...new Set(elements.flatMap((element) => grid.cellsOf(element)))];
    const here = chosen.index === index;
    const marks = [{ cells: here ? chosen.owned : cellsOf(chosen.soft), look: 'soft' }];
    const hits = here && chosen.hit.kind !== 'cell' ? chosen.cells : cellsOf(chosen.elements);
    marks.push({ cells: hits, look: 'hit' });
    if (here && chosen.hit.kind === 'cell') marks.push({ cells: chosen.cells, look: 'cursor' });
    return marks;
  }

  function light() {
    const chosen = pinned || selection;
    panels.forEach((panel, index) => {
      if (!panel.grid) return;
      let marks = chosen ? marksOf(panel, index, chosen) : (stepMarks && stepMarks[index]) || [];
      if (pinned && selection && selection.index === index && selection.hit.kind === 'cell') {
        marks = [...marks, { cells: selection.cells, look: 'cursor' }];
      }
      const hits = chosen && index !== chosen.index ? marks.find((mark) => mark.look === 'hit') : null;
      if (hits) panel.view.revealOne(hits.cells);
      panel.view.light(marks);
    });
    showDetails(selection || pinned);
  }

  const named = (list, text) => {
    const shown = list.slice(0, MOST_NAMED).map(text).join('  ·  ');
    return list.length > MOST_NAMED ? `${shown}  and ${list.length - MOST_NAMED} more` : shown;
  };

  const coordinate = (element) => Layouts.tuple(Shape.coordinate(scene.shape, element));
  const elementText = (element) => `${element} ${coordinate(element)}`;

  function placeText(place) {
    const ranges = [...scene.table.ownerAxes, ...scene.table.slotAxes];
    const text = ranges.map(({ name }) => `${name} ${place[name]}`).join(', ');
    return Grids.isMemory(scene.table) && 'm' in place ? text + Grids.byteText(place.m, state.bits) : text;
  }

  function details(chosen) {
    if (!chosen) return ['', 'Point at a cell, or use the arrow keys in a grid.'];
    const { hit, elements, soft } = chosen;
    const { grid } = panels[chosen.index] || {};
    const holder = grid && hit.kind === 'cell' ? grid.describe(hit.cell) : '';
    if (hit && hit.kind !== 'cell') {
      const count = `${elements.length} element${elements.length === 1 ? '' : 's'}`;
      return [Grids.headName(grid, hit), `${count}: ${named(elements, elementText)}`];
    }
    if (elements.length === 0) return [holder, 'holds no element'];
    if (holder && (elements.length > 1 || soft.length > 0)) {
      const also = soft.length > 0 ? `  ·  the same owner holds ${named(soft, elementText)}` : '';
      return [holder, `holds element ${named(elements, elementText)}${also}`];
    }
    const places = Model.places(scene.model, elements[0]);
    const count = places.length > 1 ? `${places.length} places: ` : '';
    return [`element ${elementText(elements[0])}`, count + named(places, placeText)];
  }

  function showDetails(chosen) {
    const [what, where] = details(chosen);
    byId('details').querySelector('.what').textContent = what + (pinned && chosen === pinned ? ' (pinned)' : '');
    byId('details').querySelector('.where').textContent = where;
    byId('details').classList.toggle('pinned', Boolean(pinned));
  }

  // Shows the wavefronts of the access, or the steps of the plan, for stepping; without a plan, how to get one.
  function showSteps() {
    stepMarks = null;
    steps = Steps.of(scene);
    byId('steps').hidden = steps === null;
    byId('unplanned').hidden = scene.command === null;
    byId('command').textContent = scene.command ?? '';
    if (!steps) return stepper.reset(0);
    byId('summary').textContent = steps.summary;
    byId('step').textContent = '';
    return stepper.reset(steps.count, stepper.count === steps.count ? stepper.at : 0);
  }

  function showStep(n) {
    const step = steps.at(n);
    byId('step').innerHTML = step.html;
    stepMarks = step.marks;
    if (step.redraw) panels[0].view.draw();
    panels.forEach(({ grid, view }, i) => {
      const hits = grid && step.marks[i] ? step.marks[i].find((mark) => mark.look === 'hit') : null;
      if (hits) view.revealOne(hits.cells);
    });
    light();
  }

  function setTheme(dark) {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    look = Palette.theme();
    panels.forEach((panel) => panel.grid && panel.view.show(panel.grid, look));
  }

  function onKey(event) {
    if (event.key === 'Escape' && !byId('guide').open) pin(null);
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing || event.ctrlKey || event.metaKey || event.altKey || byId('guide').open) return;
    const next = Address.VIEWS[(Address.VIEWS.indexOf(state.view) + 1) % Address.VIEWS.length];
    const keys = {
      v: () => setState({ view: next }),
      '?': () => byId('guide').showModal(),
      ',': () => stepper.user(stepper.at - 1),
      '.': () => stepper.user(stepper.at + 1),
    };
    if (keys[event.key]) keys[event.key]();
  }

  function readAddress() {
    const read = Address.read(location.hash);
    if (read) state = read;
    refresh();
  }

  Forms.bind({ setState, state: () => state, setTheme });
  addEventListener('hashchange', readAddress);
  addEventListener('keydown', onKey);
  readAddress();
  timings.ready = performance.now();

  const plainError = ({ code, message, start, end, fix = null }) => ({ code, message, start, end, fix });
  const guarded = (make) => {
    try {
      return make();
    } catch (error) {
      if (error instanceof LayoutError) return { error: plainError(error) };
      throw error;
    }
  };
  const plainIters = (iters) => iters.map(({ extent, stride, axis }) => [Number(extent), Number(stride), axis]);

  // What tests and the console may use.
  window.tilewright = {
    // The parts of a layout: {shard, replica: [[extent, stride, axis]], offset, swizzle, text}, or {error}.
    parse: (text) => guarded(() => {
      const layout = Notation.parse(text);
      const offset = Object.fromEntries([...layout.offset].map(([axis, value]) => [axis, Number(value)]));
      const [shard, replica] = [plainIters(layout.shard), plainIters(layout.replica)];
      return { shard, replica, offset, swizzle: layout.swizzle, text: Layouts.print(layout) };
    }),
    // {size, axes, table: {replicas, columns}}: place k of element e is at columns[a][e * replicas + k] on axis a.
    evaluate: (text) => guarded(() => {
      const { size, axes, replicas, columns } = Model.evaluate(Notation.parse(text));
      return { size, axes, table: { replicas, columns } };
    }),
    // The places of an element of the layout that is shown, axis to position.
    places: (flat) => Model.places(scene.model, flat),
    // The elements at an owner and a slot, each an index or positions by axis.
    elementsAt: (owner, slot) => {
      const { ownerAxes, slotAxes, slots } = scene.table;
      const at = (ranges, wanted) => (typeof wanted === 'object' ? Table.indexOf(ranges, wanted) : wanted);
      const [row, column] = [at(ownerAxes, owner), at(slotAxes, slot)];
      return row < 0 || column < 0 ? [] : Table.elementsIn(scene.table, row * slots + column);
    },
    get state() {
      return { ...state };
    },
    get errors() {
      return Object.fromEntries(Object.entries(scene.errors).map(([field, error]) => [field, plainError(error)]));
    },
    setState,
    // {total, ideal, vector, costs} of the access pattern; null if none is shown.
    wavefronts: () => {
      if (!scene.waves) return null;
      const { total, ideal, vector, costs } = scene.waves;
      return { total, ideal, vector, costs };
    },
    // The plan of the conversion that is shown, and the command that plans it; null if there is none.
    plan: () => scene.conversion?.plan ?? null,
    command: () => scene.command,
    // Goes to a step of the wavefronts or the plan; returns its text.
    step: (n) => {
      stepper.user(n);
      return byId('step').textContent;
    },
    // Points with the mouse at a cell of a panel; `click` pins it.
    point: (panel, row, column, click = false) => panels[panel].view.pointer(row, column, click),
    // What is highlighted in each panel: its title and the cells by look.
    lit: () => panels.filter((panel) => panel.grid).map((panel) => ({
      title: panel.grid.title,
      ...Object.fromEntries(panel.view.marks.map((mark) => [mark.look, [...mark.cells]])),
    })),
    // Makes the browser finish drawing by reading back a pixel of every canvas; returns the time afterwards.
    paint: () => {
      for (const canvas of document.querySelectorAll('canvas')) canvas.getContext('2d').getImageData(0, 0, 1, 1);
      return performance.now();
    },
    timings,
  };
})();
