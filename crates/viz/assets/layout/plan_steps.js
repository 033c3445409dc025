// A conversion plan prepared for stepping: the text of each step, and which cells it reads and fills. The plan is
// data from Rust, in the form of `Conversion::to_json_text` of tilewright-layout.
const PlanSteps = (() => {
  'use strict';

  const LANES = 32;
  const MOST_RUNS = 4;

  const counted = (count, one) => `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`;
  const range = (count) => Array.from({ length: count }, (_, i) => i);

  // A step is {html, reads: [[thread, register]], fills: [[thread, register]], memory: [address]}.
  function stepsOf(plan) {
    const made = { nothing: () => [], renaming: ownSteps, shuffles: shuffleSteps, staging: stagingSteps };
    return made[plan.kind](plan);
  }

  // Where register `register` of `thread` comes from; -1 for one that holds nothing.
  function pickAt({ warps, registers, from }, thread, register) {
    return from[(warps === 1 ? thread % LANES : thread) * registers + register];
  }

  // [thread, register, pick] of every register of the target that holds something.
  function picked({ threads, picks }) {
    const all = range(threads).flatMap((t) => range(picks.registers).map((r) => [t, r, pickAt(picks, t, r)]));
    return all.filter(([, , pick]) => pick >= 0);
  }

  // The elements that stay on their thread: one step for each register of the target.
  function ownSteps(plan) {
    const own = picked(plan).filter(([, , pick]) => pick < plan.picks.own);
    return range(plan.picks.registers).flatMap((register) => {
      const moves = own.filter(([, r]) => r === register);
      if (moves.length === 0) return [];
      const sources = [...new Set(moves.map(([, , pick]) => pick))].sort((a, b) => a - b);
      return [{
        html: `<b>register ${register}</b> from register ${sources.join(' or ')} of the same thread, ` +
          `in ${counted(moves.length, 'thread')}`,
        reads: moves.map(([thread, , pick]) => [thread, pick]),
        fills: moves.map(([thread]) => [thread, register]),
      }];
    });
  }

  function shuffleSteps(plan) {
    const { own } = plan.picks;
    const perWord = Math.max(1, 32 / plan.bits);
    const all = picked(plan);
    const shuffles = plan.steps.map((step, index) => {
      const received = all.filter(([, , pick]) => Math.floor((pick - own) / perWord) === index);
      const reads = received.map(([thread, , pick]) => {
        const warp = Math.floor(thread / LANES);
        const { source, word } = step.warps[step.warps.length === 1 ? 0 : warp];
        const from = source[thread % LANES];
        return [warp * LANES + from, word[from] * perWord + ((pick - own) % perWord)];
      });
      return { html: shuffleText(step, index, plan.steps.length), reads, fills: received.map(([t, r]) => [t, r]) };
    });
    return [...shuffles, ...ownSteps(plan)];
  }

  function shuffleText(step, index, count) {
    const modes = {
      butterfly: () => `lane n reads lane n XOR ${step.mask}`,
      broadcast: () => `all read lane ${step.lane}`,
      indexed: () => 'every lane specifies its source',
    };
    const inWarp = step.warps.length > 1 ? ', in warp 0' : '';
    const how = `${step.mode}, ${modes[step.mode]()}`;
    return `<b>shuffle ${index + 1}</b> of ${count}: ${how}${inWarp}; ${wordsText(step.warps[0])}`;
  }

  // `word 1 from lanes 0-15, word 0 from lanes 16-31`; a word has 32 bits.
  function wordsText({ word }) {
    const runs = [];
    word.forEach((sent, lane) => {
      const last = runs[runs.length - 1];
      if (sent < 0) return;
      if (last && last.sent === sent && last.to === lane - 1) last.to = lane;
      else runs.push({ sent, from: lane, to: lane });
    });
    const lanes = ({ from, to }) => (from === to ? `lane ${from}` : `lanes ${from}&ndash;${to}`);
    const text = (run) => `word ${run.sent} from ${lanes(run)}`;
    const more = runs.length > MOST_RUNS ? ', ...' : '';
    return runs.slice(0, MOST_RUNS).map(text).join(', ') + more;
  }

  function stagingSteps({ shared: { store, load } }) {
    const reads = (access) => ({ reads: touched(access), fills: [] });
    const fills = (access) => ({ reads: [], fills: touched(access) });
    return [...sideSteps('store', store, reads), ...sideSteps('load', load, fills)];
  }

  function touched({ registers, addresses }) {
    const threads = range(addresses.length).filter((thread) => addresses[thread] >= 0);
    return threads.flatMap((thread) => registers.map((register) => [thread, register]));
  }

  function sideSteps(name, { width, accesses }, cells) {
    return accesses.map((access, index) => {
      const { registers, addresses, wavefronts } = access;
      const used = addresses.filter((address) => address >= 0);
      const total = wavefronts.reduce((sum, count) => sum + count, 0);
      return {
        html: `<b>${name} ${index + 1}</b> of ${accesses.length}: ${counted(width, 'byte')} a lane, ` +
          `register${registers.length === 1 ? '' : 's'} ${registers.join(', ')}; ${counted(total, 'wavefront')} ` +
          `in ${counted(wavefronts.length, 'warp')}`,
        memory: used.flatMap((address) => registers.map((_, i) => address + i)),
        ...cells(access),
      };
    });
  }

  // The cells of a grid for [thread, register] pairs; pairs that the grid does not show are left out.
  function cellsIn({ table }, pairs) {
    const cells = pairs.map(([tx, reg]) => {
      const [owner, slot] = [Table.indexOf(table.ownerAxes, { tx }), Table.indexOf(table.slotAxes, { reg })];
      return owner < 0 || slot < 0 ? -1 : owner * table.slots + slot;
    });
    return [...new Set(cells)].filter((cell) => cell >= 0);
  }

  // The whole plan for the stepper: for every step, what is read, what is filled, and what was filled before.
  function of({ conversion: { summary, plan }, panels: [source, target, memory] }) {
    const list = plan === null ? [] : stepsOf(plan);
    const before = (n, part) => list.slice(0, n).flatMap((step) => step[part] || []);
    const cellOf = (m) => Table.indexOf(memory.table.slotAxes, { m });
    const inMemory = (addresses) => addresses.map(cellOf).filter((cell) => cell >= 0);
    return {
      count: list.length,
      summary,
      at: (n) => {
        const step = list[n];
        const marks = [
          [{ cells: cellsIn(source, step.reads), look: 'hit' }],
          [
            { cells: cellsIn(target, before(n, 'fills')), look: 'done' },
            { cells: cellsIn(target, step.fills), look: 'hit' },
          ],
        ];
        if (memory) {
          const stored = list.slice(0, n).filter((other) => other.reads.length > 0).flatMap((other) => other.memory);
          marks.push([{ cells: inMemory(stored), look: 'done' }, { cells: inMemory(step.memory), look: 'hit' }]);
        }
        return { html: step.html, marks };
      },
    };
  }

  return { of };
})();
