//! What the configuration of a product says of itself is what the compiler says of the kernel.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::diag::Diagnostic;
use tilewright::prelude::*;
use tilewright_kernels::{Activation, Epilogue, MOST_RANKED, MatmulConfig, MatmulShape, Scheduler};

/// A shape whose rows begin at multiples of 16 bytes.
const SHAPE: MatmulShape = MatmulShape::new([4096; 3]);

fn compiled(config: &MatmulConfig) -> Result<Artifact, Vec<Diagnostic>> {
    compile(config.unchecked_kernel(SHAPE), &Options::new(config.target))
}

/// Configurations of tiles, clusters and stages around the limits.
fn around_limits(target: Target) -> Vec<MatmulConfig> {
    let whole = Epilogue { bias: true, activation: Activation::Gelu, residual: true, scale: true };
    let mut all = Vec::new();
    for (at, columns) in [8, 16, 24, 40, 64, 96, 128, 200, 256, 264].into_iter().enumerate() {
        let config = MatmulConfig { columns, ..MatmulConfig::new(target, [BF16, E4M3, I8][at % 3]) };
        let config = MatmulConfig { cluster: [1, 2, 4][at % 3], sums: 1 + at as i64 % 3, ..config };
        let config = if at % 4 == 3 || at == 6 { MatmulConfig { epilogue: whole, ..config } } else { config };
        let scheduler = [Scheduler::Persistent, Scheduler::Claimed, Scheduler::Persistent, Scheduler::OneEach][at % 4];
        let config = MatmulConfig { scheduler, turns: at % 4 == 2 && columns <= 128, ..config };
        let room = target.shared_bytes() - MatmulConfig { stages: 0, ..config }.shared_bytes();
        let most = (room / config.stage_bytes()).max(1);
        all.extend([most, most + 1].map(|stages| MatmulConfig { stages, ..config }));
    }
    all
}

#[test]
fn limits_are_those_of_the_compiler() {
    for config in Target::ALL.iter().flat_map(|target| around_limits(*target)) {
        let (limits, artifact) = (config.limits(), compiled(&config));
        let found = artifact.as_ref().err();
        assert_eq!(limits.is_empty(), found.is_none(), "{config}: {limits:?}, {found:?}");
        if let Ok(artifact) = artifact {
            assert_eq!(config.shared_bytes(), artifact.dynamic_shared_bytes(), "{config}");
            let products = artifact.plans().iter().filter(|plan| plan.title.contains("gemm_async"));
            let chosen: Vec<&str> = products.map(|plan| plan.chosen).collect();
            let by_unit = ["wgmma", "tcgen05"].contains(&chosen[0]);
            assert_eq!(config.check().is_ok(), by_unit, "{config}: {chosen:?}");
        }
    }
}

#[test]
fn all_that_is_against_a_configuration_is_said() {
    let config =
        MatmulConfig { columns: 264, stages: 9, sums: 2, cluster: 3, ..MatmulConfig::new(Target::Sm100a, BF16) };
    let limits: Vec<String> = config.limits().iter().map(ToString::to_string).collect();
    let expected = [
        "bytes of shared memory of a CTA: 519808; at most 232448 \
         (CUDA C++ Programming Guide, technical specifications per compute capability)",
        "columns of tensor memory: 1024; at most 512 (PTX ISA, \"Tensor Memory Addressing\")",
        "columns of a tile: 264; multiples of 8 up to 256 (PTX ISA, \"Matrix shape\" of tcgen05.mma)",
        "CTAs of a cluster: 3; 1, 2, 4 or 8 \
         (CUDA C++ Programming Guide, technical specifications per compute capability)",
    ];
    assert_eq!(limits, expected);
    let found = compile(config.kernel(SHAPE), &Options::new(Target::Sm100a)).expect_err("it is refused");
    assert_eq!(found.iter().map(|finding| finding.code).collect::<Vec<_>>(), ["K0288"; 4]);
}

#[test]
fn a_name_tells_configurations_apart() {
    let base = MatmulConfig::new(Target::Sm100a, BF16);
    let mut names: Vec<String> = base.ranked(SHAPE).iter().map(|(config, _)| config.to_string()).collect();
    names.push(MatmulConfig { epilogue: Epilogue { bias: true, ..Epilogue::NONE }, ..base }.to_string());
    names.push(MatmulConfig { result: F32, ..base }.to_string());
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// The columns, CTAs and stages that are chosen for a shape.
fn chosen(target: Target, [m, n, k]: [i64; 3]) -> [i64; 3] {
    let best = MatmulConfig::new(target, BF16).choose(MatmulShape::new([m, n, k])).expect("a configuration");
    [best.columns, best.cluster, best.stages]
}

#[test]
fn large_products_have_wide_tiles_in_clusters() {
    let [columns, cluster, _] = chosen(Target::Sm100a, [8192, 8192, 8192]);
    assert!(columns >= 192 && cluster >= 2, "{columns} columns, {cluster} CTAs");
}

/// On `sm_90a`, tiles of half the width in turns, whose stores are hidden, cost as much as wide ones that warpgroups compute together.
#[test]
fn large_products_of_hopper_have_wide_tiles_or_turns() {
    let (shape, product) = (MatmulShape::new([8192, 8192, 8192]), MatmulConfig::new(Target::Sm90a, BF16));
    let ranked = product.ranked(shape);
    let best = |turns: bool| ranked.iter().find(|(config, _)| config.turns == turns).expect("one of them");
    let [(in_turns, first), (together, second)] = [best(true), best(false)];
    assert!(in_turns.columns == 128 && together.columns >= 192 && in_turns.cluster >= 2 && together.cluster >= 2);
    assert!((first.seconds / second.seconds - 1.0).abs() < 0.005, "{in_turns}, {together}");
}

#[test]
fn products_of_few_rows_have_narrow_tiles_and_many_stages() {
    for target in Target::ALL.iter().copied() {
        let [columns, cluster, stages] = chosen(target, [16, 4096, 7168]);
        assert!(
            columns <= 32 && cluster == 1 && stages >= 8,
            "{target}: {columns} columns, {cluster}, {stages} stages"
        );
    }
}

/// Whether CTAs copy for each other is what the compiler decides.
#[test]
fn columns_are_shared_where_the_compiler_divides_them() {
    for target in Target::ALL.iter().copied() {
        for (columns, cluster) in [(64, 1), (64, 2), (240, 2), (240, 4), (96, 4), (224, 4), (80, 2), (16, 4)] {
            for transposed in [[false, true], [true, false]] {
                for swapped in [false, true] {
                    let base =
                        MatmulConfig { columns, cluster, transposed, swapped, ..MatmulConfig::new(target, BF16) };
                    let config = MatmulConfig { stages: 2, ..base };
                    let cuda = compiled(&config).expect("a right configuration").cuda().to_string();
                    let is_of_all =
                        ["_multicast(&right[", "_multicast_of_pair(&right["].iter().any(|name| cuda.contains(name));
                    let sharing = match (is_of_all, config.is_pair()) {
                        (true, _) => cluster,
                        (false, is_pair) => 1 + i64::from(is_pair),
                    };
                    assert_eq!(sharing, config.sharing_columns(), "{config}");
                }
            }
        }
    }
}

/// Where tiles leave most SMs without work, parts of K are added in memory, if the result keeps what is added.
#[test]
fn few_tiles_are_split() {
    let shape = MatmulShape::new([128, 512, 16_384]);
    for target in Target::ALL.iter().copied() {
        let product = MatmulConfig { result: F32, ..MatmulConfig::new(target, BF16) };
        let best = product.choose(shape).expect("a configuration");
        assert!(best.splits > 1, "{best}");
        let one = product.ranked(shape).into_iter().find(|(config, _)| config.splits == 1).expect("one").1;
        assert!(best.cost(shape).seconds < one.seconds / 2.0, "{best}");
        let rounded = MatmulConfig { result: BF16, ..product }.choose(shape).expect("a configuration");
        assert_eq!(rounded.splits, 1);
        let large = product.ranked(SHAPE);
        assert!(large.iter().all(|(config, _)| config.splits == 1));
    }
}

#[test]
fn parts_of_sums_are_not_finished() {
    let config = MatmulConfig { splits: 2, ..MatmulConfig::new(Target::Sm100a, BF16) };
    let found = |config: MatmulConfig| config.limits().iter().map(|limit| limit.found.clone()).collect::<Vec<_>>();
    assert_eq!(found(config), ["a result of bf16 in parts"]);
    assert_eq!(found(MatmulConfig { result: F32, ..config }), Vec::<String>::new());
    let epilogue = Epilogue { scale: true, bias: true, ..Epilogue::NONE };
    assert_eq!(found(MatmulConfig { result: F32, epilogue, ..config }), ["an epilogue of parts of sums"]);
    assert_eq!(
        found(MatmulConfig { result: F32, epilogue: Epilogue { bias: false, ..epilogue }, ..config }),
        Vec::<String>::new()
    );
}

/// Rows that would overlap are refused.
#[test]
fn rows_do_not_overlap() {
    let shape = MatmulShape { leading: Some([64, 63, 100]), ..MatmulShape::new([96, 100, 64]) };
    let config = MatmulConfig::new(Target::Sm100a, BF16);
    for kernel in [config.kernel(shape), config.fallback(shape)] {
        let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("it is refused");
        let texts: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(texts, ["`ldb`: 63, for rows of 64 elements"]);
    }
}

#[test]
fn costs_grow_with_work() {
    let config = MatmulConfig::new(Target::Sm100a, BF16);
    let seconds = |m: i64, k: i64| config.cost(MatmulShape::new([m, 4096, k])).seconds;
    assert!(seconds(4096, 4096) < seconds(8192, 4096) && seconds(4096, 4096) < seconds(4096, 8192));
    let narrow = MatmulConfig { stages: 1, ..config };
    assert!(narrow.cost(SHAPE).seconds > config.cost(SHAPE).seconds);
    assert!(narrow.cost(SHAPE).in_flight < 1.5 && config.cost(SHAPE).in_flight >= 1.5);
}

#[test]
fn few_configurations_are_ranked() {
    for target in Target::ALL.iter().copied() {
        let ranked = MatmulConfig::new(target, BF16).ranked(SHAPE);
        assert!(!ranked.is_empty() && ranked.len() <= MOST_RANKED);
        assert!(ranked.iter().all(|(config, _)| config.check().is_ok()));
        assert!(ranked.windows(2).all(|pair| pair[0].1.seconds <= pair[1].1.seconds));
    }
}

/// Factors of 8 bits of which K is not contiguous are none that the matrix unit of `sm_90a` reads.
#[test]
fn a_product_without_a_configuration() {
    let config = MatmulConfig { transposed: [false, false], ..MatmulConfig::new(Target::Sm90a, E4M3) };
    assert_eq!(config.choose(SHAPE), None);
    assert!(config.limits().is_empty());
}

/// A product whose rate is published, as the page about products says it, and the predicted one in TFLOP/s.
const PREDICTED: [(&str, Target, DType, [i64; 3], f64); 6] = [
    ("4096 x 4096 x 4096 of bf16, B200", Target::Sm100a, BF16, [4096, 4096, 4096], 1670.0),
    ("8192 x 8192 x 8192 of bf16, B200", Target::Sm100a, BF16, [8192, 8192, 8192], 2018.0),
    ("4096 x 7168 x 16384 of e4m3, B200", Target::Sm100a, E4M3, [4096, 7168, 16384], 3642.0),
    ("16384 x 16384 x 16384 of f16, B200", Target::Sm100a, F16, [16384; 3], 2035.0),
    ("1024 x 1024 x 1024 of f16, B200", Target::Sm100a, F16, [1024; 3], 270.0),
    ("8192 x 8192 x 8192 of bf16, H100", Target::Sm90a, BF16, [8192, 8192, 8192], 784.0),
];

#[test]
fn predictions_are_those_of_the_page() {
    let page = include_str!("../../docs/matmul.md");
    for (title, target, factor, [m, n, k], expected) in PREDICTED {
        let (product, shape) = (MatmulConfig::new(target, factor), MatmulShape::new([m, n, k]));
        let best = product.choose(shape).expect("a configuration");
        let rate = shape.operations() / best.cost(shape).seconds / 1e12;
        assert_eq!(rate.round(), expected, "{title}: {best}");
        let row = page.lines().find(|line| line.starts_with(&format!("| {title} |"))).expect(title);
        assert!(row.ends_with(&format!("| {expected} |")), "{row}");
    }
}

#[test]
fn limits_of_any_numbers_are_found() {
    for target in Target::ALL.iter().copied() {
        let huge =
            MatmulConfig { columns: 1 << 30, stages: i64::MAX, sums: i64::MAX, ..MatmulConfig::new(target, BF16) };
        assert!(!huge.limits().is_empty());
        let none = MatmulConfig { columns: 0, cluster: 0, stages: 0, ..huge };
        assert!(!none.limits().is_empty() && none.cost(SHAPE).seconds > 0.0);
        let odd = MatmulConfig { columns: 20, ..MatmulConfig::new(target, BF16) };
        assert!(!odd.limits().is_empty());
    }
}

#[test]
fn configurations_of_a_batch_take_it() {
    let shape = MatmulShape { batch: 8, ..MatmulShape::new([16, 65_536, 4096]) };
    let ranked = MatmulConfig::new(Target::Sm100a, BF16).ranked(shape);
    assert!(!ranked.is_empty() && ranked.iter().all(|(config, _)| config.holds(shape)));
    assert!(ranked.iter().all(|(config, _)| config.swapped || config.columns >= 64));
}

/// What is chosen can be compiled, in every order of the factors.
#[test]
fn what_is_chosen_compiles() {
    let shape = MatmulShape::new([8192; 3]);
    for target in Target::ALL.iter().copied() {
        for factor in [BF16, E4M3, I8] {
            for transposed in [[false, false], [false, true], [true, false], [true, true]] {
                let product = MatmulConfig { transposed, result: BF16, ..MatmulConfig::new(target, factor) };
                let kernel = product.choose(shape).map_or_else(|| product.fallback(shape), |best| best.kernel(shape));
                let found = compile(kernel, &Options::new(target));
                assert!(found.is_ok(), "{target} {factor} {transposed:?}: {:?}", found.err());
            }
        }
    }
}

/// A shape of more tiles than are counted is refused.
#[test]
fn a_batch_that_is_too_large() {
    let shape = MatmulShape { batch: 600, ..MatmulShape::new([16, 64, 4096]) };
    let config = MatmulConfig { splits: 2, result: F32, ..MatmulConfig::new(Target::Sm100a, BF16) };
    assert!(!config.holds(shape));
    let found = compile(config.kernel(shape), &Options::new(Target::Sm100a)).expect_err("it is refused");
    assert_eq!(found[0].message, "1200 products of parts of K, of 16 rows and 64 columns");
}

/// The residual of a product of integers is not rounded to integers.
#[test]
fn a_residual_of_a_product_of_integers() {
    let epilogue = Epilogue { residual: true, ..Epilogue::NONE };
    let config = MatmulConfig { result: BF16, epilogue, ..MatmulConfig::new(Target::Sm100a, I8) };
    assert_eq!((config.value(), MatmulConfig { result: I32, ..config }.value()), (F32, I32));
}
