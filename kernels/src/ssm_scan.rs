use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::THREADS;
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered, tensor};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "ssm_scan",
    about: "a selective state space: each channel has states that decay, take up an input, and are read out at every step",
    shape: &[
        ShapeKey { name: "batch", default: 1, about: "sequences" },
        ShapeKey { name: "length", default: 20, about: "steps of a sequence" },
        ShapeKey { name: "channels", default: 70, about: "channels" },
        ShapeKey { name: "states", default: 8, about: "states of a channel" },
        THREADS,
    ],
    dtypes: &[F32],
    build: |config, _| ssm_scan(config),
    run_time: |_| &["batch", "length", "channels"],
    inputs: |c| {
        let [batch, length, channels, states] = ["batch", "length", "channels", "states"].map(|name| c.size(name));
        let steps = elements(&scattered(F32, &[batch, length, channels], 2));
        vec![
            scattered(F32, &[batch, length, channels], 1),
            tensor(F32, &[batch, length, channels], |at| steps[at as usize].abs() / 16.0),
            tensor(F32, &[channels, states], |at| -((at % states + 1) as f64)),
            scattered(F32, &[batch, length, states], 3),
            scattered(F32, &[batch, length, states], 4),
        ]
    },
    reference,
    tolerance: |_| Tolerance { absolute: 1e-4, relative: 1e-4 },
    tested: &[
        (F32, &[("batch", 1), ("length", 1), ("channels", 1), ("states", 1)]),
        (F32, &[("length", 33), ("channels", 70), ("states", 8), ("threads", 64)]),
        (F32, &[("length", 7), ("channels", 33), ("states", 4), ("threads", 32)]),
    ],
};

/// Steps that are in shared memory at a time.
const STEPS: i64 = 16;

/// The scan of Mamba (Gu and Dao, 2023): `h = exp(delta*a)*h + delta*b*x`, `y = sum(c*h)`. A thread has the states of a channel.
fn ssm_scan(config: &Config) -> Kernel {
    let [states, threads] = ["states", "threads"].map(|name| config.size(name));
    kernel("ssm_scan", |k| {
        let (batch, length, channels) = (k.size("batch").max(65_535), k.size("length"), k.size("channels"));
        let x = k.input("x", F32, (batch, length, channels));
        let delta = k.input("delta", F32, (batch, length, channels));
        let a = k.input("a", F32, (channels, states));
        let b = k.input("b", F32, (batch, length, states));
        let c = k.input("c", F32, (batch, length, states));
        let y = k.output("y", F32, (batch, length, channels));
        let [cta, sequence] = k.grid([channels.ceil_div(threads), batch.into()]);
        k.threads(threads);
        let top = cta * threads;
        let [x_tile, delta_tile] = ["x_tile", "delta_tile"].map(|name| k.shared(name, F32, [STEPS, threads]));
        let [b_tile, c_tile] = ["b_tile", "c_tile"].map(|name| k.shared(name, F32, [STEPS, states]));
        let [h, rates, read] = ["h", "rates", "read"].map(|name| k.fragment(name, F32, [threads, states]));
        let sums = k.fragment("sums", F32, [threads]);
        k.fill(h, 0.0);
        k.copy(rates, a.sub((at(top, threads), ..)));
        k.pipelined("first", (..length).step(STEPS), 2, |k, first| {
            let part = (sequence, at(first, STEPS), at(top, threads));
            let of_all = (sequence, at(first, STEPS), ..);
            k.copy(x_tile, x.sub(part));
            k.copy(delta_tile, delta.sub(part));
            k.copy(b_tile, b.sub(of_all));
            k.copy(c_tile, c.sub(of_all));
            k.serial("s", 0..STEPS, |k, s| {
                k.parallel([threads, states], |k, [i, n]| {
                    let step = delta_tile.at((s, i));
                    let decay = (step * rates.at((i, n))).fast_exp();
                    let new = k.named("new", decay * h.at((i, n)) + step * b_tile.at((s, n)) * x_tile.at((s, i)));
                    k.store(h, (i, n), new);
                    k.store(read, (i, n), c_tile.at((s, n)) * new);
                });
                k.reduce(Sum, sums, read, 1);
                k.parallel([threads], |k, [i]| k.store(y, (sequence, first + s, top + i), sums.at((i,))));
            });
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let [x, delta, a, b, c] = [0, 1, 2, 3, 4].map(|at| elements(&inputs[at]));
    let [batch, length, channels, states] =
        ["batch", "length", "channels", "states"].map(|name| config.size(name) as usize);
    let mut y = vec![0.0; batch * length * channels];
    for (sequence, channel) in (0..batch).flat_map(|sequence| (0..channels).map(move |channel| (sequence, channel))) {
        let mut h = vec![0.0; states];
        for step in sequence * length..(sequence + 1) * length {
            let at = step * channels + channel;
            for (n, h) in h.iter_mut().enumerate() {
                *h = (delta[at] * a[channel * states + n]).exp() * *h + delta[at] * b[step * states + n] * x[at];
                y[at] += c[step * states + n] * *h;
            }
        }
    }
    vec![listed(F32, inputs[0].shape(), &y)]
}
