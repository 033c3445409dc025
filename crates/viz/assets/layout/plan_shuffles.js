// Conversion inside warps by shuffles. A port of `conversion/{needs,schedule,shuffle}.rs` of tilewright-layout.
const PlanShuffles = (() => {
  'use strict';

  const { LANES, between, at, ownPicks, assembly, costOf, picksOf, planOf, cheapest } = PlanFragments;
  const { STEP_LIMIT, colourWarps } = PlanColouring;

  // ---- needs: which lane gets which word of which other lane ----

  // The pieces of one word of a thread of a.
  function pieces(job, thread, word) {
    return Array.from({ length: job.perWord }, (_, slot) => at(job.a, thread, word * job.perWord + slot));
  }

  function lessThan(x, y) {
    for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return x[i] < y[i];
    return false;
  }

  // The word from which a lane takes an element: one that it takes already, then one with much else that it misses;
  // `spread` prefers words that are sent anyway and lanes that send little; last the nearest lane.
  function choose(job, state, lane, places) {
    let [best, key] = [null, null];
    for (const absolute of places) {
      const place = absolute - state.first;
      const [source, register] = [Math.floor(place / job.a.registers), place % job.a.registers];
      const word = Math.floor(register / job.perWord);
      const item = source * job.words + word;
      const gain = pieces(job, state.warp * LANES + source, word).filter((e) => state.missing.has(e)).length;
      const load = state.spread && !state.isSent[item] ? state.sent[source] + 1 : 0;
      const rank = [state.edgeOf.has(item) ? 0 : 1, -gain, load, source ^ lane, register];
      if (best === null || lessThan(rank, key)) [best, key] = [{ source, register, word, item }, rank];
    }
    return best;
  }

  function addEdge(job, state, { source, word, item }, lane, target) {
    state.edgeOf.set(item, state.edges.length);
    state.edges.push({ source, word, lane, target });
    if (!state.isSent[item]) state.sent[source] += 1;
    state.isSent[item] = 1;
    for (const e of pieces(job, state.warp * LANES + source, word)) state.missing.delete(e);
  }

  // Adds what one lane needs; false where an element is in no lane of the warp.
  function laneNeeds(job, state, lane, picks) {
    const { b, a, holders, perWord } = job;
    const row = (state.warp * LANES + lane) * b.registers;
    const open = [];
    for (let r = 0; r < b.registers; r++) if (b.element[row + r] >= 0 && picks[row + r] < 0) open.push(r);
    state.missing = new Set(open.map((r) => b.element[row + r]));
    state.edgeOf = new Map();
    for (const r of open) {
      const places = between(holders, b.element[row + r], state.first, state.first + LANES * a.registers);
      if (places.length === 0) return false;
      state.choice = state.choice || places.length > 1;
      const best = choose(job, state, lane, places);
      if (!state.edgeOf.has(best.item)) addEdge(job, state, best, lane, Math.floor(r / perWord));
      picks[row + r] = job.words * perWord + state.edgeOf.get(best.item) * perWord + best.register % perWord;
    }
    return true;
  }

  // What the lanes of each warp need from each other: {warps: edges, picks, choice}; null where a warp lacks something.
  // Picks from words * perWord on name an edge and a slot. `choice`: some element is in several places of a warp.
  function needsOf(job, spread) {
    const picks = ownPicks(job);
    const warps = [];
    let choice = false;
    for (let warp = 0; warp < job.warps; warp++) {
      const state = {
        warp, spread, first: warp * LANES * job.a.registers, edges: [], choice: false,
        sent: new Int32Array(LANES), isSent: new Uint8Array(LANES * job.words),
      };
      for (let lane = 0; lane < LANES; lane++) if (!laneNeeds(job, state, lane, picks)) return null;
      choice = choice || state.choice;
      warps.push(state.edges);
    }
    return { warps, picks, choice };
  }

  // ---- schedules: the steps that an edge may use ----

  // The fewest steps of any schedule: words that one lane must receive, or different words that one must send.
  function degree(warps) {
    let most = 0;
    for (const edges of warps) {
      const [receives, sends, items] = [new Int32Array(LANES), new Int32Array(LANES), new Set()];
      for (const { source, word, lane } of edges) {
        receives[lane] += 1;
        if (!items.has(word * LANES + source)) sends[source] += 1;
        items.add(word * LANES + source);
      }
      most = Math.max(most, ...receives, ...sends);
    }
    return most;
  }

  // Steps of their own for each key of edges: as many as one lane needs words of that key.
  function rangesBy(warps, keys, key) {
    const most = new Int32Array(keys);
    for (const edges of warps) {
      const count = new Int32Array(LANES * keys);
      for (const edge of edges) {
        const same = ++count[LANES * key(edge) + edge.lane];
        most[key(edge)] = Math.max(most[key(edge)], same);
      }
    }
    let next = 0;
    const ranges = Array.from(most, (length) => [next, (next += length)]);
    return { of: (edge) => ranges[key(edge)], count: next };
  }

  // The schedules that are tried: butterflies; the fewest steps; one word of a for one word of b in each step.
  function schedules(job, warps) {
    const masks = rangesBy(warps, LANES, (edge) => edge.source ^ edge.lane);
    const pairs = rangesBy(warps, job.targets * job.words, (edge) => edge.target * job.words + edge.word);
    return [
      { ranges: masks, count: masks.count },
      { ranges: null, count: degree(warps) },
      { ranges: pairs, count: pairs.count },
    ];
  }

  // ---- steps ----

  // The lanes of every step: lanes[step][warp] = {source, word}.
  function lanesOf(needs, coloured) {
    const idle = () => ({ source: new Array(LANES).fill(-1), word: new Array(LANES).fill(-1) });
    const lanes = Array.from({ length: coloured.steps }, () => needs.warps.map(idle));
    needs.warps.forEach((edges, warp) => edges.forEach((edge, i) => {
      const step = lanes[coloured.colours[warp][i]][warp];
      step.source[edge.lane] = edge.source;
      step.word[edge.source] = edge.word;
    }));
    return lanes;
  }

  // The picks with edges replaced by the steps that carry them.
  function picksByStep(job, needs, coloured) {
    const own = job.words * job.perWord;
    return needs.picks.map((pick, place) => {
      if (pick < own) return pick;
      const warp = Math.floor(place / (LANES * job.b.registers));
      const edge = Math.floor((pick - own) / job.perWord);
      return own + coloured.colours[warp][edge] * job.perWord + (pick - own) % job.perWord;
    });
  }

  function modeOf(warps) {
    const [masks, sources] = [new Set(), new Set()];
    for (const { source } of warps) {
      source.forEach((s, lane) => {
        if (s < 0) return;
        masks.add(s ^ lane);
        sources.add(s);
      });
    }
    if (masks.size === 1) return { mode: 'butterfly', mask: [...masks][0] };
    return sources.size === 1 ? { mode: 'broadcast', lane: [...sources][0] } : { mode: 'indexed' };
  }

  function wordsOf(warps) {
    return new Set(warps.flatMap(({ word }) => word.filter((w) => w >= 0)));
  }

  // ---- reading along: a lane takes what it has itself from a step that brings it to others ----

  // The piece `e` that a lane can read in a step at no cost, as [source, word, slot]; null if there is none.
  function readable(job, step, fact, warp, lane, own, e) {
    const { source, word: sent } = step[warp];
    const from = { butterfly: lane ^ fact.mask, broadcast: fact.lane, indexed: lane }[fact.mode];
    if (source[lane] >= 0 && source[lane] !== from) return null;
    const word = sent[from] < 0 && from === lane && fact.words.has(own) ? own : sent[from];
    const slot = word < 0 ? -1 : pieces(job, warp * LANES + from, word).indexOf(e);
    return slot < 0 ? null : [from, word, slot];
  }

  // The steps that serve each word of b, ascending.
  function servers(job, picks) {
    const own = job.words * job.perWord;
    const serve = Array.from({ length: job.targets }, () => new Set());
    picks.forEach((pick, place) => {
      const target = Math.floor((place % job.b.registers) / job.perWord);
      if (pick >= own) serve[target].add(Math.floor((pick - own) / job.perWord));
    });
    return serve.map((steps) => [...steps].sort((x, y) => x - y));
  }

  // Changes lanes and picks so that no lane needs a select only because it has the element itself.
  function readAlong(job, lanes, picks) {
    const { b, perWord } = job;
    const own = job.words * perWord;
    const facts = lanes.map((warps) => ({ ...modeOf(warps), words: wordsOf(warps) }));
    const serve = servers(job, picks);
    picks.forEach((pick, place) => {
      if (pick < 0 || pick >= own) return;
      const thread = Math.floor(place / b.registers);
      const [warp, lane, word] = [Math.floor(thread / LANES), thread % LANES, Math.floor(pick / perWord)];
      for (const step of serve[Math.floor((place % b.registers) / perWord)]) {
        const found = readable(job, lanes[step], facts[step], warp, lane, word, b.element[place]);
        if (found === null) continue;
        const [from, read, slot] = found;
        lanes[step][warp].source[lane] = from;
        lanes[step][warp].word[from] = read;
        picks[place] = own + step * perWord + slot;
        return;
      }
    });
  }

  // ---- plans ----

  function sameLanes(x, y) {
    return x.source.every((s, lane) => s === y.source[lane]) && x.word.every((w, lane) => w === y.word[lane]);
  }

  function planFor(job, lanes, picks) {
    const parts = { ...assembly(job, picks), shuffles: lanes.length * job.units, indices: 0 };
    const steps = lanes.map((warps) => {
      const mode = modeOf(warps);
      parts.selects += (wordsOf(warps).size - 1) * job.units;
      parts.indices += mode.mode === 'indexed' ? 1 : 0;
      return { ...mode, warps: warps.every((warp) => sameLanes(warp, warps[0])) ? [warps[0]] : warps };
    });
    return planOf(job, 'shuffles', costOf(parts), { steps, picks: picksOf(job, picks) });
  }

  // The plans of one schedule: as it is, and with lanes that read along.
  function plansOf(job, needs, { ranges, count }) {
    const coloured = colourWarps(job, needs.warps, ranges, count);
    if (coloured === null) return [];
    const [lanes, picks] = [lanesOf(needs, coloured), picksByStep(job, needs, coloured)];
    const plain = planFor(job, lanes.map((warps) => warps.map(({ source, word }) => (
      { source: source.slice(), word: word.slice() }))), picks);
    readAlong(job, lanes, picks);
    return [plain, planFor(job, lanes, picks)];
  }

  // The cheapest plan of shuffles; null where some element comes from another warp, or all are on their thread.
  function plan(job) {
    if (Math.max(job.words, job.targets) > STEP_LIMIT) return null;
    let best = null;
    for (const spread of [false, true]) {
      const needs = needsOf(job, spread);
      if (needs === null || needs.warps.every((edges) => edges.length === 0)) return null;
      for (const schedule of schedules(job, needs.warps)) {
        const least = 2 * schedule.count * job.units;
        if (schedule.count > STEP_LIMIT || (best !== null && least >= best.cost.total)) continue;
        best = cheapest([best, ...plansOf(job, needs, schedule)]);
      }
      if (!needs.choice) break;
    }
    return best;
  }

  return { plan };
})();
