// What can be stepped through: the wavefronts of an access, or a conversion plan. A step is {html, marks per panel,
// redraw}.
const Steps = (() => {
  'use strict';

  function of(scene) {
    if (scene.waves) return wavefronts(scene);
    return scene.conversion ? PlanSteps.of(scene) : null;
  }

  function wavefronts(scene) {
    const { waves, state } = scene;
    const bytes = Math.max(1, (waves.vector * state.bits) / 8);
    return { count: waves.total, summary: verdict(waves), at: (n) => wavefront(scene, n, bytes) };
  }

  function verdict({ total, ideal, costs }) {
    const wavefronts = (count) => `${count.toLocaleString('en')} wavefront${count === 1 ? '' : 's'}`;
    if (total === ideal) return `${wavefronts(total)}: free of bank conflicts`;
    const worst = Math.max(...costs.map((cost) => cost.wavefronts / cost.ideal));
    const ways = worst === Math.round(worst) ? String(worst) : worst.toFixed(1);
    const least = ideal.toLocaleString('en');
    return `${wavefronts(total)} where ${least} would do: bank conflicts, up to ${ways} times as long`;
  }

  function wavefront(scene, n, bytes) {
    const { waves, counts } = scene;
    const { instruction, instructions, access, group, turn, words, elements } = waves.step(n);
    counts.fill(0);
    for (const word of group.wavefronts.flat()) counts[word.word % Banks.BANKS] += 1;
    const cells = (list) => list.map(({ word }) => word);
    const served = group.wavefronts.slice(0, turn).flat();
    const waiting = group.wavefronts.slice(turn + 1).flat();
    const lanes = [...new Set(words.flatMap((word) => word.lanes))].sort((a, b) => a - b);
    const warp = waves.list[waves.list.length - 1].warp > 0 ? `warp ${access.warp}, ` : '';
    const s = (list) => (list.length === 1 ? '' : 's');
    const last = group.first + group.count - 1;
    return {
      html: `<b>Instruction ${instruction + 1}</b> of ${instructions} (${warp}${bytes} byte${bytes === 1 ? '' : 's'} a lane) &middot; ` +
        `lanes ${group.first}&ndash;${last} &middot; <b>wavefront ${turn + 1}</b> of ${group.wavefronts.length}: ` +
        `${words.length} word${s(words)} for lane${s(lanes)} ${ranges(lanes)}`,
      marks: [
        [
          { cells: cells(served), look: 'done' },
          { cells: cells(waiting), look: 'wait' },
          { cells: cells(words), look: 'hit' },
        ],
        [{ cells: elements, look: 'hit' }],
      ],
      redraw: true,
    };
  }

  // `0-3, 8` for a sorted list.
  function ranges(list) {
    const runs = [];
    for (const value of list) {
      const last = runs[runs.length - 1];
      if (last && last[1] === value - 1) last[1] = value;
      else runs.push([value, value]);
    }
    return runs.map(([from, to]) => (from === to ? from : `${from}&ndash;${to}`)).join(', ');
  }

  return { of };
})();
