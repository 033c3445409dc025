//! PTX that is refused, because executing it as if it were something else would give a wrong result.

use super::*;
use tilewright_vgpu::PtxError;

#[test]
fn an_initialiser_without_an_address_is_refused() {
    let kernel = ".entry k()\n{\nret;\n}\n";
    for declared in [".extern .global .u32 x;", ".shared .u32 x[4];", ".func x()\n{\nret;\n}"] {
        let lines = declared.lines().count() as u32;
        let text = format!("{declared}\n.global .u64 two[2] = {{x, x+4}};\n{kernel}");
        assert_eq!(unsupported_lines(&text), [lines + 1], "{declared}");
    }
    let RunError::Unsupported(list) = refusal(&format!(".global .u64 p = generic(y);\n{kernel}")) else {
        panic!("the initialiser is unsupported")
    };
    assert_eq!(list[0].text, "`p`: the initialiser refers to `y`, which has no address here");
}

/// Why an instruction is refused.
fn reason(instruction: &str) -> String {
    let text = format!(
        ".entry k(.param .u64 to) {{\n.reg .b32 %r<4>;\n.reg .b64 %rd;\n.reg .f32 %f<3>;\n.reg .pred %p;\n{instruction}\nAGAIN:\nret;\n}}\n"
    );
    let RunError::Unsupported(list) = refusal(&text) else { panic!("{instruction} is refused") };
    let found = list.into_iter().next().map(|item| item.text).unwrap_or_default();
    let (_, reason) = found.split_once("`: ").unwrap_or_else(|| panic!("{found}"));
    reason.to_string()
}

#[test]
fn what_a_slip_meant_is_said() {
    for (instruction, said) in [
        ("ad.u32 %r1, %r1, %r2;", "`ad.u32` is not supported; did you mean `add`?"),
        (
            "st.globl.u32 [%rd], %r1;",
            "the modifier `.globl` is not supported here; did you mean `.global` in place of `.globl`?",
        ),
        ("atom.global.ad.u32 %r1, [%rd], 1;", "the operation is missing; did you mean `.add` in place of `.ad`?"),
        ("add.u32 %r1, %r1, %r7;", "`%r7` is not declared; the last of its series is `%r3`"),
        ("bra AGIN;", "`AGIN` is not declared; did you mean `AGAIN`?"),
        ("@%q bra AGAIN;", "`%q` is not declared; did you mean `%p`?"),
        ("bra %r1;", "`%r1` is not a label"),
        ("ld.param.u64 %rd, [from];", "`from` is not declared"),
    ] {
        assert_eq!(reason(instruction), said, "{instruction}");
    }
}

#[test]
fn forms_that_are_not_ptx_are_refused_with_the_nearest_one() {
    for (instruction, nearest) in [
        ("fma.f32 %f1, %f1, %f2, %f2;", "fma.rn.f32 d, a, b, c"),
        ("cvt.u32.f32 %r1, %f1;", "cvt.rni.u32.f32 d, a"),
        ("setp.lt.b32 %p, %r1, %r2;", "setp.lt.u32 p|q, a, b"),
        ("dp2a.u32.u32 %r1, %r1, %r2, %r2;", "dp2a.lo.u32.u32 d, a, b, c"),
    ] {
        let name = instruction.split('.').next().unwrap_or_default();
        assert_eq!(reason(instruction), format!("there is no such form of `{name}`; the nearest one is `{nearest}`"));
    }
    // Modifiers but types have no order.
    for right in
        ["fma.sat.ftz.rn.f32 %f1, %f1, %f2, %f2;", "add.f32.rn %f1, %f1, %f2;", "cvt.sat.rni.s32.f32 %r1, %f1;"]
    {
        let text = format!(".entry k() {{\n.reg .b32 %r<3>;\n.reg .f32 %f<3>;\n{right}\nret;\n}}\n");
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(module.unsupported("k"), Some(Vec::new().as_slice()), "{right}");
    }
}

#[test]
fn constants_are_of_the_kind_of_their_operand() {
    let whole = "a floating-point number cannot be an operand of an integer type";
    assert_eq!(reason("add.u32 %r1, %r1, 1.5;"), whole);
    assert_eq!(reason("setp.eq.s32 %p, %r1, 0f3F800000;"), whole);
    assert_eq!(
        reason("add.f32 %f1, %f1, 1;"),
        "an integer cannot be an operand of a floating-point type; write `1.0` for 1"
    );
    assert_eq!(reason("add.f16x2 %r1, %r1, 0f3F800000;"), "there are no constants of this type");
    // Bits are of either kind.
    let text = ".entry k() {\n.reg .b32 %r<2>;\nmov.b32 %r1, 0f3F800000;\nand.b32 %r1, %r1, 0xff;\nret;\n}\n";
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(module.unsupported("k"), Some(Vec::new().as_slice()));
}

#[test]
fn discarded_bytes_are_refused() {
    let outcome = execute(&with_addresses("discard.global.L2 [%rd1], 128;\nprefetch.global.L2 [%rd1];\nret;"), 1, 32);
    let Err(RunError::Unsupported(list)) = &outcome.result else { panic!("{:?}", outcome.result) };
    assert_eq!(list.iter().map(|item| item.line).collect::<Vec<_>>(), [21]);
}

#[test]
fn directives_that_are_not_known_to_be_harmless_are_refused() {
    let kernel =
        |directives: &str| format!(".entry k()\n{directives}\n{{\ncall f;\nret;\n}}\n.func f()\n{{\nret;\n}}\n");
    assert_eq!(unsupported_lines(&kernel(".reqntid 32\n.blocksareclusters")), [3]);
    let of_a_callee = kernel("").replace(".func f()", ".func f()\n.unheardof 3 (1, 2)");
    assert_eq!(unsupported_lines(&of_a_callee), [8]);
    for harmless in [".minnctapersm 2", ".maxnreg 32\n.maxclusterrank 8", ".explicitcluster\n.reqnctapercluster 1"] {
        let module = Module::parse(&kernel(harmless)).unwrap_or_else(|error| panic!("{error}"));
        let block = [32, 1, 1];
        let launch = Launch {
            kernel: "k".to_string(),
            grid: [1; 3],
            block,
            cluster: [1; 3],
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args: Vec::new(),
        };
        let result = run(&module, &launch, &mut Memory::new(), &Options::default());
        assert!(result.is_ok(), "{harmless}: {:?}", result.err());
    }
}

#[test]
fn source_locations_that_cannot_be_read_are_syntax_errors() {
    let file = ".file 1 \"k.cu\"\n";
    for (text, wrong) in [
        (format!("{file}.entry k()\n{{\n.loc 1\nret;\n}}\n"), 4),
        (format!("{file}.entry k()\n{{\n.loc one 7 3\nret;\n}}\n"), 4),
        (format!("{file}.entry k()\n{{\n.loc 1 7 3, function_name $L, inlined_at 1\nret;\n}}\n"), 4),
        (format!("{file}.entry k()\n{{\n.loc 2 7 3\nret;\n}}\n"), 4),
        (format!("{file}.entry k()\n{{\n.loc 1 7 3, function_name $L, inlined_at 2 9 1\nret;\n}}\n"), 4),
        (".file \"k.cu\"\n".to_string(), 1),
        (".file 1\n".to_string(), 1),
    ] {
        let Err(PtxError::Syntax { line, .. }) = Module::parse(&text) else { panic!("{text}") };
        assert_eq!(line, wrong, "{text}");
    }
}

/// Runs a kernel with a store at line 7 of file 1, which calls a function with a store to the same bytes at line 7 of
/// `file`.
fn two_stores_at_line_7(file: u32) -> Result<Report, RunError> {
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.file 1 \"k.cu\"\n.file 2 \"f.cuh\"\n\
         .func f(.param .u64 p)\n{{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\n.loc {file} 7 0\n\
         st.global.u32 [%rd1], 1;\nret;\n}}\n\
         .entry k(.param .u64 p)\n{{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\n.loc 1 7 0\n\
         st.global.u32 [%rd1], 2;\n{{\n.param .b64 param0;\nst.param.b64 [param0], %rd1;\ncall.uni f, (param0);\n}}\n\
         ret;\n}}\n"
    );
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = Memory::new();
    let args = vec![Arg::Buffer { buffer: memory.allocate_poison("p", 4), byte_offset: 0 }];
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [1; 3],
        block: [1; 3],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args,
    };
    let options = Options { apart: [(7, 0)].into(), ..Options::default() };
    run(&module, &launch, &mut memory, &options)
}

#[test]
fn lines_of_other_files_are_not_in_the_groups_of_the_kernel() {
    let Err(RunError::Fault(fault)) = two_stores_at_line_7(1) else { panic!("a fault is expected") };
    assert_eq!(fault.kind, FaultKind::NotApart);
    let other = two_stores_at_line_7(2);
    assert!(other.is_ok(), "{:?}", other.err());
}
