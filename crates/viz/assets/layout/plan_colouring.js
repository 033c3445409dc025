// Edge colouring: a step for every word that one lane of a warp needs from another. A port of
// `conversion/colouring.rs` of tilewright-layout.
//
// In one step a lane receives once, and sends one word, to any number of lanes. Where every word goes to one lane this
// is the edge colouring of a bipartite multigraph, and Koenig's exchange of two colours gives as many steps as the
// greatest degree; where words go to several lanes the same exchange is tried and may fail, which takes another step.
const PlanColouring = (() => {
  'use strict';

  const LANES = PlanFragments.LANES;
  const STEP_LIMIT = 256;
  const REPAIR_LIMIT = 64;

  // What the steps do in all warps so far: the words they send, and the words of b that they are received for.
  function paletteOf(job, count) {
    const palette = { words: job.words, targets: job.targets, steps: [], used: new Int32Array(job.targets) };
    while (palette.steps.length < count) addStep(palette);
    return palette;
  }

  function addStep(palette) {
    const { words, targets } = palette;
    palette.steps.push({ sent: new Int32Array(words), senders: 0, received: new Int32Array(targets) });
  }

  // How little a step suits an edge: 0 where it already sends that word, and is received for that target.
  function misfit(palette, at, { word, target }) {
    const { sent, senders, received } = palette.steps[at];
    const send = sent[word] > 0 ? 0 : senders === 0 ? 1 : 2;
    const receive = received[target] > 0 ? 0 : palette.used[target] === 0 ? 1 : 2;
    return send + receive;
  }

  // One step of one warp: the edge that each lane receives, the lanes that each lane sends to (bits), and what.
  function emptyStep() {
    return { edge: new Int32Array(LANES).fill(-1), to: new Uint32Array(LANES), word: new Int32Array(LANES) };
  }

  function canSend(step, { source, word }) {
    return step.to[source] === 0 || step.word[source] === word;
  }

  // The open step of low..high that suits the edge best: one that already sends it, then the least misfit.
  function bestOpen(warp, palette, edge, [low, high]) {
    let [best, least] = [-1, Infinity];
    for (let at = low; at < high; at++) {
      const step = warp[at];
      if (step.edge[edge.lane] >= 0 || !canSend(step, edge)) continue;
      const rank = (step.to[edge.source] === 0 ? 8 : 0) + misfit(palette, at, edge);
      if (rank < least) [best, least] = [at, rank];
    }
    return best;
  }

  function place(warp, palette, edges, index, at) {
    const { source, word, lane, target } = edges[index];
    const [step, shared] = [warp[at], palette.steps[at]];
    if (step.to[source] === 0) {
      shared.sent[word] += 1;
      shared.senders += 1;
    }
    step.edge[lane] = index;
    step.to[source] |= 1 << lane;
    step.word[source] = word;
    shared.received[target] += 1;
    palette.used[target] += 1;
  }

  function has(lanes, lane) {
    return ((lanes >>> lane) & 1) === 1;
  }

  // The lanes that the edges of two steps connect with receiving `lane`: receivers and senders, as bits.
  function component(x, y, edges, lane) {
    let [receivers, senders] = [(1 << lane) >>> 0, 0];
    for (;;) {
      for (let d = 0; d < LANES; d++) {
        if (!has(receivers, d)) continue;
        for (const index of [x.edge[d], y.edge[d]]) if (index >= 0) senders |= 1 << edges[index].source;
      }
      let next = receivers;
      for (let s = 0; s < LANES; s++) if (has(senders, s)) next = (next | x.to[s] | y.to[s]) >>> 0;
      if (next === receivers) return { receivers, senders };
      receivers = next;
    }
  }

  // Adds what these lanes do in a step to the palette, or takes it away.
  function count(palette, edges, warp, at, lanes, sign) {
    const [step, shared] = [warp[at], palette.steps[at]];
    for (let lane = 0; lane < LANES; lane++) {
      if (has(lanes.senders, lane) && step.to[lane] !== 0) {
        shared.sent[step.word[lane]] += sign;
        shared.senders += sign;
      }
      const index = step.edge[lane];
      if (has(lanes.receivers, lane) && index >= 0) shared.received[edges[index].target] += sign;
    }
  }

  function exchange(palette, edges, warp, p, q, lanes) {
    const [x, y] = [warp[p], warp[q]];
    for (const at of [p, q]) count(palette, edges, warp, at, lanes, -1);
    for (let lane = 0; lane < LANES; lane++) {
      if (has(lanes.receivers, lane)) [x.edge[lane], y.edge[lane]] = [y.edge[lane], x.edge[lane]];
      if (has(lanes.senders, lane)) {
        [x.to[lane], y.to[lane]] = [y.to[lane], x.to[lane]];
        [x.word[lane], y.word[lane]] = [y.word[lane], x.word[lane]];
      }
    }
    for (const at of [p, q]) count(palette, edges, warp, at, lanes, 1);
  }

  // Opens a step for the edge: one where the source is free, by exchanging it with one where the lane is free.
  function repair(warp, palette, edges, edge) {
    let tries = 0;
    for (let p = 0; p < warp.length; p++) {
      if (warp[p].edge[edge.lane] >= 0) continue;
      for (let q = 0; q < warp.length; q++) {
        if (!canSend(warp[q], edge)) continue;
        const lanes = component(warp[p], warp[q], edges, edge.lane);
        if (!has(lanes.senders, edge.source)) {
          exchange(palette, edges, warp, p, q, lanes);
          return q;
        }
        tries += 1;
        if (tries === REPAIR_LIMIT) return -1;
      }
    }
    return -1;
  }

  // The step of each edge of one warp; null where more than STEP_LIMIT would be needed.
  function colour(edges, palette, ranges) {
    const warp = palette.steps.map(emptyStep);
    for (let index = 0; index < edges.length; index++) {
      const edge = edges[index];
      let at = bestOpen(warp, palette, edge, ranges === null ? [0, warp.length] : ranges.of(edge));
      if (at < 0) at = repair(warp, palette, edges, edge);
      if (at < 0) {
        at = warp.length;
        if (at === STEP_LIMIT) return null;
        addStep(palette);
        warp.push(emptyStep());
      }
      place(warp, palette, edges, index, at);
    }
    const colours = new Int32Array(edges.length);
    warp.forEach((step, at) => step.edge.forEach((index) => {
      if (index >= 0) colours[index] = at;
    }));
    return colours;
  }

  function sameEdges(x, y) {
    const same = (e, f) => e.source === f.source && e.word === f.word && e.lane === f.lane && e.target === f.target;
    return x.length === y.length && x.every((edge, i) => same(edge, y[i]));
  }

  // The step of every edge of every warp, in `count` steps or more; warps with the same edges get the same steps.
  // `ranges` says which steps an edge may use, null all.
  function colourWarps(job, warps, ranges, count) {
    const palette = paletteOf(job, count);
    const colours = [];
    for (const edges of warps) {
      const twin = warps.findIndex((other) => sameEdges(other, edges));
      const found = twin < colours.length ? colours[twin] : colour(edges, palette, ranges);
      if (found === null) return null;
      colours.push(found);
    }
    return { colours, steps: palette.steps.length };
  }

  return { STEP_LIMIT, colourWarps };
})();
