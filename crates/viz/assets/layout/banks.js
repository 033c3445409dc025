// Shared memory: what an access of a warp costs in wavefronts, and which words each wavefront moves. The model is that
// of `tilewright_layout::access`: 32 banks of 4 bytes; lanes in one word merge; wide accesses are served by half
// and quarter warp, and loads whose pairs of lanes agree in groups twice as large.
const Banks = (() => {
  'use strict';

  const LANES = 32;
  const BANKS = 32;
  const WORD = 4;
  const MOST_BYTES = 16;
  // Larger patterns would keep the page waiting.
  const MOST_ELEMENTS = 2 ** 18;

  // True when every lane whose partner `n ^ step` is active too has the same address.
  function pairsAgree(addresses, step) {
    return addresses.every((a, lane) => {
      const b = addresses[lane ^ step];
      return a === null || b === null || a === b;
    });
  }

  // Lanes that are served together.
  function groupOf({ addresses, width, kind }) {
    if (width <= 4) return LANES;
    const single = width <= 8 ? LANES / 2 : LANES / 4;
    const merged = kind === 'load' && (pairsAgree(addresses, 1) || pairsAgree(addresses, 2));
    return merged ? single * 2 : single;
  }

  // The distinct words that lanes `first .. first + count` touch, in the order of the lanes, with the lanes of each.
  function wordsOf({ addresses, width }, first, count) {
    const lanesOf = new Map();
    for (let lane = first; lane < first + count; lane++) {
      if (addresses[lane] === null) continue;
      const last = Math.floor((addresses[lane] + width - 1) / WORD);
      for (let word = Math.floor(addresses[lane] / WORD); word <= last; word++) {
        if (!lanesOf.has(word)) lanesOf.set(word, []);
        lanesOf.get(word).push(lane);
      }
    }
    return [...lanesOf].map(([word, lanes]) => ({ word, lanes }));
  }

  // The words of one group distributed over wavefronts: each takes the next word of every bank.
  function wavefrontsOf(words) {
    const taken = new Array(BANKS).fill(0);
    const wavefronts = [];
    for (const entry of words) {
      const turn = taken[entry.word % BANKS]++;
      if (!wavefronts[turn]) wavefronts[turn] = [];
      wavefronts[turn].push(entry);
    }
    return wavefronts;
  }

  // The groups of one access, without those whose lanes are all inactive: `{first, count, wavefronts, ideal}`.
  function groups(access) {
    const count = groupOf(access);
    const found = [];
    for (let first = 0; first < LANES; first += count) {
      const words = wordsOf(access, first, count);
      if (words.length === 0) continue;
      found.push({ first, count, wavefronts: wavefrontsOf(words), ideal: Math.ceil(words.length / BANKS) });
    }
    return found;
  }

  const sum = (list, value) => list.reduce((total, item) => total + value(item), 0);

  // Wavefronts of one access `{addresses, width, kind}`: 32 byte addresses, null for an inactive lane.
  function cost(access) {
    const found = groups(access);
    return { wavefronts: sum(found, (g) => g.wavefronts.length), ideal: sum(found, (g) => g.ideal) };
  }

  const bytesOf = (vector, bits) => Math.max(1, (vector * bits) / 8);

  // The vector widths, in elements, that one instruction may move.
  function legalVectors(bits) {
    const legal = [1, 2, 4, 8, 16, 32].filter((vector) => vector * bits <= MOST_BYTES * 8);
    return legal.filter((vector) => vector === 1 || vector * bits >= 8);
  }

  // True if every lane has all elements of its vectors, contiguous and aligned.
  function allows(fragment, address, vector) {
    const { threads, registers, element } = fragment;
    for (let thread = 0; thread < threads; thread++) {
      for (let first = 0; first < registers; first += vector) {
        const end = Math.min(first + vector, registers);
        const held = element.subarray(thread * registers + first, thread * registers + end).filter((e) => e >= 0);
        if (held.length === 0) continue;
        const start = address[held[0]];
        const together = held.every((e, i) => address[e] === start + i);
        if (held.length < vector || !together || start % vector !== 0) return false;
      }
    }
    return true;
  }

  function problem(message) {
    return new LayoutError('L0110', message);
  }

  // Addresses in elements of linear memory, without replicas; throws LayoutError if the layout is not on `m` alone.
  function memory(model) {
    const foreign = model.axes.find((axis) => axis !== 'm');
    if (foreign !== undefined || model.axes.length === 0) {
      throw problem(`only linear memory \`m\` has banks; this tile is also on \`${foreign || 'no axis'}\``);
    }
    const [addresses] = model.base;
    const lowest = addresses.reduce((least, address) => Math.min(least, address), 0);
    if (lowest < 0) throw problem(`a tile in shared memory begins at 0; this one reaches ${lowest}`);
    return addresses;
  }

  // The instructions with which `pattern`, a layout on lanes over the same elements, touches `model`. Element e of lane
  // L as its r-th element is moved by instruction floor(r / vector). `wanted` 0 takes the widest vector.
  function accesses(model, pattern, bits, kind, wanted) {
    const address = memory(model);
    if (pattern.size !== model.size) {
      throw problem(`the access pattern has ${pattern.size} elements, the layout ${model.size}`);
    }
    if (model.size > MOST_ELEMENTS) {
      throw problem(`${model.size} elements; at most ${MOST_ELEMENTS} can be stepped through`);
    }
    const fragment = Fragment.of(pattern);
    const legal = legalVectors(bits).filter((vector) => allows(fragment, address, vector));
    if (wanted && !legal.includes(wanted)) {
      throw problem(`no vectors of ${wanted}: a lane's ${wanted} elements are not together, aligned, within 16 bytes`);
    }
    const vector = wanted || legal[legal.length - 1];
    return { vector, legal, list: instructions(fragment, address, bits, kind, vector) };
  }

  function instructions(fragment, address, bits, kind, vector) {
    const { threads, registers, element } = fragment;
    const list = [];
    for (let warp = 0; warp * LANES < threads; warp++) {
      for (let index = 0; index * vector < registers; index++) {
        const elements = Array.from({ length: LANES }, (_, lane) => {
          const thread = warp * LANES + lane;
          const at = thread * registers + index * vector;
          return thread < threads && element[at] >= 0 ? [...element.subarray(at, at + vector)] : null;
        });
        if (elements.every((lane) => lane === null)) continue;
        const addresses = elements.map((lane) => lane && Math.floor((address[lane[0]] * bits) / 8));
        list.push({ warp, index, elements, addresses, width: bytesOf(vector, bits), kind });
      }
    }
    return list;
  }

  // The whole pattern: totals, each instruction's cost, and its wavefronts one by one through `step(n)`.
  function wavefronts(model, pattern, bits, kind = 'load', wanted = 0) {
    const { vector, legal, list } = accesses(model, pattern, bits, kind, wanted);
    const costs = list.map(cost);
    const starts = [0];
    for (const one of costs) starts.push(starts[starts.length - 1] + one.wavefronts);
    const address = memory(model);
    const step = (n) => stepOf(list, starts, n, (element) => (address[element] * bits) / 8, bits / 8);
    return {
      vector, legal, list, costs, step,
      total: starts[starts.length - 1],
      ideal: sum(costs, (one) => one.ideal),
    };
  }

  // Wavefront `n` of all: its instruction, its group with all wavefronts of that, its words and elements.
  function stepOf(list, starts, n, byteOf, bytes) {
    const at = starts.findIndex((start) => start > n) - 1;
    if (at < 0) return null;
    const access = list[at];
    let turn = n - starts[at];
    for (const group of groups(access)) {
      if (turn < group.wavefronts.length) {
        const words = group.wavefronts[turn];
        const elements = elementsIn(access, words, byteOf, bytes);
        return { instruction: at, instructions: list.length, access, group, turn, words, elements };
      }
      turn -= group.wavefronts.length;
    }
    return null;
  }

  // The elements that are in these words and belong to a lane that requests them.
  function elementsIn(access, words, byteOf, bytes) {
    const found = new Set();
    for (const { word, lanes } of words) {
      for (const element of lanes.flatMap((lane) => access.elements[lane])) {
        const byte = byteOf(element);
        if (byte + bytes > word * WORD && byte < (word + 1) * WORD) found.add(element);
      }
    }
    return [...found];
  }

  return { LANES, BANKS, WORD, cost, groupOf, legalVectors, memory, wavefronts };
})();
