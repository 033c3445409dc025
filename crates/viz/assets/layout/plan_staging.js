// Conversion through shared memory. A port of `conversion/{vectors,placement,staging}.rs` of tilewright-layout.
const PlanStaging = (() => {
  'use strict';

  const { LANES, between, at, costOf, planOf, cheapest } = PlanFragments;
  // Accesses that are measured at most before the search settles for what it has.
  const SEARCH_LIMIT = 65536;
  // Shared memory of a CTA on sm_90 and sm_100, in bytes.
  const SHARED_LIMIT = 232448;

  // ---- who stores what, and in which vectors ----

  // The one place of each element that stores it: in the warp that needs it, if that warp has it. `barrier`: 'warp'
  // where every warp reads only what it wrote.
  function ownersOf({ a, b, holders, size }) {
    const needer = new Int32Array(size).fill(-1);
    let barrier = 'warp';
    b.element.forEach((e, place) => {
      const warp = Math.floor(place / (LANES * b.registers));
      if (e < 0) return;
      if (needer[e] < 0) needer[e] = warp;
      if (needer[e] !== warp) barrier = 'cta';
    });
    const element = new Int32Array(a.element.length).fill(-1);
    const perWarp = LANES * a.registers;
    for (let e = 0; e < size; e++) {
      const near = between(holders, e, needer[e] * perWarp, (needer[e] + 1) * perWarp);
      if (near.length === 0) barrier = 'cta';
      element[near.length > 0 ? near[0] : holders.place[holders.start[e]]] = e;
    }
    return { table: { ...a, element }, barrier };
  }

  // The first element of `length` registers from `first` on, if they hold an aligned run or nothing (-1); null if not.
  function runAt(table, thread, first, length) {
    const start = at(table, thread, first);
    for (let i = 1; i < length; i++) if (at(table, thread, first + i) !== (start < 0 ? -1 : start + i)) return null;
    return start >= 0 && start % length !== 0 ? null : start;
  }

  // The runs of all threads: units of `length` registers, the units that hold something anywhere, and the first thread
  // that holds the most of them.
  function runsOf(table, length) {
    const units = Math.ceil(table.registers / length);
    const first = new Int32Array(table.threads * units);
    const used = new Array(units).fill(false);
    let [lead, most] = [0, 0];
    for (let thread = 0; thread < table.threads; thread++) {
      let present = 0;
      for (let unit = 0; unit < units; unit++) {
        const start = runAt(table, thread, unit * length, length);
        if (start === null) return null;
        first[thread * units + unit] = start;
        if (start < 0) continue;
        present += 1;
        used[unit] = true;
      }
      if (present > most) [lead, most] = [thread, present];
    }
    return { units, first, lead, most, used: [...used.keys()].filter((unit) => used[unit]) };
  }

  // Whether these units hold one aligned run in every thread that holds them.
  function isVector(table, runs, group, width, length) {
    for (let thread = 0; thread < table.threads; thread++) {
      const start = runs.first[thread * runs.units + group[0]];
      if (start >= 0 && start % width !== 0) return false;
      for (let i = 1; i < group.length; i++) {
        const wanted = start < 0 ? -1 : start + i * length;
        if (runs.first[thread * runs.units + group[i]] !== wanted) return false;
      }
    }
    return true;
  }

  // The registers of each vector of `width` elements, in order of address; null where some thread cannot.
  function vectorsOf(table, width, perWord) {
    const length = Math.min(width, perWord);
    const runs = runsOf(table, length);
    if (runs === null) return null;
    const [order, count] = [runs.used, width / length];
    if (count > 1) {
      if (order.length !== runs.most || order.length % count !== 0) return null;
      const key = (unit) => runs.first[runs.lead * runs.units + unit];
      order.sort((x, y) => key(x) - key(y) || x - y);
    }
    const groups = [];
    for (let i = 0; i < order.length; i += count) {
      const group = order.slice(i, i + count);
      if (!isVector(table, runs, group, width, length)) return null;
      groups.push(group.flatMap((unit) => Array.from({ length }, (_, slot) => unit * length + slot)));
    }
    return groups;
  }

  // The widest vectors of at most `cap` elements of `bits`, at least a byte; null where not even a byte is whole.
  // `cell`: bits that an element takes in shared memory.
  function partOf(table, cap, bits, isLoad) {
    for (let width = cap; width >= Math.max(1, 8 / bits); width /= 2) {
      const groups = vectorsOf(table, width, Math.max(1, 32 / bits));
      if (groups !== null) return { table, cell: bits, width, groups, isLoad };
    }
    return null;
  }

  // The stores and the loads; with each element in a byte of its own where one of them tears bytes apart.
  function partsOf(job, table, cap) {
    const both = (most, bits) => [partOf(table, most, bits, false), partOf(job.b, most, bits, true)];
    const parts = both(cap, job.bits);
    return parts.includes(null) ? both(1, 8) : parts;
  }

  // Byte permutes, and shifts and masks counted as selects, that take vectors out of words or put them in. An element
  // that gets a byte of its own is shifted down and masked; one from there is shifted up and joined to the others.
  function movesOf(job, { cell, groups, isLoad }) {
    const inside = groups.filter((group) => group[0] % job.perWord !== 0).length;
    if (cell === job.bits) return { permutes: inside, selects: 0 };
    return { permutes: 0, selects: isLoad ? 2 * inside : inside + groups.length };
  }

  // ---- placements in shared memory ----

  function linear(size) {
    return { text: `S[${size}:1@m]`, span: size, position: (e) => e };
  }

  function padded(size, row, pad) {
    return {
      text: `S[(${size / row},${row}):(${row + pad}@m,1@m)]`,
      span: (size / row - 1) * (row + pad) + row,
      position: (e) => e + Math.floor(e / row) * pad,
    };
  }

  function swizzled(size, m, b, s) {
    const block = 2 ** (m + b + s);
    return {
      text: `swizzle(M=${m},B=${b},S=${s}) o S[${size}:1@m]`,
      span: Math.ceil(size / block) * block,
      position: (e) => e ^ (((e >> (m + s)) & ((1 << b) - 1)) << m),
    };
  }

  function log2(power) {
    return 31 - Math.clz32(power);
  }

  // How far apart lane 0 and lane 2^i are: the rows between which padding helps.
  function strides(table) {
    const found = [];
    for (let lane = 1; lane < LANES; lane *= 2) {
      const [x, y] = [at(table, 0, 0), at(table, lane, 0)];
      if (x >= 0 && y >= 0) found.push(Math.abs(x - y));
    }
    return found;
  }

  // Placements in the order they are tried: linear, swizzled, padded. `chunk` elements stay together, aligned.
  function placements({ size }, parts, chunk) {
    const found = [linear(size)];
    const [m, bits] = [log2(chunk), size > 1 ? log2(size - 1) + 1 : 0];
    for (let b = log2(1024 / (chunk * parts[0].cell)); b >= 1; b--) {
      for (let s = b; m + b + s <= bits; s++) found.push(swizzled(size, m, b, s));
    }
    const fits = (row) => row > 1 && row < size && row % chunk === 0 && size % row === 0;
    const rows = new Set(parts.flatMap((part) => strides(part.table)).filter(fits));
    for (const row of [...rows].sort((x, y) => x - y)) found.push(padded(size, row, chunk));
    return found;
  }

  // ---- wavefronts, counted as `access.rs` of tilewright-layout counts them ----

  function pairsAgree(addresses, step) {
    return addresses.every((x, lane) => x < 0 || addresses[lane ^ step] < 0 || x === addresses[lane ^ step]);
  }

  function groupOf(addresses, width, isLoad) {
    if (width <= 4) return LANES;
    const single = width <= 8 ? LANES / 2 : LANES / 4;
    return isLoad && (pairsAgree(addresses, 1) || pairsAgree(addresses, 2)) ? single * 2 : single;
  }

  // The wavefronts of each group of lanes that is served together; addresses in bytes, -1 for idle lanes.
  function wavefronts(addresses, width, isLoad) {
    const passes = [];
    const group = groupOf(addresses, width, isLoad);
    for (let first = 0; first < LANES; first += group) {
      const [words, banks] = [new Set(), new Int32Array(32)];
      for (const address of addresses.slice(first, first + group)) {
        if (address < 0) continue;
        for (let w = Math.floor(address / 4); w <= Math.floor((address + width - 1) / 4); w++) words.add(w);
      }
      for (const w of words) banks[w % 32] += 1;
      passes.push(Math.max(...banks));
    }
    return passes;
  }

  // The positions, in elements, that the lanes of a warp access with one vector; -1 for idle lanes.
  function positionsOf(part, group, warp, placement) {
    return Array.from({ length: LANES }, (_, lane) => {
      const e = at(part.table, warp * LANES + lane, group[0]);
      return e < 0 ? -1 : placement.position(e);
    });
  }

  const bytesOf = (cells, cell) => Math.ceil((cells * cell) / 8);

  function passesOf(part, positions) {
    const addresses = positions.map((position) => (position < 0 ? -1 : (position * part.cell) / 8));
    return wavefronts(addresses, bytesOf(part.width, part.cell), part.isLoad);
  }

  const sum = (list) => list.reduce((x, y) => x + y, 0);

  // The wavefronts of the costliest warp, and whether no access has a conflict; null once `bound` is reached.
  function measure(job, parts, placement, bound, budget) {
    let [worst, free] = [0, true];
    for (let warp = 0; warp < job.warps; warp++) {
      let count = 0;
      for (const part of parts) {
        for (const group of part.groups) {
          const passes = passesOf(part, positionsOf(part, group, warp, placement));
          budget.accesses -= 1;
          count += sum(passes);
          free = free && passes.every((n) => n <= 1);
          if (count >= bound) return null;
        }
      }
      worst = Math.max(worst, count);
    }
    return { placement, wavefronts: worst, free };
  }

  // ---- plans ----

  // The placement with the fewest wavefronts for these vectors, the first of equals; null where none fits.
  function bestPlacement(job, parts, budget) {
    const { cell } = parts[0];
    const chunk = Math.max(parts[0].width, parts[1].width, 32 / cell);
    let best = null;
    for (const placement of placements(job, parts, chunk)) {
      if (bytesOf(placement.span, cell) > SHARED_LIMIT || (best !== null && budget.accesses <= 0)) continue;
      const found = measure(job, parts, placement, best === null ? Infinity : best.wavefronts, budget);
      best = found === null ? best : found;
      if (best !== null && best.free) break;
    }
    return best;
  }

  function sideOf(job, part, placement) {
    const accesses = part.groups.map((registers) => {
      const positions = Array.from({ length: job.warps }, (_, warp) => positionsOf(part, registers, warp, placement));
      const counts = positions.map((lanes) => sum(passesOf(part, lanes)));
      return { registers, addresses: positions.flat(), wavefronts: counts };
    });
    return { width: bytesOf(part.width, part.cell), accesses };
  }

  function planFor(job, parts, barrier, { placement, wavefronts: count }) {
    const [stores, loads] = parts.map((part) => part.groups.length);
    const moves = parts.map((part) => movesOf(job, part));
    const [selects, permutes] = ['selects', 'permutes'].map((kind) => sum(moves.map((move) => move[kind])));
    const { cell } = parts[0];
    const shared = {
      layout: placement.text,
      bytes: bytesOf(placement.span, cell),
      cell,
      barrier,
      store: sideOf(job, parts[0], placement),
      load: sideOf(job, parts[1], placement),
    };
    return planOf(job, 'staging', costOf({ selects, permutes, stores, loads, wavefronts: count, barrier }), { shared });
  }

  // The cheapest plan through shared memory: the widest vectors, narrower ones where those have conflicts.
  function plan(job) {
    const { table, barrier } = ownersOf(job);
    const budget = { accesses: SEARCH_LIMIT };
    const plans = [];
    let widths = '';
    for (let cap = 128 / job.bits; cap >= job.perWord; cap /= 2) {
      const parts = partsOf(job, table, cap);
      if (widths === `${parts[0].width} ${parts[1].width}`) continue;
      widths = `${parts[0].width} ${parts[1].width}`;
      const found = bestPlacement(job, parts, budget);
      if (found === null) continue;
      plans.push(planFor(job, parts, barrier, found));
      if (found.free) break;
    }
    return cheapest(plans);
  }

  return { plan };
})();
