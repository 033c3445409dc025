const Conversion = (() => {
  'use strict';
  function plan(from, to, bits) {
    if (typeof planConversion !== 'function') return null;
    const table = ({ threads, registers, element }) => ({ threads, registers, element });
    return { from, to, result: planConversion(table(from), table(to), bits) };
  }
  function steps() { return null; }
  return { plan, steps };
})();
