// What a state shows, independent of the page: the evaluated layouts, the grids of the panels, and errors.
const Scene = (() => {
  'use strict';

  // The swizzle mode of 32, 64 or 128 bytes for an element width: M = log2(128 / bits), 2^B chunks of 16 bytes, S = 3.
  function mode(bytes, bits) {
    return { M: Math.log2(128 / bits), B: Math.log2(bytes / 16), S: 3, inner: true };
  }

  // The layout as written, or with the chosen swizzle in place of its own.
  function layoutOf(state) {
    const written = Notation.parse(state.layout);
    if (state.swizzle === null) return written;
    return Layouts.compose(mode(state.swizzle, state.bits), { ...written, swizzle: null });
  }

  // Runs `make`; stores a LayoutError in `errors[field]` and then returns null.
  function attempt(errors, field, make) {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      errors[field] = error;
      return null;
    }
  }

  // {errors, layout, model, shape, table, panels, ...}; `panels` is null if the layout or the shape is wrong. In the
  // banks view also `waves`, if there are no errors; in the conversion view `conversion`, or the `command` to plan it.
  function of(state) {
    const scene = { state, errors: {}, panels: null, conversion: null, command: null };
    const { errors } = scene;
    scene.layout = attempt(errors, 'layout', () => layoutOf(state));
    scene.model = scene.layout && attempt(errors, 'layout', () => Model.evaluate(scene.layout));
    if (!scene.model) return scene;
    scene.suggested = Shape.of(scene.layout);
    const given = attempt(errors, 'shape', () => Shape.parse(state.shape));
    if (!given) return scene;
    const shape = given.length > 0 ? given : scene.suggested;
    scene.shape = attempt(errors, 'shape', () => Shape.check(shape, scene.model.size));
    if (!scene.shape) return scene;
    scene.table = attempt(errors, 'table', () => Table.of(scene.model));
    const { table: tooLarge } = errors;
    scene.panels = tooLarge ? [{ notice: tooLarge.message }, { notice: tooLarge.message }] : panelsOf(scene);
    return scene;
  }

  function panelsOf(scene) {
    const { state: { view, bits }, table, shape } = scene;
    const tensor = () => Grids.tensor(table, shape, bits);
    const hardware = () => Grids.hardware(table, shape, bits);
    if (view === 'tensor') return [tensor(), hardware()];
    if (view === 'hardware') return [hardware(), tensor()];
    if (view === 'banks') return [banks(scene), Grids.besideBanks(table, shape, bits)];
    return conversion(scene);
  }

  function noticed(make) {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      return { notice: error.message };
    }
  }

  function banks(scene) {
    const { state, model, shape, errors } = scene;
    scene.counts = new Array(Banks.BANKS).fill(0);
    const wanted = state.access.trim() !== '';
    const grid = noticed(() => Grids.banks(model, shape, state.bits, wanted ? scene.counts : null));
    if (wanted && !grid.notice) {
      scene.waves = attempt(errors, 'access', () => {
        const pattern = Model.evaluate(Notation.parse(state.access));
        return Banks.wavefronts(model, pattern, state.bits, state.kind, state.vector);
      });
    }
    return grid;
  }

  // The layout to convert to; it must have as many elements as the one that is shown.
  function targetOf({ state, shape }) {
    const layout = Notation.parse(state.to);
    const model = Model.evaluate(layout);
    Shape.check(shape, model.size);
    return { layout, model, table: Table.of(model) };
  }

  // The places of a fragment over one thread axis and one register axis.
  function byThread(model) {
    const { size, replicas } = model;
    const { cells, registers } = Fragment.of(model);
    const thread = Float64Array.from(cells, (cell) => Math.floor(cell / registers));
    const register = Float64Array.from(cells, (cell) => cell % registers);
    return Table.of({ size, replicas, axes: ['reg', 'tx'], columns: [register, thread] });
  }

  // The tables of both sides: by thread and register if both are fragments, else each by its own owners and slots.
  function tablesOf(from, to) {
    const areMemory = ![...from.model.axes, ...to.model.axes].some(Axes.isThread);
    const tables = [from, to].map(({ model }) => attempt({}, 'fragment', () => byThread(model)));
    return areMemory || tables.includes(null) ? [from.table, to.table] : tables;
  }

  function conversion(scene) {
    const { state: { to, bits }, layout, shape, table, errors } = scene;
    const side = (title, shown) => ({ ...Grids.hardware(shown, shape, bits), title, table: shown });
    if (to.trim() === '') return [side('From', table), { notice: 'Enter the layout to convert to in "To".' }];
    const other = attempt(errors, 'to', () => targetOf(scene));
    if (!other) return [side('From', table), { notice: errors.to.message }];
    const [here, there] = tablesOf(scene, other);
    const [source, target] = [side('From', here), side('To', there)];
    target.legend = 'colour: its place in the source layout';
    target.tone = (id) => {
      const [element] = target.elementsOf(id);
      return element === undefined ? -1 : source.tone(source.cellsOf(element)[0]);
    };
    scene.conversion = Conversions.find(layout, other.layout, bits);
    if (scene.conversion === null) scene.command = Conversions.command(layout, other.layout, shape, bits);
    return [source, target, ...sharedMemory(scene)];
  }

  // The tile in shared memory, if the plan goes through it.
  function sharedMemory({ conversion: known, shape }) {
    const staging = known?.plan?.shared;
    if (!staging) return [];
    const { layout, bytes, cell } = staging;
    const table = Table.of(Model.evaluate(Notation.parse(layout)));
    const legend = `${layout} · ${bytes.toLocaleString('en')} bytes · cell: coordinate of its element`;
    return [{ ...Grids.hardware(table, shape, cell), title: 'Shared memory', legend, table }];
  }

  return { of, mode };
})();
