// The axes of hardware.
const Axes = (() => {
  'use strict';

  // From the outermost owner to the innermost; a name that is not listed is user-defined, and outermost.
  const ORDER = [
    'gpuid_x', 'gpuid_y', 'gpuid_z', 'bx', 'by', 'bz', 'cbx', 'cby', 'cbz', 'wgid', 'warpid', 'wid_in_wg', 'tx',
    'tid_in_wg', 'laneid', 'Bank', 'P', 'TLane', 'F', 'TCol', 'm', 'reg',
  ];
  // Axes that count elements inside an owner.
  const SLOTS = ['F', 'TCol', 'm', 'reg'];
  // Thread axes, and how many threads one step on each moves. No prototype, since its names could be axes too.
  const THREAD_STEP = { __proto__: null, tx: 1, laneid: 1, tid_in_wg: 1, warpid: 32, wid_in_wg: 32, wgid: 128 };
  const LETTERS = {
    __proto__: null, laneid: 'T', tx: 'T', tid_in_wg: 'T', warpid: 'w', wid_in_wg: 'w', wgid: 'wg', TLane: 'L',
    TCol: 'C', gpuid_x: 'x', gpuid_y: 'y', gpuid_z: 'z', m: 'm', reg: 'r',
  };

  const isKnown = (axis) => ORDER.includes(axis);
  const isSlot = (axis) => SLOTS.includes(axis);
  const isThread = (axis) => axis in THREAD_STEP;

  // The names in that order, user-defined ones by name.
  function sorted(names) {
    const rank = (axis) => ORDER.indexOf(axis);
    return [...names].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  }

  // The sign of each axis in short labels: a letter, or `axis=` if another has the same letter. In a fragment without
  // `reg`, `m` counts registers.
  function signs(names) {
    const registers = names.some(isThread) && !names.includes('reg');
    const letters = names.map((name) => (name === 'm' && registers ? 'r' : LETTERS[name]));
    const isAlone = (letter) => letter && letters.filter((other) => other === letter).length === 1;
    return names.map((name, i) => (isAlone(letters[i]) ? letters[i] : `${name}=`));
  }

  return { ORDER, THREAD_STEP, isKnown, isSlot, isThread, sorted, signs };
})();
