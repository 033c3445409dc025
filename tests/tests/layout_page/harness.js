// Drives the page as a person would and leaves the verdict in the document. GIVEN is what Rust expects.
(() => {
  const page = window.tilewright;
  const passed = [];
  const failures = [];
  const byId = (id) => document.getElementById(id);

  function same(what, got, expected) {
    const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
    if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
  }

  function scenario(name, act) {
    try {
      act();
      passed.push(name);
    } catch (error) {
      failures.push(`${name}: ${error.message} ${(error.stack || '').split('\n').slice(1, 3).join(' ')}`);
    }
  }

  function type(id, text) {
    byId(id).value = text;
    byId(id).dispatchEvent(new Event('input', { bubbles: true }));
  }

  function choose(name, value) {
    document.querySelector(`#${name} input[value="${value}"]`).click();
  }

  function press(target, key) {
    target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  }

  const lit = (title) => page.lit().find((panel) => panel.title === title) || {};
  const text = (selector) => document.querySelector(selector).textContent;
  const viewport = (panel) => document.querySelectorAll('.viewport')[panel];
  const REPLICATED = 'S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid';
  const PLAIN = {
    layout: REPLICATED, shape: '8,16', bits: 16, view: 'tensor', swizzle: null, access: '', kind: 'load', vector: 0,
    to: '', pinned: null,
  };

  function hash(size, axes, { replicas, columns }) {
    let sum = 0x811c9dc5;
    const fold = (piece) => {
      for (let i = 0; i < piece.length; i++) sum = Math.imul(sum ^ piece.charCodeAt(i), 0x01000193);
    };
    for (let element = 0; element < size; element++) {
      for (let k = 0; k < replicas; k++) fold(`${columns.map((column) => column[element * replicas + k]).join()};`);
      fold('\n');
    }
    return sum >>> 0;
  }

  if (GIVEN.linked) {
    scenario('the address is what it begins with', () => {
      const linked = {
        ...PLAIN, layout: 'S[(4,8):(8,1)] + 5', shape: '8,4', bits: 32, swizzle: 64, view: 'banks', pinned: 3,
        access: 'S[(4,8):(8@laneid,1@laneid)]',
      };
      same('state', { ...PLAIN, ...page.state }, linked);
      same('pinned', lit('Banks').hit, [8]);
      same('wavefronts', page.wavefronts().total, 2);
    });
    finish();
    return;
  }

  scenario('it begins with the state that Rust gave', () => same('state', { ...PLAIN, ...page.state }, PLAIN));

  scenario('texts are read as in Rust', () => {
    for (const [notation, expected] of GIVEN.texts) {
      const read = page.parse(notation);
      same(notation, read.error ? [read.error.code, read.error.message, read.error.fix] : read.text, expected);
    }
  });

  scenario('elements are where Rust puts them', () => {
    for (const [notation, expected] of GIVEN.layouts) {
      const { size, axes, table } = page.evaluate(notation);
      same(notation, hash(size, axes, table), expected);
    }
  });

  scenario('the axes of hardware are those of Rust', () => same('names', [...Axes.ORDER].sort(), GIVEN.axes));

  scenario('the same name is thought to be meant as in Rust', () => {
    for (const [given, expected] of GIVEN.meant) same(given, Nearest.of(given, GIVEN.axes), expected);
    page.setState({ ...PLAIN, layout: 'S[(8,4):(4@lane_id,1@laneid)]', shape: '' });
    const said = [...document.querySelectorAll('#facts span')].map((fact) => fact.textContent);
    same('said', said.includes('`lane_id` is an axis of your own; did you mean `laneid`?'), true);
  });

  scenario('an access takes as many wavefronts as in Rust', () => {
    for (const access of GIVEN.accesses) {
      const { wavefronts, ideal } = Banks.cost(access);
      same(JSON.stringify(access), [wavefronts, ideal], access.cost);
    }
  });

  // What an access costs, or its error.
  function costOf(tile, lanes, bits, kind) {
    try {
      const { list, total, ideal } = Banks.wavefronts(tile, lanes, bits, kind);
      return [list[0].width, list.length, total, ideal];
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      return [error.code, error.message];
    }
  }

  scenario('an access to a golden layout takes as many wavefronts as in Rust', () => {
    const models = new Map();
    const modelOf = (notation) => {
      if (!models.has(notation)) models.set(notation, Model.evaluate(Notation.parse(notation)));
      return models.get(notation);
    };
    for (const [layout, lanes, bits, kind, expected] of GIVEN.goldenAccesses) {
      const cost = costOf(modelOf(layout), modelOf(lanes), bits, kind);
      same(`${kind} of ${layout} by ${lanes}, ${bits} bits`, cost, expected);
    }
  });

  scenario('an address is in the bank where Rust has it', () => {
    for (const [bits, address, byte, line, bank] of GIVEN.addresses) {
      same(`${address} of ${bits} bits`, Grids.byteText(address, bits), ` = byte ${byte}, line ${line}, bank ${bank}`);
    }
  });

  scenario('a swizzle mode is that of Rust', () => {
    for (const [bits, bytes, expected] of GIVEN.modes) {
      const swizzled = Layouts.compose(Scene.mode(bytes, bits), Notation.parse('S[8:1]'));
      same(`${bytes} bytes over ${bits} bits`, Layouts.print(swizzled), expected);
    }
  });

  scenario('pointing at an element lights all its places', () => {
    page.setState(PLAIN);
    page.point(0, 3, 9);
    same('tensor', lit('Tensor').hit, [57]);
    same('hardware', lit('Hardware').hit.map((cell) => page.elementsAt(cell >> 1, cell & 1)), [[57], [57]]);
    same('what', text('#details .what'), 'element 57 (3,9)');
    same('where', text('#details .where'), '2 places: warpid 6, laneid 12, m 1  ·  warpid 10, laneid 12, m 1');
  });

  scenario('pointing at a register lights the elements of its thread', () => {
    page.setState(PLAIN);
    page.point(1, 12, 3);
    same('its element', lit('Tensor').hit, [57]);
    same('the thread', lit('Tensor').soft, [56]);
    same('by name', page.elementsAt({ warpid: 6, laneid: 12 }, { m: 1 }), [57]);
    same('what', text('#details .what'), 'warpid 6, laneid 12, m 1');
  });

  scenario('pointing at a head lights its row', () => {
    page.setState(PLAIN);
    page.point(0, 2, -1);
    same('row 2', lit('Tensor').hit, Array.from({ length: 16 }, (_, i) => 32 + i));
  });

  scenario('a click pins and another lets go', () => {
    page.setState(PLAIN);
    page.point(0, 1, 1, true);
    page.point(0, 5, 5);
    same('still lit', [page.state.pinned, lit('Tensor').hit], [17, [17]]);
    page.point(0, 1, 1, true);
    same('let go', page.state.pinned, null);
  });

  scenario('an edit of the notation is seen at once', () => {
    page.setState({ ...PLAIN, shape: '' });
    type('layout', 'S[(4,4):(4@laneid,1@laneid)]');
    same('places', page.places(5), [{ laneid: 5 }]);
    same('address', page.state.layout, 'S[(4,4):(4@laneid,1@laneid)]');
    same('facts', text('#facts code'), 'S[(4,4):(4@laneid,1@laneid)]');
  });

  scenario('an error stands under its character, and the drawing stays', () => {
    page.setState(PLAIN);
    type('layout', 'S[(8,2):(4@)]');
    same('text and caret', text('#layout-error pre'), 'S[(8,2):(4@)]\n           ^');
    const message = 'L0101 expected the name of an axis, such as `laneid` or `m`, not `)`';
    same('message', text('#layout-error .message'), message);
    same('places of the last layout', page.places(57).length, 2);
    type('layout', 'S[(4,4):(4@laneid,1@laneid)');
    byId('layout-error').querySelector('button').click();
    same('mended', [page.state.layout, byId('layout-error').hidden], ['S[(4,4):(4@laneid,1@laneid)]', true]);
  });

  scenario('a shape of another size is an error with a way out', () => {
    page.setState(PLAIN);
    type('shape', '8,15');
    same('message', page.errors.shape.message, 'shape (8,15) has size 120, but the layout has size 128');
    byId('shape-error').querySelector('button').click();
    same('shape', [page.state.shape, page.errors], ['8,16', {}]);
  });

  scenario('a swizzle goes on and off', () => {
    page.setState({ ...PLAIN, layout: 'S[(8,64):(64,1)]', shape: '8,64' });
    const banks = () => Array.from({ length: 8 }, (_, row) => (page.places(row * 64)[0].m / 2) % 32);
    same('banks of the column', banks(), [0, 0, 0, 0, 0, 0, 0, 0]);
    choose('swizzle', '128');
    same('notation', text('#facts code'), 'swizzle(M=3,B=3,S=3) o S[(8,64):(64@m,1@m)]');
    same('banks of the column', banks(), [0, 4, 8, 12, 16, 20, 24, 28]);
    choose('swizzle', '');
    same('notation', text('#facts code'), 'S[(8,64):(64@m,1@m)]');
  });

  scenario('wavefronts are gone through one by one', () => {
    const tile = { layout: 'S[(8,64):(64,1)]', shape: '8,64', view: 'banks' };
    page.setState({ ...PLAIN, ...tile, access: 'S[(8,64):(1@laneid,1@reg)]', vector: 1 });
    same('without a swizzle', [page.wavefronts().total, page.wavefronts().ideal], [512, 64]);
    same('first', page.step(0).slice(0, 62), 'Instruction 1 of 64 (2 bytes a lane) · lanes 0–31 · wavefront ');
    same('words', [lit('Banks').hit, lit('Banks').wait], [[0], [32, 64, 96, 128, 160, 192, 224]]);
    page.step(3);
    same('words', [lit('Banks').done, lit('Banks').hit, lit('Tensor').hit], [[0, 32, 64], [96], [192]]);
    choose('swizzle', '128');
    same('with one', [page.wavefronts().total, page.wavefronts().ideal], [64, 64]);
  });

  scenario('the widest vector is found, and a wider one refused', () => {
    const rows = { layout: 'S[(32,64):(64,1)]', shape: '32,64', view: 'banks', access: 'S[(32,64):(1@laneid,1@reg)]' };
    page.setState({ ...PLAIN, ...rows });
    same('rows', [page.wavefronts().vector, page.wavefronts().total, page.wavefronts().ideal], [8, 256, 32]);
    page.setState({ access: 'S[(32,2,32):(1@laneid,1@reg,2@reg)]' });
    same('every other', page.wavefronts().vector, 1);
    page.setState({ vector: 2 });
    same('refused', [page.wavefronts(), page.errors.access.code], [null, 'L0110']);
  });

  scenario('plans are those that Rust gave, and every step of them can be shown', () => {
    for (const [layout, to, bits, expected] of GIVEN.conversions) {
      page.setState({ ...PLAIN, layout, to, bits, shape: '', view: 'conversion' });
      same(`${layout} to ${to}`, [JSON.stringify(page.plan()), page.command()], [expected, null]);
      same('errors', page.errors, {});
      const filled = new Set();
      const steps = byId('steps').querySelector('.player').hidden ? 0 : Number(byId('seek').max) + 1;
      for (let n = 0; n < steps; n++) {
        page.step(n);
        for (const cell of lit('To').hit || []) filled.add(cell);
      }
      const cells = page.evaluate(to).size * page.evaluate(to).table.replicas;
      same(`filled by ${to}`, filled.size, page.plan().kind === 'nothing' ? 0 : cells);
    }
  });

  const FRAGMENT = 'S[(8,4,2):(4@laneid,1@laneid,1@reg)]';
  const TRANSPOSE = 'S[(4,2,8):(1@laneid,1@reg,4@laneid)]';

  scenario('a conversion that the page was not made with has a command in place of a plan', () => {
    const shown = () => [page.plan() && page.plan().kind, byId('steps').hidden, byId('unplanned').hidden];
    page.setState({ ...PLAIN, layout: FRAGMENT, to: TRANSPOSE, shape: '8,8', bits: 32, view: 'conversion' });
    same('made with', shown(), ['shuffles', false, true]);
    type('to', ' S[ 4, 2, 8 : laneid, 1@reg, 4@laneid ]');
    same('written otherwise', shown(), ['shuffles', false, true]);
    type('to', 'S[(8,4,2):(1@laneid,8@laneid,1@reg)]');
    same('edited', shown(), [null, true, false]);
    const layouts = `"${FRAGMENT}" --to "S[(8,4,2):(1@laneid,8@laneid,1@reg)]"`;
    const command = `cargo xtask layout ${layouts} --shape 8,8 --dtype f32 --html layout.html`;
    same('command', text('#command'), command);
    type('to', 'S[(8,4,2):(1@laneid,');
    same('while it is wrong', shown(), [null, true, true]);
    for (const [bits, name] of GIVEN.dtypes) {
      page.setState({ to: 'S[64:1@pid]', bits });
      same(`${bits} bits`, page.command().split(' --shape ')[1], `8,8 --dtype ${name} --axis pid --html layout.html`);
    }
  });

  scenario('a conversion without steps has a summary', () => {
    const { layout, to, bits, summary } = GIVEN.withoutSteps;
    page.setState({ ...PLAIN, layout, to, bits, shape: '', view: 'conversion' });
    same('summary', [text('#summary'), page.plan(), page.command()], [summary, null, null]);
    same('drawn', page.lit().map(({ title }) => title), ['From', 'To']);
  });

  scenario('pointing at an element lights it in both fragments', () => {
    page.setState({ ...PLAIN, layout: FRAGMENT, to: TRANSPOSE, shape: '8,8', bits: 32, view: 'conversion' });
    const summary = 'shuffles: cost 44 a warp (2 shuffles, 2 computed source lanes, 4 selects)';
    same('summary', text('#summary').split(';')[0], summary);
    page.point(0, 5, 1);
    same('places', [lit('From').hit, lit('To').hit], [[11], [25]]);
    same('what', text('#details .where').slice(0, 24), 'holds element 11 (1,3)  ');
    page.setState({ to: 'S[8:1@laneid]' });
    same('refused', page.errors.to.message, 'shape (8,8) has size 64, but the layout has size 8');
  });

  scenario('the address holds the state, and a new address is taken over', () => {
    const odd = { layout: 'S[(4,8):(8,1)] + 5', to: 'S[32:1@laneid] %&#<é' };
    page.setState({ ...PLAIN, ...odd, shape: '8,4', bits: 32, view: 'conversion' });
    same('read back', Address.read(location.hash), page.state);
    history.replaceState(null, '', '#l=S[4:1@laneid]&s=2,2&b=32&v=hardware');
    dispatchEvent(new HashChangeEvent('hashchange'));
    same('taken over', [page.state.layout, page.state.shape, page.state.view, byId('layout').value],
      ['S[4:1@laneid]', '2,2', 'hardware', 'S[4:1@laneid]']);
  });

  scenario('keys move, pin, let go and change the view', () => {
    page.setState(PLAIN);
    const grid = viewport(0);
    grid.focus();
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowDown', 'Enter']) press(grid, key);
    same('pinned', page.state.pinned, 17);
    press(grid, 'Escape');
    same('let go', page.state.pinned, null);
    press(document.body, 'v');
    same('view', page.state.view, 'hardware');
    press(document.body, '?');
    same('help', byId('guide').open, true);
    byId('guide').close();
    press(byId('layout'), 'v');
    same('while typing', page.state.view, 'hardware');
  });

  scenario('every example can be shown', () => {
    for (const { name, state } of DATA.examples) {
      page.setState(Address.normal(state));
      same(name, [page.errors, page.lit().length, page.command()], [{}, 2, null]);
    }
  });

  finish();

  function finish() {
    const { ready, hover } = page.timings;
    const verdict = document.createElement('pre');
    verdict.id = 'verdict';
    verdict.textContent = JSON.stringify({ passed, failures, timings: { ready, hover } });
    document.body.append(verdict);
  }
})();
