//! Rotary embeddings: pairs of elements of each head are turned by an angle.

use tilewright::prelude::*;

/// Which elements of a head are a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// `p` and `p + depth/2`.
    Halves,
    /// `2*p` and `2*p + 1`.
    Neighbours,
}

impl Pairing {
    /// The distance from a pair to the next one, and that of the elements of a pair.
    fn strides(self, half: i64) -> (i64, i64) {
        match self {
            Pairing::Halves => (1, half),
            Pairing::Neighbours => (2, 1),
        }
    }
}

/// `x` and `y` are `tokens` x `heads` x `depth`, `cosines` and `sines` are `tokens` x `depth/2`. `depth` is even.
pub fn rope(tokens: i64, heads: i64, depth: i64, pairing: Pairing) -> Kernel {
    let half = depth / 2;
    let (next, other) = pairing.strides(half);
    // The last dimension is the pair.
    let paired = || S([tokens, heads, half, 2], [heads * depth, depth, next, other]);
    kernel("rope", |k| {
        let x = k.input("x", F16, [tokens, heads, depth]);
        let cosines = k.input("cosines", F32, [tokens, half]);
        let sines = k.input("sines", F32, [tokens, half]);
        let y = k.output("y", F16, [tokens, heads, depth]);
        let pairs = k.view("pairs", x, paired());
        let turned = k.view("turned", y, paired());
        let [token] = k.grid([tokens]);
        k.threads(64);
        k.parallel([heads, half], |k, [h, p]| {
            let a = k.named("a", pairs.at((token, h, p, 0)).cast(F32));
            let b = k.named("b", pairs.at((token, h, p, 1)).cast(F32));
            let cosine = k.named("cosine", cosines.at((token, p)));
            let sine = k.named("sine", sines.at((token, p)));
            k.store(turned, (token, h, p, 0), (a * cosine - b * sine).cast(F16));
            k.store(turned, (token, h, p, 1), (a * sine + b * cosine).cast(F16));
        });
    })
}

/// The same in plain Rust.
pub fn reference(x: &[f32], cosines: &[f32], sines: &[f32], heads: usize, depth: usize, pairing: Pairing) -> Vec<f32> {
    let half = depth / 2;
    let (next, other) = pairing.strides(half as i64);
    let mut y = vec![0.0; x.len()];
    for (token, first) in (0..x.len()).step_by(heads * depth).enumerate() {
        for (head, p) in (0..heads).flat_map(|head| (0..half).map(move |p| (head, p))) {
            let at = first + head * depth + p * next as usize;
            let (a, b) = (x[at], x[at + other as usize]);
            let (cosine, sine) = (cosines[token * half + p], sines[token * half + p]);
            y[at] = a * cosine - b * sine;
            y[at + other as usize] = a * sine + b * cosine;
        }
    }
    y
}
