//! Conversions of fragments: checks every register of the destination, and the counts of the cost.

use std::collections::{BTreeMap, BTreeSet};

use tilewright::layout::access::{AccessKind, LANES, WarpAccess};
use tilewright::layout::axis::{LANEID, M, REG, TID_IN_WG, TX, WARPID, WGID, WID_IN_WG};
use tilewright::layout::conversion::{
    Conversion, ConversionKind, Cost, FragmentTable, ShuffleMode, Shuffles, Staging, find_conversion, find_conversions,
};
use tilewright::layout::{Axis, AxisRelation, Iter, RELATIONS, TileLayout};

use super::random::{Rng, built, factors, position, same, turned};

const SIZES: [i64; 20] = [8, 12, 24, 30, 36, 48, 60, 64, 72, 96, 100, 128, 144, 160, 210, 240, 256, 320, 384, 512];

/// An iter over threads at a distance of `stride`.
fn over_threads(extent: i64, stride: i64) -> Iter {
    Iter { extent, stride, axis: TX }
}

/// The same threads, expressed on other axes if possible.
fn retold(rng: &mut Rng, fragment: TileLayout) -> TileLayout {
    let [threads, warpgroups, in_warpgroup, warps] = RELATIONS;
    let ways =
        [vec![], vec![threads.clone()], vec![warpgroups.clone()], vec![threads, warps], vec![warpgroups, in_warpgroup]];
    let split = |layout: TileLayout, relation: &AxisRelation| layout.split_axis(relation).unwrap_or(layout);
    rng.pick(&ways).iter().fold(fragment, split)
}

/// A fragment on a limited number of threads: `share` percent of its iters are on threads, the rest on registers.
fn fragment(rng: &mut Rng, extents: &[i64], threads: i64, share: i64) -> TileLayout {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    rng.shuffle(&mut order);
    let mut shard = vec![Iter::memory(1, 1); extents.len()];
    let (mut replica, mut offset) = (Vec::new(), Vec::new());
    let (mut next_thread, mut next_register) = (1, 1);
    for at in order {
        let extent = extents[at];
        let iter = if next_thread * extent <= threads && rng.percent(share) {
            next_thread *= extent;
            over_threads(extent, next_thread / extent)
        } else {
            next_register *= extent;
            Iter { extent, stride: next_register / extent, axis: if rng.percent(80) { REG } else { M } }
        };
        shard[at] = turned(rng, iter, &mut offset);
    }
    if next_thread * 2 <= threads && rng.percent(35) {
        let extent = 2 + rng.below(threads / next_thread - 1);
        replica.push(over_threads(extent, next_thread));
        next_thread *= extent;
    }
    if rng.percent(10) {
        replica.push(Iter { extent: 2, stride: next_register, axis: REG });
    }
    if next_thread < threads && rng.percent(10) {
        offset.push((TX, 1 + rng.below(threads - next_thread)));
    }
    if rng.percent(10) {
        offset.push((REG, 1 + rng.below(3)));
    }
    built(shard, replica, offset)
}

/// The same threads, with registers in another order and without copies in registers.
fn with_other_registers(rng: &mut Rng, a: &TileLayout) -> TileLayout {
    let is_register = |axis: &Axis| *axis == REG || *axis == M;
    let mut shard = a.shard().to_vec();
    let mut own: Vec<usize> = (0..shard.len()).filter(|at| is_register(&shard[*at].axis)).collect();
    rng.shuffle(&mut own);
    let mut next = 1;
    for at in own {
        shard[at] = Iter { extent: shard[at].extent, stride: next, axis: REG };
        next *= shard[at].extent;
    }
    let replica = a.replica().iter().filter(|iter| !is_register(&iter.axis)).cloned().collect();
    let offset = a.offset().iter().filter(|(axis, _)| !is_register(axis));
    built(shard, replica, offset.map(|(axis, value)| (axis.clone(), *value)).collect())
}

/// A fragment that distributes a tile evenly over its warps.
fn in_warps(rng: &mut Rng, size: i64, warps: i64, share: i64) -> TileLayout {
    let extents = factors(rng, (size / warps).max(2));
    let warp = fragment(rng, &extents, 32, share);
    let shard = std::iter::once(over_threads(warps, 32)).chain(warp.shard().iter().cloned());
    let whole = built(shard.collect(), warp.replica().to_vec(), warp.offset().clone().into_iter().collect());
    retold(rng, whole)
}

fn fragments(rng: &mut Rng) -> (TileLayout, TileLayout) {
    let (warps, size, share) = (1 + rng.below(4), rng.pick(&SIZES), rng.pick(&[40, 70, 90]));
    let extents = factors(rng, size);
    let whole = fragment(rng, &extents, 32 * warps, share);
    let a = retold(rng, whole);
    let b = match rng.below(5) {
        0 => a.shard_only(),
        1 => with_other_registers(rng, &a),
        2 => return (in_warps(rng, size, warps, share), in_warps(rng, size, warps, share)),
        _ => {
            let extents = factors(rng, size);
            let whole = fragment(rng, &extents, 32 * warps, share);
            retold(rng, whole)
        }
    };
    (a, b)
}

/// The element held by each register of each thread.
type Table = BTreeMap<(i64, i64), i64>;

fn table_of(fragment: &TileLayout) -> Table {
    let mut table = Table::new();
    for element in 0..fragment.size() {
        for place in fragment.apply(element).expect("a small fragment") {
            let at = |axis: &Axis| position(&place, axis);
            let warp = 4 * at(&WGID) + at(&WARPID) + at(&WID_IN_WG);
            let thread = 32 * warp + at(&TID_IN_WG) + at(&LANEID) + at(&TX);
            let held = table.insert((thread, at(&REG) + at(&M)), element);
            assert!(held.is_none_or(|held| held == element), "{fragment} is not a fragment");
        }
    }
    table
}

/// The library's table, after comparing it with ours.
fn checked_table(fragment: &TileLayout, wanted: &Table) -> FragmentTable {
    let table = FragmentTable::of(fragment).unwrap_or_else(|e| panic!("{fragment}: {e}"));
    let most = |of: fn(&(i64, i64)) -> i64| wanted.keys().map(of).max().unwrap_or(0) as usize;
    let (last_thread, last_register) = (most(|place| place.0), most(|place| place.1));
    assert_eq!(
        (table.threads(), table.registers()),
        ((last_thread / LANES + 1) * LANES, last_register + 1),
        "{fragment}"
    );
    for (at, element) in table.elements().iter().enumerate() {
        let place = ((at / table.registers()) as i64, (at % table.registers()) as i64);
        assert_eq!(wanted.get(&place).copied().unwrap_or(-1), i64::from(*element), "{fragment} at {place:?}");
    }
    table
}

fn check_conversion(plan: &Conversion, from: &FragmentTable, wanted: &Table) -> Result<(), String> {
    let end = plan.execute(from);
    for ((thread, register), element) in wanted {
        let got = end.get(*thread as usize, *register as usize);
        same(&format!("register {register} of thread {thread}"), got, Some(*element))?;
    }
    let Cost { shuffles, indices, stores, loads, wavefronts, barrier, .. } = plan.cost;
    let moves = (shuffles, indices, stores, loads, wavefronts, barrier.name());
    match &plan.kind {
        ConversionKind::Nothing => same("cost", plan.cost, Cost::default()),
        ConversionKind::Renaming(_) => same("cost", moves, (0, 0, 0, 0, 0, "none")),
        ConversionKind::Shuffles(shuffles) => check_shuffles(plan, shuffles),
        ConversionKind::Staging(staging) => check_staging(plan, staging),
    }
}

/// Checks that every step is executed for some register, that each lane's source is as the mode specifies, and that the
/// cost counts all steps.
fn check_shuffles(plan: &Conversion, shuffles: &Shuffles) -> Result<(), String> {
    let steps = &shuffles.steps;
    let received =
        shuffles.picks.from.iter().filter_map(|pick| usize::try_from(*pick).ok()?.checked_sub(shuffles.picks.own));
    let executed: BTreeSet<usize> = received.map(|piece| piece / plan.elements_per_word()).collect();
    same("steps executed", executed.len(), steps.len())?;
    same("shuffles", plan.cost.shuffles, (steps.len() * plan.bits.div_ceil(32)) as u64)?;
    let indexed = steps.iter().filter(|step| step.mode == ShuffleMode::Indexed).count();
    same("computed source lanes", plan.cost.indices, indexed as u64)?;
    for step in steps {
        for warp in (0..plan.threads / LANES).filter_map(|warp| step.warp(warp)) {
            for (lane, source) in warp.source.iter().enumerate().filter_map(|(lane, source)| Some((lane, (*source)?))) {
                let said = match step.mode {
                    ShuffleMode::Butterfly { mask } => lane ^ mask,
                    ShuffleMode::Broadcast { lane } => lane,
                    ShuffleMode::Indexed => source,
                };
                same("source lane", (source, warp.word[source].is_some()), (said, true))?;
            }
        }
    }
    Ok(())
}

/// Recounts the wavefronts from the addresses, which must be aligned and within the tile's bytes.
fn check_staging(plan: &Conversion, staging: &Staging) -> Result<(), String> {
    let sides = [(&staging.store, AccessKind::Store), (&staging.load, AccessKind::Load)];
    let mut costliest = 0u64;
    for warp in 0..plan.threads / LANES {
        let mut sum = 0u64;
        for (side, kind) in sides {
            for access in &side.accesses {
                let bits = |lane: usize| access.addresses[warp * LANES + lane].map(|at| (at * staging.cell) as u64);
                let width = side.width as u64;
                let fits = |at: u64| at.is_multiple_of(8 * width) && at / 8 + width <= staging.bytes as u64;
                same("addresses fit", (0..LANES).filter_map(bits).all(fits), true)?;
                same("width", access.registers.len() * staging.cell, 8 * side.width)?;
                let counted = WarpAccess::of(width, kind, |lane| bits(lane).map(|at| at / 8)).wavefronts();
                same("wavefronts of an access", access.wavefronts[warp], counted)?;
                sum += u64::from(counted);
            }
        }
        costliest = costliest.max(sum);
    }
    let counts = (staging.store.accesses.len() as u64, staging.load.accesses.len() as u64);
    same("wavefronts", plan.cost.wavefronts, costliest)?;
    same("stores and loads", (plan.cost.stores, plan.cost.loads), counts)?;
    same("barrier", plan.cost.barrier, staging.barrier)
}

#[test]
fn conversions_of_random_fragments_fill_every_register() {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for case in 0..2000 {
        let mut rng = Rng::of_case(1, case);
        let (a, b) = fragments(&mut rng);
        let bits = rng.pick(&[1, 4, 8, 16, 32, 64]);
        let (held, wanted) = (table_of(&a), table_of(&b));
        let from = checked_table(&a, &held);
        checked_table(&b, &wanted);
        let plans = find_conversions(&a, &b, bits).unwrap_or_else(|e| panic!("{a} to {b}, {bits} bits: {e}"));
        for plan in &plans {
            check_conversion(plan, &from, &wanted)
                .unwrap_or_else(|e| panic!("{a} to {b}, {bits} bits: {e}\n{plan}\n{}", plan.to_json_text()));
            *kinds.entry(plan.kind.name()).or_insert(0) += 1;
        }
        let cheapest = find_conversion(&a, &b, bits).map(|plan| plan.cost.total());
        assert_eq!(cheapest, Ok(plans[0].cost.total()), "{a} to {b}, {bits} bits");
    }
    println!("{kinds:?}");
    for kind in ["nothing", "renaming", "shuffles", "staging"] {
        assert!(kinds.get(kind).is_some_and(|count| *count >= 30), "{kind}: {kinds:?}");
    }
}

/// The fragment of the same bytes with each element split into `parts`.
fn in_parts(fragment: &TileLayout, parts: i64) -> TileLayout {
    let finer = |iter: &Iter| {
        let scale = if iter.axis == REG || iter.axis == M { parts } else { 1 };
        Iter { stride: iter.stride * scale, ..iter.clone() }
    };
    let within = Iter { extent: parts, stride: 1, axis: REG };
    let shard = fragment.shard().iter().map(finer).chain([within]).collect();
    let scaled = |(axis, value): (&Axis, &i64)| (axis.clone(), if axis.is_thread() { *value } else { value * parts });
    built(shard, fragment.replica().iter().map(finer).collect(), fragment.offset().iter().map(scaled).collect())
}

#[test]
fn bytes_cost_the_same_whatever_they_are_made_of() {
    for case in 0..300 {
        let mut rng = Rng::of_case(2, case);
        let (a, b) = fragments(&mut rng);
        let (bits, parts) = rng.pick(&[(4, 2), (2, 4), (1, 8)]);
        let costs = |a: &TileLayout, b: &TileLayout, bits: i64| -> Vec<(&'static str, Cost)> {
            let plans = find_conversions(a, b, bits).unwrap_or_else(|e| panic!("{a} to {b}, {bits} bits: {e}"));
            plans.iter().map(|plan| (plan.kind.name(), plan.cost)).collect()
        };
        assert_eq!(costs(&in_parts(&a, parts), &in_parts(&b, parts), bits), costs(&a, &b, 8), "{a} to {b}");
    }
}
