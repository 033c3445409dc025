//! `convert_layout`: for pairs of fragments of all element widths, every variant that accepts the pair moves the
//! elements to the places given by the layouts.

use tilewright::compile::{LowerOptions, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{CudaText, Device, HostTensor, run};
use tilewright_tests::rng::Rng;
use tilewright_tests::toolchain::{has_no_nvrtc, skip, toolchain};

/// Fragments of 128 elements on 64 threads, in many forms.
const LAYOUTS: [&str; 10] = [
    "S[(64,2):(1@tx,1@reg)]",
    "S[(2,64):(1@reg,1@tx)]",
    "S[(2,32,2):(32@tx,1@tx,1@reg)]",
    "S[(2,2,32):(1@reg,32@tx,1@tx)]",
    "S[(8,4,4):(8@tx,1@reg,1@tx)] + R[2:4@tx]",
    "S[(4,32):(1@reg,1@tx)] + R[2:32@tx]",
    "S[(32,4):(1@tx,1@reg)] + 32@tx",
    "S[(16,8):(4@tx,1@reg)]",
    "S[(2,4,16):(1@tx,2@tx,1@reg)] + 8@tx",
    "S[(8,16):(1@tx,1@reg)] + R[8:8@tx]",
];

fn converted(name: &str, dtype: DType, from: &str, to: &str, variant: Option<&'static str>) -> Kernel {
    let layout = |text: &str| text.parse::<Layout>().expect("a layout");
    kernel(name, |k| {
        let a = k.input("a", dtype, [128]);
        let b = k.output("b", dtype, [128]);
        k.threads(64);
        let first = k.fragment("first", dtype, ([128], layout(from)));
        let second = k.fragment("second", dtype, ([128], layout(to)));
        k.serial("turn", 0..2, |k, _| {
            k.copy(first, a);
            let op = k.convert_layout(second, first);
            if let Some(variant) = variant {
                op.variant(variant);
            }
            k.copy(b, second);
        });
    })
}

/// Whether the kernel was run; `None` if the variant does not accept the pair.
fn arrives(dtype: DType, from: &str, to: &str, variant: Option<&'static str>) -> Option<bool> {
    let options = Options { lower: LowerOptions::default(), ..Options::new(Target::Sm90a) };
    let artifact = match compile(converted("converted", dtype, from, to, variant), &options) {
        Ok(artifact) => artifact,
        Err(found) if found[0].code == "P0402" && variant.is_some() => return None,
        Err(found) => panic!("{dtype} {from} to {to} by {variant:?}: {found:?}"),
    };
    let built = match toolchain().build(&artifact, &CudaText::Generated) {
        Err(failure) if has_no_nvrtc(&failure) => {
            skip("conversions");
            return Some(false);
        }
        built => built.unwrap_or_else(|failure| panic!("{failure}\n{}", artifact.cuda())),
    };
    let bytes: Vec<u8> = (0..128 * dtype.bytes()).map(|at| (at * 37 + at / 128 * 11) as u8).collect();
    let input = HostTensor::from_bytes(dtype, &[128], bytes).expect("as many bytes as elements take");
    let outcome = run(&artifact, &built, std::slice::from_ref(&input), &Device::Virtual);
    let outcome = outcome.unwrap_or_else(|failure| panic!("{from} to {to}: {failure}\n{}", artifact.cuda()));
    assert!(outcome.outputs[0] == input, "{dtype} {from} to {to} by {variant:?}\n{}", artifact.cuda());
    Some(true)
}

#[test]
fn elements_arrive_by_every_variant() {
    let mut rng = Rng::new(1418, 0);
    let mut taken = std::collections::BTreeMap::new();
    for _ in 0..40 {
        let dtype = *rng.pick(&[B8, B16, F32, B64, B128]);
        let [from, to] = [0, 1].map(|_| *rng.pick(&LAYOUTS));
        for variant in ["renaming", "shuffles", "staging"] {
            match arrives(dtype, from, to, Some(variant)) {
                Some(true) => *taken.entry(variant).or_insert(0) += 1,
                Some(false) => return,
                None => {}
            }
        }
    }
    assert!(taken.len() == 3 && taken.values().all(|count| *count >= 2), "{taken:?}");
}

/// Exchanging a lane bit with a register bit takes one shuffle, which costs less than shared memory.
#[test]
fn the_cheapest_variant_is_chosen() {
    let chosen = |from: &str, to: &str| {
        let artifact = compile(converted("chosen", F32, from, to, None), &Options::new(Target::Sm100a)).expect("legal");
        artifact.plans()[1].chosen
    };
    assert_eq!(chosen(LAYOUTS[0], LAYOUTS[0]), "renaming");
    assert_eq!(chosen("S[(2,2,16,2):(32@tx,16@tx,1@tx,1@reg)]", "S[(2,2,16,2):(32@tx,1@reg,1@tx,16@tx)]"), "shuffles");
    assert_eq!(chosen(LAYOUTS[0], LAYOUTS[1]), "staging");
}
