// What every conversion plan is made of: the fragments as tables, who holds an element, picks, and costs. A port of
// `conversion/{table,cost,renaming}.rs` of tilewright-layout: the same tables give the same plan there and here.
const PlanFragments = (() => {
  'use strict';

  const LANES = 32;

  // The table with as many threads as asked for; those added hold nothing.
  function padded(table, threads) {
    const element = new Int32Array(threads * table.registers).fill(-1);
    element.set(table.element);
    return { threads, registers: table.registers, element };
  }

  // The places, thread * registers + register, of every element: those of `e` are place[start[e]..start[e + 1]].
  function holdersOf(table, size) {
    const start = new Int32Array(size + 1);
    for (const e of table.element) if (e >= 0) start[e + 1] += 1;
    for (let e = 0; e < size; e++) start[e + 1] += start[e];
    const next = start.slice();
    const place = new Int32Array(start[size]);
    table.element.forEach((e, at) => {
      if (e >= 0) place[next[e]++] = at;
    });
    return { start, place };
  }

  // The places of element `e` in low..high, ascending.
  function between(holders, e, low, high) {
    const first = (bound) => {
      let [from, to] = [holders.start[e], holders.start[e + 1]];
      while (from < to) {
        const middle = (from + to) >> 1;
        if (holders.place[middle] < bound) from = middle + 1;
        else to = middle;
      }
      return from;
    };
    return holders.place.subarray(first(low), first(high));
  }

  // Both fragments, as all kinds of plan read them; null where they are not two fragments of one tile.
  function jobOf(tableA, tableB, bits) {
    if (![1, 2, 4, 8, 16, 32, 64, 128].includes(bits)) return null;
    const threads = Math.ceil(Math.max(tableA.threads, tableB.threads) / LANES) * LANES;
    const [a, b] = [padded(tableA, threads), padded(tableB, threads)];
    const size = 1 + Math.max(greatest(a.element), greatest(b.element));
    const holders = holdersOf(a, size);
    for (let e = 0; e < size; e++) if (holders.start[e] === holders.start[e + 1]) return null;
    const perWord = Math.max(1, 32 / bits);
    return {
      a, b, size, bits, threads, holders, perWord,
      warps: threads / LANES,
      perByte: Math.max(1, 8 / bits),
      units: Math.max(1, bits / 32),
      words: Math.ceil(a.registers / perWord),
      targets: Math.ceil(b.registers / perWord),
    };
  }

  function greatest(elements) {
    return elements.reduce((most, e) => Math.max(most, e), -1);
  }

  // The element in a register, -1 for none.
  function at(table, thread, register) {
    return register < table.registers ? table.element[thread * table.registers + register] : -1;
  }

  // The register of `thread` in a that holds `e`: `wanted` if that one does, else the first; -1 if none.
  function ownRegister({ a, holders }, thread, wanted, e) {
    if (at(a, thread, wanted) === e) return wanted;
    const base = thread * a.registers;
    const found = between(holders, e, base, base + a.registers);
    return found.length > 0 ? found[0] - base : -1;
  }

  // For every place of b the register of the same thread in a that holds its element, -1 where there is none.
  function ownPicks(job) {
    const { registers, element } = job.b;
    const own = (e, place) => ownRegister(job, Math.floor(place / registers), place % registers, e);
    return element.map((e, place) => (e < 0 ? -1 : own(e, place)));
  }

  // What one thread picks for one word of b, as [slot, pick].
  function piecesOf({ b, perWord }, picks, thread, word) {
    const pieces = [];
    for (let slot = 0; slot < perWord && word * perWord + slot < b.registers; slot++) {
      const pick = picks[thread * b.registers + word * perWord + slot];
      if (pick >= 0) pieces.push([slot, pick]);
    }
    return pieces;
  }

  // True where a byte of a word does not come, as it is, from one byte.
  function isTorn({ perByte }, pieces) {
    const home = new Map();
    return pieces.some(([slot, pick]) => {
      const [target, source] = [Math.floor(slot / perByte), Math.floor(pick / perByte)];
      if (!home.has(target)) home.set(target, source);
      return home.get(target) !== source || pick % perByte !== slot % perByte;
    });
  }

  // The operands of one word of a thread, [value, distance] ascending, and whether a piece changes its slot. Only in a
  // torn word the distance counts.
  function operandsOf({ perWord }, pieces, torn) {
    const parts = [];
    let moved = false;
    for (const [slot, pick] of pieces) {
      const [value, distance] = [Math.floor(pick / perWord), slot - (pick % perWord)];
      moved = moved || distance !== 0;
      const part = [value, torn ? distance : 0];
      if (!parts.some((other) => other[0] === part[0] && other[1] === part[1])) parts.push(part);
    }
    return { parts: parts.sort((x, y) => x[0] - y[0] || x[1] - y[1]), moved };
  }

  // Selects and byte permutes that put the picked pieces into one word of b, in all threads; in a torn word shifts and
  // masks, which count as selects.
  function wordCost(job, picks, word) {
    const threads = Array.from({ length: job.threads }, (_, thread) => piecesOf(job, picks, thread, word));
    const torn = job.perByte > 1 && threads.some((pieces) => isTorn(job, pieces));
    const operands = [];
    let anyMoved = false;
    for (const pieces of threads) {
      const { parts, moved } = operandsOf(job, pieces, torn);
      anyMoved = anyMoved || moved;
      parts.forEach(([value, distance], i) => {
        if (operands.length === i) operands.push({ values: new Set(), shifted: 0 });
        operands[i].values.add(value);
        if (distance !== 0) operands[i].shifted = 1;
      });
    }
    const joins = Math.max(0, operands.length - 1);
    const chosen = operands.reduce((count, { values, shifted }) => count + values.size - 1 + shifted, 0);
    if (torn) return { selects: chosen + joins, permutes: 0 };
    return { selects: chosen, permutes: anyMoved || joins > 0 ? Math.max(1, joins) : 0 };
  }

  // Selects and byte permutes that put the picked pieces into the words of b.
  function assembly(job, picks) {
    let [selects, permutes] = [0, 0];
    for (let word = 0; word < job.targets; word++) {
      const cost = wordCost(job, picks, word);
      selects += cost.selects * job.units;
      permutes += cost.permutes;
    }
    return { selects, permutes };
  }

  // The parts of a cost and their total, in half clocks of one warp.
  function costOf(parts) {
    const moves = { shuffles: 0, indices: 0, selects: 0, permutes: 0 };
    const memory = { stores: 0, loads: 0, wavefronts: 0, barrier: 'none' };
    const cost = { ...moves, ...memory, ...parts };
    const { shuffles, wavefronts, indices, selects, permutes, stores, loads } = cost;
    const waiting = { none: 0, warp: 4, cta: 16 }[cost.barrier];
    cost.total = 2 * (shuffles + wavefronts) + indices + selects + permutes + stores + loads + waiting;
    return cost;
  }

  // The picks, once if all warps agree. Those below `own` are registers of a, the others own + perWord * step + slot.
  function picksOf(job, picks) {
    const perWarp = LANES * job.b.registers;
    const agree = picks.every((pick, place) => pick === picks[place % perWarp]);
    const warps = agree ? 1 : job.warps;
    const from = Array.from(picks.subarray(0, warps * perWarp));
    return { warps, registers: job.b.registers, own: job.words * job.perWord, from };
  }

  function planOf(job, kind, cost, { steps = [], picks = null, shared = null }) {
    return { kind, cost, threads: job.threads, bits: job.bits, steps, picks, shared };
  }

  // The cheapest plan, the first of equals.
  function cheapest(plans) {
    const first = (best, plan) => (best === null || plan.cost.total < best.cost.total ? plan : best);
    return plans.filter((plan) => plan !== null).reduce(first, null);
  }

  return { LANES, jobOf, between, at, ownPicks, assembly, costOf, picksOf, planOf, cheapest };
})();
