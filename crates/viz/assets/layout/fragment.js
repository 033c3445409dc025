// Register fragments: layouts over the threads of a CTA and their registers.
const Fragment = (() => {
  'use strict';

  // Threads that a CTA can have (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
  const MOST_THREADS = 1024;

  // The table by thread and register that conversions and accesses work on: `element[t * registers + r]`, -1 for none,
  // and the cell of every place. Throws LayoutError if the layout is not a fragment.
  function of(model) {
    const refuse = (problem) => new LayoutError('L0113', `this is not a register fragment: ${problem}`);
    const isUsed = (a) => model.columns[a].some((position) => position !== 0);
    const foreign = model.axes.find((axis, a) => !Axes.isThread(axis) && axis !== 'm' && axis !== 'reg' && isUsed(a));
    if (foreign !== undefined) throw refuse(`\`${foreign}\` is not an axis of a register fragment`);
    const count = model.size * model.replicas;
    const [thread, register] = [new Float64Array(count), new Float64Array(count)];
    model.axes.forEach((axis, a) => {
      const [sum, step] = Axes.isThread(axis) ? [thread, Axes.THREAD_STEP[axis]] : [register, 1];
      for (let p = 0; p < count; p++) sum[p] += model.columns[a][p] * step;
    });
    const threads = span(thread, MOST_THREADS, 'threads', refuse);
    const registers = span(register, Infinity, 'registers', refuse);
    if (threads * registers > LayoutError.MOST_POINTS) throw LayoutError.tooLarge(threads * registers);
    const element = new Int32Array(threads * registers).fill(-1);
    const cells = new Int32Array(count);
    for (let p = 0; p < count; p++) {
      const [cell, held] = [thread[p] * registers + register[p], Math.floor(p / model.replicas)];
      if (element[cell] >= 0 && element[cell] !== held) {
        throw refuse(`register ${register[p]} of thread ${thread[p]} holds the elements ${element[cell]} and ${held}`);
      }
      cells[p] = cell;
      element[cell] = held;
    }
    return { threads, registers, element, cells, model };
  }

  function span(column, most, what, refuse) {
    let [least, greatest] = [0, 0];
    for (const position of column) {
      least = Math.min(least, position);
      greatest = Math.max(greatest, position);
    }
    if (least < 0 || greatest >= most) throw refuse(`${what} ${least} to ${greatest}`);
    return greatest + 1;
  }

  return { of };
})();
