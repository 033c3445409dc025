// The state of the page, and its text in the address bar: `#l=S[(8,16):(16,1)]&s=8,16&b=16&v=tensor`.
const Address = (() => {
  'use strict';

  const VIEWS = ['tensor', 'hardware', 'banks', 'conversion'];
  const BITS = [4, 8, 16, 32, 64, 128];
  const SWIZZLES = [null, 32, 64, 128];
  const KINDS = ['load', 'store'];
  const KEYS = {
    layout: 'l', shape: 's', bits: 'b', swizzle: 'w', access: 'a', kind: 'k', vector: 'n', to: 't', pinned: 'p',
    view: 'v',
  };
  const EMPTY = {
    layout: 'S[(8,16):(16,1)]', shape: '', bits: 16, view: 'tensor', swizzle: null, access: '', kind: 'load', vector: 0,
    to: '', pinned: null,
  };

  const oneOf = (list, value, fallback) => (list.includes(value) ? value : fallback);
  const number = (value) => (value === null || value === '' || value === undefined ? null : Number(value));

  // A state whose fields all have legal values; its texts may still not be layouts.
  function normal(state) {
    const from = { ...EMPTY, ...state };
    const pinned = number(from.pinned);
    return {
      layout: String(from.layout),
      shape: Array.isArray(from.shape) ? from.shape.join(',') : String(from.shape ?? ''),
      bits: oneOf(BITS, Number(from.bits), EMPTY.bits),
      view: oneOf(VIEWS, from.view, EMPTY.view),
      swizzle: oneOf(SWIZZLES, number(from.swizzle), null),
      access: String(from.access ?? ''),
      kind: oneOf(KINDS, from.kind, EMPTY.kind),
      vector: Number.isInteger(Number(from.vector)) ? Number(from.vector) : 0,
      to: String(from.to ?? ''),
      pinned: Number.isInteger(pinned) && pinned >= 0 ? pinned : null,
    };
  }

  // Escapes only characters that would end a value or break a link, so that the notation stays readable.
  const escape = (text) => text.replace(/[\s%&#"<>`\\^{|}\u007f-\uffff]/gu, encodeURIComponent);

  function unescape(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  // The address fragment of a state, with `#`.
  function write(state) {
    const said = Object.entries(KEYS).filter(([field]) => field === 'layout' || state[field] !== EMPTY[field]);
    return `#${said.map(([field, key]) => `${key}=${escape(String(state[field] ?? ''))}`).join('&')}`;
  }

  // The state of an address fragment; null if it does not contain a layout.
  function read(fragment) {
    const pairs = fragment.replace(/^#/, '').split('&').map((part) => {
      const at = part.indexOf('=');
      return [part.slice(0, Math.max(0, at)), unescape(part.slice(at + 1))];
    });
    const given = new Map(pairs);
    if (!given.has(KEYS.layout)) return null;
    const said = Object.entries(KEYS).filter(([, key]) => given.has(key));
    return normal(Object.fromEntries(said.map(([field, key]) => [field, given.get(key)])));
  }

  return { VIEWS, BITS, SWIZZLES, KINDS, normal, write, read };
})();
