// Plans the conversion of one register fragment into another: a port of `conversion/mod.rs` of tilewright-layout. Both
// give the same plan for the same tables, choice by choice; JSON.stringify(plan) is `Conversion::to_json_text`.
// Load plan_fragments.js, plan_colouring.js, plan_shuffles.js and plan_staging.js first.
const PlanKinds = (() => {
  'use strict';

  const { jobOf, at, ownPicks, assembly, costOf, picksOf, planOf } = PlanFragments;

  function inPlace(job) {
    const { registers, element } = job.b;
    const stays = (e, place) => e < 0 || at(job.a, Math.floor(place / registers), place % registers) === e;
    return element.every(stays) ? planOf(job, 'nothing', costOf({}), {}) : null;
  }

  function renaming(job) {
    const picks = ownPicks(job);
    if (picks.some((pick, place) => pick < 0 && job.b.element[place] >= 0)) return null;
    return planOf(job, 'renaming', costOf(assembly(job, picks)), { picks: picksOf(job, picks) });
  }

  // The cheapest plan of every kind, cheapest first.
  function all(job) {
    const plans = [inPlace(job), renaming(job), PlanShuffles.plan(job), PlanStaging.plan(job)];
    return plans.filter((plan) => plan !== null).sort((x, y) => x.cost.total - y.cost.total);
  }

  // The plan that costs nothing, if there is one; else the cheapest.
  function best(job) {
    const simple = inPlace(job) || renaming(job);
    if (simple !== null && simple.cost.total === 0) return simple;
    return all(job)[0] || null;
  }

  return { jobOf, all, best };
})();

// Every kind of plan that there is, cheapest first. A table is {threads, registers, element}: the element that each
// register holds at element[thread * registers + register], -1 for none. Empty where the tables are no fragments of
// one tile, for elements whose bits are no power of two from 1 to 128, and where the tile does not fit shared memory
// either.
function planConversions(tableA, tableB, bits) {
  const job = PlanKinds.jobOf(tableA, tableB, bits);
  return job === null ? [] : PlanKinds.all(job);
}

// The cheapest plan; null where there is none.
function planConversion(tableA, tableB, bits) {
  const job = PlanKinds.jobOf(tableA, tableB, bits);
  return job === null ? null : PlanKinds.best(job);
}
