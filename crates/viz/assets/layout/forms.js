// The inputs: their values go into the state, and errors are shown below them.
const Forms = (() => {
  'use strict';

  const TEXTS = ['layout', 'to', 'access', 'shape'];
  const WIDTHS = {
    4: '4-bit (e2m1)', 8: '8-bit (e4m3, i8)', 16: '16-bit (f16, bf16)', 32: '32-bit (f32, i32)',
    64: '64-bit (f64, i64)', 128: '128-bit (b128)',
  };
  const byId = (id) => document.getElementById(id);

  function option(value, text) {
    const made = document.createElement('option');
    made.value = value;
    made.textContent = text;
    return made;
  }

  // One row of radio buttons: `choices` is [[value, text], ..].
  function radios(name, choices, change) {
    for (const [value, text] of choices) {
      const label = document.createElement('label');
      const input = Object.assign(document.createElement('input'), { type: 'radio', name, value: String(value ?? '') });
      const span = Object.assign(document.createElement('span'), { textContent: text });
      input.addEventListener('change', () => change(value));
      label.append(input, span);
      byId(name).querySelector('.choice').append(label);
    }
  }

  // Wires all controls; `page` is {setState, state, setTheme}.
  function bind(page) {
    for (const field of TEXTS) {
      byId(field).addEventListener('input', () => page.setState({ [field]: byId(field).value }));
    }
    for (const bits of Address.BITS) byId('bits').append(option(bits, WIDTHS[bits]));
    byId('bits').addEventListener('change', () => page.setState({ bits: Number(byId('bits').value), vector: 0 }));
    const modes = [[null, 'none'], [32, '32B'], [64, '64B'], [128, '128B']];
    radios('swizzle', modes, (swizzle) => page.setState({ swizzle }));
    radios('kind', [['load', 'load'], ['store', 'store']], (kind) => page.setState({ kind }));
    byId('vector').addEventListener('change', () => page.setState({ vector: Number(byId('vector').value) }));
    document.querySelector('.controls').addEventListener('submit', (event) => event.preventDefault());
    bindTabs(page);
    bindTools(page);
  }

  function bindTabs(page) {
    const tabs = [...document.querySelectorAll('[role=tab]')];
    tabs.forEach((tab, i) => {
      tab.addEventListener('click', () => page.setState({ view: tab.dataset.view }));
      tab.addEventListener('keydown', (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        const next = tabs[(i + step + tabs.length) % tabs.length];
        page.setState({ view: next.dataset.view });
        next.focus();
      });
    });
  }

  function bindTools(page) {
    DATA.examples.forEach(({ name }, i) => byId('examples').append(option(i, name)));
    byId('examples').addEventListener('change', () => {
      const { state } = DATA.examples[Number(byId('examples').value)];
      byId('examples').value = '';
      page.setState(Address.normal(state));
    });
    byId('help').addEventListener('click', () => byId('guide').showModal());
    byId('share').addEventListener('click', () => copy(byId('share'), location.href, 'See address bar'));
    const command = byId('command');
    byId('copy-command').addEventListener('click', () => copy(byId('copy-command'), command.textContent, 'Select it'));
    bindTheme(page);
  }

  // Copies a text and says so on the button, or shows `otherwise` if the browser does not allow it.
  async function copy(button, text, otherwise) {
    button.dataset.label ??= button.textContent;
    button.textContent = await navigator.clipboard.writeText(text).then(() => 'Copied', () => otherwise);
    setTimeout(() => (button.textContent = button.dataset.label), 1500);
  }

  function bindTheme(page) {
    const system = matchMedia('(prefers-color-scheme: dark)');
    const choices = ['Auto', 'Light', 'Dark'];
    let chosen = 0;
    const apply = () => {
      byId('theme').textContent = `Theme: ${choices[chosen].toLowerCase()}`;
      page.setTheme(chosen === 0 ? system.matches : chosen === 2);
    };
    system.addEventListener('change', apply);
    byId('theme').addEventListener('click', () => {
      chosen = (chosen + 1) % choices.length;
      apply();
    });
    apply();
  }

  // Updates the controls from the state, without touching the one that is being typed in.
  function show(state, scene) {
    for (const field of TEXTS) {
      const input = byId(field);
      if (input.value !== state[field]) input.value = state[field];
      showError(field, scene.errors[field], scene);
    }
    byId('shape').placeholder = scene.suggested ? scene.suggested.join(',') : '';
    byId('bits').value = state.bits;
    check('swizzle', state.swizzle);
    check('kind', state.kind);
    const own = scene.layout && scene.layout.swizzle && state.swizzle === null;
    byId('swizzle').querySelector('.choice span').textContent = own ? 'as written' : 'none';
    showVectors(state, scene);
    for (const tab of document.querySelectorAll('[role=tab]')) {
      const selected = tab.dataset.view === state.view;
      tab.setAttribute('aria-selected', selected);
      tab.tabIndex = selected ? 0 : -1;
    }
    for (const part of document.querySelectorAll('[data-only]')) part.hidden = part.dataset.only !== state.view;
  }

  function check(name, value) {
    for (const input of byId(name).querySelectorAll('input')) input.checked = input.value === String(value ?? '');
  }

  function showVectors(state, scene) {
    const select = byId('vector');
    const legal = scene.waves ? scene.waves.legal : [];
    const widest = scene.waves && state.vector === 0 ? ` (${scene.waves.vector})` : '';
    const others = legal.includes(state.vector) || state.vector === 0 ? legal : [...legal, state.vector];
    select.replaceChildren(option(0, `widest${widest}`), ...others.map((vector) => option(vector, String(vector))));
    select.value = state.vector;
  }

  function showError(field, error, scene) {
    const box = byId(`${field}-error`);
    byId(field).setAttribute('aria-invalid', Boolean(error));
    box.hidden = !error;
    box.replaceChildren();
    if (!error) return;
    const line = (tag, className, text) => {
      const made = Object.assign(document.createElement(tag), { className, textContent: text });
      box.append(made);
      return made;
    };
    const first = line('div', 'message', '');
    first.append(Object.assign(document.createElement('b'), { textContent: `${error.code} ` }), error.problem);
    if (error.start !== undefined) showCaret(line('pre', '', ''), byId(field).value, error);
    const fix = field === 'shape' && scene.suggested ? scene.suggested.join(',') : error.fix;
    if (fix) line('div', 'legal', 'legal: ').append(fixButton(field, fix));
    else if (error.example) line('div', 'legal', `legal, for example: ${error.example}`);
    else if (error.legal) line('div', 'legal', `legal: ${error.legal}`);
  }

  // The text, and below it carets under the wrong part.
  function showCaret(pre, text, { start, end }) {
    const columns = (piece) => [...piece].length;
    const carets = '^'.repeat(Math.max(1, columns(text.slice(start, end))));
    const below = Object.assign(document.createElement('span'), {
      className: 'caret', textContent: ' '.repeat(columns(text.slice(0, start))) + carets,
    });
    pre.append(`${text}\n`, below);
  }

  // A button that puts a legal text into the input.
  function fixButton(field, fix) {
    const button = document.createElement('button');
    Object.assign(button, { type: 'button', className: 'code', textContent: fix });
    button.addEventListener('click', () => {
      byId(field).value = fix;
      byId(field).dispatchEvent(new Event('input'));
      byId(field).focus();
    });
    return button;
  }

  return { bind, show };
})();
