//! Kernels that begin before the launch before has ended: what they must not touch before, they wait for.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::vgpu::{self, Arg, Launch, Memory, Module, RunError};
use tilewright_kernels::{MatmulConfig, MatmulShape};
use tilewright_tests::toolchain::built_or_skipped;

/// Elements of each tensor.
const N: i64 = 4096;

/// What waits for the launch before.
const WAIT: &str = "griddepcontrol.wait;";

/// `y = 2x`, by a kernel that lets the next one begin early.
fn doubled() -> Kernel {
    kernel("doubled", |k| {
        let (x, y) = (k.input("x", F32, [N]), k.output("y", F32, [N]));
        let [cta] = k.grid([4]);
        k.threads(128);
        k.overlap_previous(&[]);
        k.parallel([N / 4], |k, [i]| k.store(y, (cta * (N / 4) + i,), x.at((cta * (N / 4) + i,)) * 2.0));
    })
}

/// `z = y*w`, of which `w` does not change.
fn weighted() -> Kernel {
    kernel("weighted", |k| {
        let (y, w, z) = (k.input("y", F32, [N]), k.input("w", F32, [N]), k.output("z", F32, [N]));
        let [cta] = k.grid([4]);
        k.threads(128);
        k.overlap_previous(&[w]);
        let held = k.fragment("held", F32, [N / 4]);
        k.copy(held, w.sub((at(cta * (N / 4), N / 4),)));
        k.parallel([N / 4], |k, [i]| k.store(z, (cta * (N / 4) + i,), y.at((cta * (N / 4) + i,)) * held.at((i,))));
    })
}

/// The same by roles: one copies stages of `y` and of `w`, the other one multiplies and stores.
fn weighted_by_roles() -> Kernel {
    kernel("weighted", |k| {
        let (y, w, z) = (k.input("y", F32, [N]), k.input("w", F32, [N]), k.output("z", F32, [N]));
        let [cta] = k.grid([4]);
        k.threads(192);
        k.overlap_previous(&[w]);
        let part = |t: Expr| (at(cta * (N / 4) + t * 128, 128),);
        let stages = k.ring("stages", 2, |r| r.shared("held_y", F32, [128]));
        let weights = k.ring("weights", 2, |r| r.shared("held_w", F32, [128]));
        k.role("load_y", 1, |k| {
            k.serial("t", 0..8, |k, t| stages.produce(k, |k, held| k.copy(held, y.sub(part(t))).variant("bulk")));
        });
        k.role("multiply", 4, |k| {
            k.serial("t", 0..8, |k, t| {
                let held_w = k.fragment("of_w", F32, [128]);
                weights.consume(k, |k, held| k.copy(held_w, held));
                stages.consume(k, |k, held| {
                    k.parallel([128], |k, [i]| {
                        k.store(z, (cta * (N / 4) + t * 128 + i,), held.at((i,)) * held_w.at((i,)));
                    });
                });
            });
        });
        k.role("load_w", 1, |k| {
            k.serial("t", 0..8, |k, t| weights.produce(k, |k, held| k.copy(held, w.sub(part(t))).variant("bulk")));
        });
    })
}

fn compiled(kernel: Kernel) -> Artifact {
    compile(kernel, &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{found:?}"))
}

fn bytes(number: impl Fn(i64) -> f32) -> Vec<u8> {
    (0..N).flat_map(|at| number(at).to_le_bytes()).collect()
}

/// Launches `doubled` and then a kernel that overlaps it, whose PTX `change` may change; what is wrong, if something is.
fn both(kernel: Kernel, seed: u64, change: impl Fn(String) -> String) -> Option<Result<(), String>> {
    let artifacts = [compiled(doubled()), compiled(kernel)];
    let built = artifacts.each_ref().map(|artifact| built_or_skipped(artifact, "overlapping launches"));
    let [Some(first), Some(second)] = built else { return None };
    let mut memory = Memory::new();
    let x = memory.allocate_read_only("x", bytes(|at| at as f32));
    let w = memory.allocate_read_only("w", bytes(|at| (at % 7) as f32));
    let (y, z) = (memory.allocate_poison("y", 4 * N as usize), memory.allocate_poison("z", 4 * N as usize));
    let texts = [first.ptx.clone(), change(second.ptx.clone())];
    let arguments = [vec![x, y], vec![y, w, z]];
    for (at, (text, buffers)) in texts.iter().zip(arguments).enumerate() {
        let (artifact, module) = (&artifacts[at], Module::parse(text).expect("PTX of NVRTC"));
        let launch = Launch {
            kernel: artifact.entry().to_string(),
            grid: [4, 1, 1],
            block: [artifact.threads() as u32, 1, 1],
            cluster: [1; 3],
            overlaps_previous: at == 1,
            dynamic_shared_bytes: artifact.dynamic_shared_bytes() as u32,
            args: buffers.into_iter().map(|buffer| Arg::Buffer { buffer, byte_offset: 0 }).collect(),
        };
        let options = vgpu::Options { seed, ..vgpu::Options::default() };
        match vgpu::run(&module, &launch, &mut memory, &options) {
            Ok(_) => {}
            Err(RunError::Fault(fault)) => return Some(Err(fault.message)),
            Err(other) => panic!("{other}"),
        }
    }
    let expected = bytes(|at| 2.0 * at as f32 * (at % 7) as f32);
    Some(if memory.bytes(z) == expected { Ok(()) } else { Err("wrong numbers".to_string()) })
}

#[test]
fn what_the_launch_before_writes_is_awaited() {
    for kernel in [weighted, weighted_by_roles] {
        for seed in 0..10 {
            let Some(found) = both(kernel(), seed, |ptx| ptx) else { return };
            assert_eq!(found, Ok(()), "schedule {seed}");
        }
    }
}

/// A role that gets its data from one that has waited is ordered after the launch before by the ring: its own wait is for what it touches
/// before, and in this kernel there is nothing.
#[test]
fn waits_for_the_launch_before_are_needed() {
    for (kernel, waits, needed) in [(weighted as fn() -> Kernel, 1, 1), (weighted_by_roles, 2, 1)] {
        let Some(built) = built_or_skipped(&compiled(kernel()), "overlapping launches") else { return };
        let places: Vec<usize> = built.ptx.match_indices(WAIT).map(|(at, _)| at).collect();
        assert_eq!(places.len(), waits);
        let without = |at: usize| format!("{}{}", &built.ptx[..at], &built.ptx[at + WAIT.len()..]);
        let found = places.iter().filter_map(|at| both(kernel(), 0, |_| without(*at)).expect("NVRTC is there").err());
        let found: Vec<String> = found.collect();
        assert!(
            found.iter().all(|message| message.contains("`griddepcontrol.wait` is missing between them")),
            "{found:?}"
        );
        assert_eq!(found.len(), needed, "{found:?}");
    }
}

/// Inputs that do not change are read before the wait, and roles that touch nothing else do not wait.
#[test]
fn unchanged_inputs_are_not_awaited() {
    let artifact = compiled(weighted());
    let cuda = artifact.cuda();
    let (held, wait) =
        (cuda.find("held, w[").expect("a copy"), cuda.rfind("wait_for_previous_launch();").expect("a wait"));
    assert!(held < wait, "{cuda}");
    let artifact = compiled(weighted_by_roles());
    let plan = artifact.plans().iter().find(|plan| plan.title == "overlap_previous").expect("a plan");
    let summary = &plan.facts().expect("facts").summary;
    assert_eq!(summary, "the launch before is awaited by role load_y, role multiply");
    assert!(artifact.overlaps_previous());
}

/// Inputs of several calls add up.
#[test]
fn unchanged_inputs_of_several_calls_add_up() {
    let both = kernel("both", |k| {
        let (v, w, y) = (k.input("v", F32, [128]), k.input("w", F32, [128]), k.output("y", F32, [128]));
        k.threads(128);
        k.overlap_previous(&[v]);
        k.overlap_previous(&[w]);
        let held = k.fragment("held", F32, [128]);
        k.map(held, |[i]| v.at((i,)) + w.at((i,)));
        k.copy(y, held);
    });
    let artifact = compiled(both);
    let (before, _) = artifact.cuda().rsplit_once("wait_for_previous_launch();").expect("a wait");
    assert!(before.contains("v[") && before.contains("w["), "{}", artifact.cuda());
}

/// A launch that allocates tensor memory before the one before has, and then waits for its end, would never get on: the next launch
/// begins when this one has its own.
#[test]
fn the_next_launch_begins_behind_the_allocation_of_tensor_memory() {
    for pair in [false, true] {
        let product = kernel("product", |k| {
            let (a, b) = (k.input("a", BF16, [256, 64]), k.input("b", BF16, [64, 64]));
            let c = k.output("c", F32, [256, 64]);
            k.overlap_previous(&[b]);
            let rank = k.cluster(2);
            k.threads(192);
            let own = if pair { 32 } else { 64 };
            let ab = k.ring("ab", 1, |r| (r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [own, 64])));
            let acc = k.ring("acc", 1, |r| r.tensor("sums", F32, [128, 64]));
            k.role("load", 1, |k| {
                ab.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub((at(rank * 128, 128), ..)));
                    k.copy(right, b.sub((if pair { at(rank * 32, 32) } else { at(0, 64) }, ..)));
                });
            });
            k.role("multiply", 1, |k| {
                acc.produce(k, |k, sums| {
                    ab.consume(k, |k, (left, right)| {
                        let gemm = Gemm { transpose_b: true, clear: true, pair, ..Gemm::PLAIN };
                        k.gemm_async(sums, left, right).with(gemm);
                    });
                });
            });
            k.role("store", 4, |k| {
                acc.consume(k, |k, sums| {
                    let held = k.fragment("held", F32, [128, 64]);
                    k.copy(held, sums);
                    k.copy(c.sub((at(rank * 128, 128), ..)), held);
                });
            });
        });
        let artifact = compiled(product);
        let cuda = artifact.cuda();
        let body = &cuda[cuda.find("__global__").expect("a kernel")..];
        let place = |text: &str| body.find(text).unwrap_or_else(|| panic!("no {text} in {body}"));
        let (allocation, begin) = (place("tensor_alloc"), place("  launch_dependents();"));
        assert!(allocation < begin && body[allocation..begin].contains("sync"), "{body}");
        assert!(begin < place("  wait_for_previous_launch();"), "{body}");
    }
}

/// The library's product loads its right factor before the launch before has ended, whichever side of the instructions that is.
#[test]
fn a_product_loads_weights_before_it_waits() {
    for (swapped, cluster) in [(false, 1), (true, 1), (false, 2)] {
        for target in Target::ALL.iter().copied() {
            let config = MatmulConfig { overlaps: true, swapped, cluster, ..MatmulConfig::new(target, BF16) };
            let kernel = config.kernel(MatmulShape::new([512, 512, 512]));
            let artifact = compile(kernel, &Options::new(target)).expect("the kernel is right");
            let branch = |role: &str| {
                let begin = artifact.cuda().find(&format!("// role {role}: warp")).expect("a role");
                let rest = &artifact.cuda()[begin..];
                &rest[..rest.find("} else if").or(rest.find("} else")).unwrap_or(rest.len())]
            };
            let (load, weights) = (branch("load"), branch("weights"));
            assert!(load.contains("wait_for_previous_launch();") && load.contains("&a_map"), "{load}");
            assert!(!weights.contains("wait_for_previous_launch();") && weights.contains("&b_map"), "{weights}");
        }
    }
}
