use super::*;
use crate::fault::{FaultKind, RunError};
use crate::run::run;

/// A kernel that adds `n` to each of 32 words of `a`, and writes the first `n` sums to `b`.
const KERNEL: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n\
    .visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n.reg .pred %p;\n.reg .b32 %r<8>;\n\
    .reg .b64 %rd<8>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\n\
    mul.wide.u32 %rd3, %r2, 4;\nadd.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\nld.global.u32 %r3, [%rd1];\n\
    add.u32 %r3, %r3, %r1;\nsetp.lt.u32 %p, %r2, %r1;\n@%p st.global.u32 [%rd2], %r3;\nret;\n}\n";

fn module() -> Module {
    Module::parse(KERNEL).unwrap_or_else(|error| panic!("{error}"))
}

/// A folder with `a.npy`, the words 0 to 31, and `sums.npy`, the same plus 32.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, first) in [("a.npy", 0), ("sums.npy", 32)] {
        let bytes = (first..first + 32u32).flat_map(u32::to_le_bytes).collect();
        let array = Array { dtype: ElementType::U32, shape: vec![4, 8], bytes };
        std::fs::write(folder.path().join(name), array.to_file()).expect("it is written");
    }
    folder
}

const FILE: &str = r#"{
  "kernel": "add", "grid": [1, 1, 1], "block": [32, 1, 1],
  "buffers": {"a": {"npy": "a.npy"}, "b": {"poison": {"dtype": "u32", "shape": [4, 8]}}},
  "args": [{"buffer": "a"}, {"buffer": "b"}, {"u32": 32}],
  "expect": [{"buffer": "b", "dtype": "u32", "npy": "sums.npy"}]
}"#;

fn read(text: &str) -> Read<LaunchFile> {
    LaunchFile::parse(text, folder().path(), &module(), 1 << 20)
}

/// Runs the launches of a file that is right.
fn outcome(text: &str) -> (LaunchFile, Memory, Result<(), RunError>) {
    let file = read(text).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = file.memory.clone();
    let options = file.options(Options::default());
    let result = file.launches.iter().try_for_each(|launch| run(&module(), launch, &mut memory, &options).map(|_| ()));
    (file, memory, result)
}

#[test]
fn a_launch_runs_and_its_results_are_compared() {
    let (file, memory, result) = outcome(FILE);
    assert!(result.is_ok() && file.difference(&memory).is_none() && file.unwritten(&memory).is_none());
    let (file, memory, _) =
        outcome(&FILE.replace("\"npy\": \"a.npy\"", "\"zeros\": {\"dtype\": \"u32\", \"shape\": [32]}"));
    let found = file.difference(&memory).expect("a difference");
    assert_eq!(found.to_string(), "`b`[0, 1] is 32; expected: 33; elements that differ: 31 of 32");
    let (file, memory, result) = outcome(&FILE.replace("{\"u32\": 32}", "{\"u32\": 3}"));
    assert!(result.is_ok());
    assert_eq!(file.unwritten(&memory), Some(("b".to_string(), 12)));
}

#[test]
fn undefined_bits_are_faults_only_where_they_are_compared() {
    let poisoned = FILE.replace("\"npy\": \"a.npy\"", "\"poison\": {\"dtype\": \"u32\", \"shape\": [32]}");
    let (_, _, result) = outcome(&poisoned);
    let Err(RunError::Fault(fault)) = result else { panic!("{result:?}") };
    assert_eq!(fault.kind, FaultKind::UninitializedRead);
    assert!(fault.message.ends_with("the undefined bits reach `b` + 0, stored at PTX line 19"), "{}", fault.message);
    // What is compared is another buffer, which nothing undefined reaches.
    let other = poisoned
        .replace("\"buffers\": {", "\"buffers\": {\"c\": {\"npy\": \"sums.npy\"}, ")
        .replace("\"expect\": [{\"buffer\": \"b\"", "\"expect\": [{\"buffer\": \"c\"");
    let (file, memory, result) = outcome(&other);
    assert!(result.is_ok() && file.difference(&memory).is_none(), "{result:?}");
    assert!(!memory.is_written(file.buffer("b").expect("it is there"), 0));
}

#[test]
fn several_launches_share_their_buffers() {
    let launch = |from: &str, to: &str| {
        format!(
            r#"{{"kernel": "add", "grid": [1, 1, 1], "block": [32, 1, 1],
                "args": [{{"buffer": "{from}"}}, {{"buffer": "{to}", "byte_offset": 0}}, {{"u32": 32}}]}}"#
        )
    };
    let start = FILE.find("\"kernel\"").expect("a kernel");
    let end = FILE.find("\"buffers\"").expect("buffers");
    let text =
        format!("{}\"launches\": [{}, {}], {}", &FILE[..start], launch("a", "b"), launch("b", "a"), &FILE[end..]);
    let (args, expect) =
        (text.find("\"args\": [{\"buffer\": \"a\"}, {\"buffer\": \"b\"}, {\"u32\": 32}],"), "\"expect\"");
    let text = format!("{}{}", &text[..args.expect("args")], &text[text.find(expect).expect("expect")..]);
    let (file, memory, result) = outcome(&text);
    assert!(result.is_ok() && file.difference(&memory).is_none(), "{result:?}");
    let a = memory.bytes(file.buffer("a").expect("it is there"));
    assert_eq!(a[..4], 64u32.to_le_bytes());
}

/// The error for the file with one part replaced.
fn said(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "{from}");
    read(&FILE.replace(from, to)).expect_err("it is wrong").to_string()
}

#[test]
fn an_error_names_its_path() {
    assert_eq!(
        said("\"grid\"", "\"gird\""),
        "gird: unknown field `gird`, expected one of `kernel`, `grid`, `block`, `cluster`, `dynamic_shared_bytes`, \
         `args`, `launches`, `buffers`, `initial`, `expect`, `sms`, `ctas_per_sm` at line 2 column 25"
    );
    assert_eq!(said("\"kernel\": \"add\", ", ""), "missing field `kernel`");
    assert_eq!(said("\"add\"", "\"sub\""), "kernel: there is no kernel `sub`; the kernels are: `add`");
    assert!(said("[32, 1, 1]", "[32, 1]").starts_with("block: invalid length 2, expected an array of length 3"));
    assert_eq!(said("[1, 1, 1]", "[1, 0, 1]"), "grid[1]: expected a positive number");
    assert!(
        said("[1, 1, 1]", "[1, -1, 1]")
            .starts_with("grid[1]: invalid value: integer `-1`, expected an integer that is not negative")
    );
    assert_eq!(said("{\"buffer\": \"a\"}, ", ""), "args: `add` has 3 parameters; here are 2 arguments");
    assert_eq!(said("{\"u32\": 32}", "{\"u64\": 32}"), "args[2].u64: the value has 8 B; the parameter has 4");
    assert_eq!(said("{\"u32\": 32}", "{\"buffer\": \"a\"}"), "args[2]: an address has 8 B; the parameter has 4");
    assert_eq!(
        said("{\"u32\": 32}", "{\"u32\": 32, \"f32\": 1}"),
        "args[2]: an argument has one of `buffer`, `tensor_map`, `bytes` or a number such as `i32`; this has 2"
    );
    assert_eq!(
        said("{\"u32\": 32}", "{\"bytes\": \"001\"}"),
        "args[2].bytes: two hexadecimal digits are a byte; here are 3"
    );
    assert_eq!(
        said("{\"buffer\": \"a\"}", "{\"buffer\": \"c\"}"),
        "args[0].buffer: there is no buffer `c`; the buffers are: `a`, `b`"
    );
    assert_eq!(
        said("{\"buffer\": \"a\"}", "{\"buffer\": \"a\", \"byte_offset\": 129}"),
        "args[0].byte_offset: the offset 129 is past the end of `a`, which has 128 B"
    );
    assert!(said("\"npy\": \"a.npy\"", "\"npy\": \"c.npy\"").starts_with("buffers.a.npy: "));
    assert!(
        said("\"dtype\": \"u32\", \"shape\"", "\"dtype\": \"u33\", \"shape\"")
            .starts_with("buffers.b.poison.dtype: unknown name `u33`")
    );
    assert_eq!(
        said("\"npy\": \"a.npy\"", "\"npy\": \"a.npy\", \"poison\": {\"dtype\": \"u32\", \"shape\": [8]}"),
        "buffers.a: a buffer has one of `npy`, `zeros` and `poison`"
    );
    assert_eq!(said("\"b\": {\"poison\"", "\"a\": {\"poison\""), "buffers: `a` is there twice at line 3 column 40");
    assert_eq!(
        said("\"shape\": [4, 8]", "\"shape\": [4, 80000]"),
        "buffers.b.poison.shape: the buffer has 1280000 B, and 1048448 B of the memory limit are left"
    );
    assert_eq!(
        said("\"shape\": [4, 8]", "\"shape\": [4]"),
        "expect[0].npy: the array has 128 B, and the buffer `b` has 16"
    );
    assert_eq!(
        said("\"dtype\": \"u32\", \"npy\"", "\"dtype\": \"f64\", \"npy\""),
        "expect[0].dtype: the file has elements of u32, which are not the bits of f64"
    );
    assert_eq!(
        said("\"sums.npy\"", "\"sums.npy\", \"rtol\": -1"),
        "expect[0].rtol: expected a number that is not negative"
    );
    assert_eq!(said("\"kernel\"", "\"sms\": 0, \"kernel\""), "sms: expected a positive number");
    assert!(read("{").expect_err("it is cut off").to_string().contains("EOF while parsing"));
}

/// A kernel that loads a box of 8 rows of 64 elements by a tensor map, and writes it to `y`.
const TENSOR_KERNEL: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n\
    .visible .entry load(.param .align 64 .b8 map[128], .param .u64 y)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n\
    .reg .b64 %rd<8>;\n.shared .align 1024 .b8 tile[1024];\n.shared .align 8 .b8 bar[8];\nmov.b64 %rd1, map;\n\
    cvta.param.u64 %rd1, %rd1;\nld.param.u64 %rd2, [y];\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@!%p1 ret;\n\
    mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;\n\
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {0, 8}], [bar];\n\
    WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n\
    fence.proxy.async.shared::cta;\nmov.u32 %r2, 1024;\n\
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], %r2;\ncp.async.bulk.commit_group;\n\
    cp.async.bulk.wait_group 0;\nret;\n}\n";

const TENSOR_FILE: &str = r#"{
  "kernel": "load", "grid": [1, 1, 1], "block": [32, 1, 1],
  "buffers": {"x": {"zeros": {"dtype": "f16", "shape": [16, 64]}}, "y": {"poison": {"dtype": "f16", "shape": [8, 64]}}},
  "args": [{"tensor_map": {"buffer": "x", "dtype": "f16", "dims": [64, 16], "strides_bytes": [128], "box": [64, 8],
    "element_strides": [1, 1], "swizzle": "128B", "interleave": "none", "oob_fill": "zero"}}, {"buffer": "y"}]
}"#;

fn read_tensor(text: &str) -> Read<LaunchFile> {
    let module = Module::parse(TENSOR_KERNEL).unwrap_or_else(|error| panic!("{error}"));
    LaunchFile::parse(text, Path::new(""), &module, 1 << 20)
}

#[test]
fn a_tensor_map_is_an_argument() {
    let file = read_tensor(TENSOR_FILE).unwrap_or_else(|error| panic!("{error}"));
    let module = Module::parse(TENSOR_KERNEL).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = file.memory.clone();
    let result = run(&module, &file.launches[0], &mut memory, &file.options(Options::default()));
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(*memory.bytes(file.buffer("y").expect("it is there")), [0; 1024]);
}

#[test]
fn a_tensor_map_is_put_into_a_buffer() {
    let text = TENSOR_KERNEL
        .replace(".param .align 64 .b8 map[128]", ".param .u64 map")
        .replace("mov.b64 %rd1, map;\ncvta.param.u64 %rd1, %rd1;", "ld.param.u64 %rd1, [map];");
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let start = TENSOR_FILE.find("{\"tensor_map\": ").expect("it is there") + "{\"tensor_map\": ".len();
    let end = TENSOR_FILE.find("}, {\"buffer\": \"y\"}").expect("it is there");
    let map = &TENSOR_FILE[start..end];
    let with = |offset: u64| {
        let initial = format!(
            "\"initial\": [{{\"tensor_map_at\": {{\"buffer\": \"maps\", \"byte_offset\": {offset}, \"tensor_map\": {map}}}}}],"
        );
        let file =
            TENSOR_FILE.replace(&format!("{{\"tensor_map\": {map}}}"), "{\"buffer\": \"maps\", \"byte_offset\": 128}");
        let file = file.replace(
            "\"buffers\": {",
            &format!("{initial}\"buffers\": {{\"maps\": {{\"zeros\": {{\"dtype\": \"u8\", \"shape\": [256]}}}}, "),
        );
        LaunchFile::parse(&file, Path::new(""), &module, 1 << 20)
    };
    let file = with(128).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = file.memory.clone();
    let result = run(&module, &file.launches[0], &mut memory, &file.options(Options::default()));
    assert!(result.is_ok(), "{result:?}");
    let said = |offset: u64| with(offset).expect_err("it is wrong").to_string();
    assert_eq!(said(192), "initial[0].tensor_map_at.byte_offset: the buffer `maps` has 256 B; a map has 128");
    assert_eq!(said(8), "initial[0].tensor_map_at.byte_offset: the address of a tensor map is a multiple of 64 bytes");
}

#[test]
fn a_map_that_the_hardware_refuses_is_named_with_its_path() {
    let said = |from: &str, to: &str| {
        assert!(TENSOR_FILE.contains(from), "{from}");
        read_tensor(&TENSOR_FILE.replace(from, to)).expect_err("it is wrong").to_string()
    };
    assert_eq!(
        said("\"box\": [64, 8]", "\"box\": [64, 300]"),
        "args[0].tensor_map.box[1]: a box has 1 to 256 elements in a dimension; this one has 300"
    );
    assert_eq!(
        said("\"128B\"", "\"64B\""),
        "args[0].tensor_map.box[0]: a row of 128 bytes is longer than the swizzle's 64"
    );
    assert_eq!(
        said("\"box\": [64, 8]", "\"im2col\": {\"lower\": [], \"upper\": [], \"channels\": 64, \"pixels\": 8}"),
        "args[0].tensor_map.dims: images have 3 to 5 dimensions; this tensor has 2"
    );
    assert_eq!(
        said("\"box\": [64, 8],", ""),
        "args[0].tensor_map: a tensor map has either `box` or `im2col`; this one has neither"
    );
    assert_eq!(
        said("\"strides_bytes\": [128]", "\"strides_bytes\": [128, 1]"),
        "args[0].tensor_map.strides_bytes: the number of entries is 2; for a tensor of rank 2 it is 1"
    );
    assert!(said("\"none\"", "\"16B\"").starts_with("args[0].tensor_map.interleave: unknown name `16B`"));
    assert_eq!(
        said("{\"buffer\": \"x\", \"dtype\"", "{\"buffer\": \"z\", \"dtype\""),
        "args[0].tensor_map.buffer: there is no buffer `z`; the buffers are: `x`, `y`"
    );
    assert_eq!(
        said("\"dims\": [64, 16]", "\"dims\": [64, 17]"),
        "args[0].tensor_map.dims: the tensor ends 2176 B after the start of `x`, which has 2048 B"
    );
}
