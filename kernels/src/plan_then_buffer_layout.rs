use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::THREADS;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "plan_then_buffer_layout",
    about: "the first column of a 4 x 16 fragment: only a few threads, far apart, hold what is read",
    shape: &[ShapeKey { default: 64, ..THREADS }],
    dtypes: &[F32],
    build: |config, _| plan_then_buffer_layout(config),
    run_time: |_| &[],
    inputs: |_| vec![scattered(F32, &[ROWS, COLS], 1)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[(F32, &[("threads", 128)])],
};

const ROWS: i64 = 4;
const COLS: i64 = 16;

/// The example of seed document 003. The first loop gives the fragment its layout, one element on each of 64 threads;
/// the second follows it to threads 0, 16, 32 and 48. TileLang accepts this but fails to lower it, since its inverse
/// of the layout cannot express which threads take part.
fn plan_then_buffer_layout(config: &Config) -> Kernel {
    kernel("plan_then_buffer_layout", |k| {
        let a = k.input("a", F32, [ROWS, COLS]);
        let b = k.output("b", F32, [ROWS]);
        k.threads(config.size("threads"));
        let fragment = k.fragment("fragment", F32, [ROWS, COLS]);
        k.parallel([ROWS, COLS], |k, [row, col]| k.store(fragment, (row, col), a.at((row, col))));
        k.parallel([2, 2], |k, [group, row_in_group]| {
            let row = group * 2 + row_in_group;
            k.store(b, (row,), fragment.at((row, 0)));
        });
    })
}

fn reference(_: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let column: Vec<f64> = elements(&inputs[0]).into_iter().step_by(COLS as usize).collect();
    vec![listed(F32, &[ROWS], &column)]
}
