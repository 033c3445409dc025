// Conversions of one layout into another. The page contains those that it was generated with, planned in Rust; for any
// other it shows the command that plans it.
const Conversions = (() => {
  'use strict';

  // For every element width, a type of that width by its name in the layout tool.
  const DTYPES = { 4: 'e2m1', 8: 'e4m3', 16: 'f16', 32: 'f32', 64: 'f64', 128: 'b128' };

  // {summary, plan} of a conversion, the plan null if there are no steps; null for a conversion that the page was not
  // generated with. Layouts are compared in printed form, so that it does not matter how they are written.
  function find(from, to, bits) {
    const [here, there] = [Layouts.print(from), Layouts.print(to)];
    return DATA.conversions.find((known) => known.from === here && known.to === there && known.bits === bits) ?? null;
  }

  // The command that plans a conversion of a tile of `shape` and writes a page that contains it.
  function command(from, to, shape, bits) {
    const layouts = `"${Layouts.print(from)}" --to "${Layouts.print(to)}"`;
    const own = [from, to].flatMap(Layouts.axes).filter((axis) => !Axes.isKnown(axis));
    const axes = [...new Set(own)].map((axis) => ` --axis ${axis}`).join('');
    return `cargo xtask layout ${layouts} --shape ${shape.join()} --dtype ${DTYPES[bits]}${axes} --html layout.html`;
  }

  return { find, command };
})();
