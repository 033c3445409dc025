//! What is noted and is no fault.

use tilewright_vgpu::{Arg, Launch, Memory, Module, Options, run};

/// Runs `body` by one thread; `%f1` to `%f3` are 1 + 2^-12, 1 + 2^-12 and -1. The word that it stores, and the notes.
fn execute(body: &str, contract: bool) -> (f32, Vec<(&'static str, u32)>) {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n.reg .f32 %f<8>;\n\
         .reg .pred %p<2>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [a];\nmov.f32 %f1, 0f3F800800;\nmov.f32 %f2, 0f3F800800;\n\
         mov.f32 %f3, 0fBF800000;\n{body}\nst.global.f32 [%rd1], %f5;\nret;\n}}\n"
    );
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = Memory::new();
    let buffer = memory.allocate("a", vec![0; 4]);
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [1; 3],
        block: [1; 3],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: vec![Arg::Buffer { buffer, byte_offset: 0 }],
    };
    let options = Options { contract, ..Options::default() };
    let report = run(&module, &launch, &mut memory, &options).unwrap_or_else(|error| panic!("{error}"));
    let bytes = memory.bytes(buffer);
    let value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    (value, report.notes.iter().map(|note| (note.name, note.ptx_line)).collect())
}

#[test]
fn a_product_may_be_fused_with_the_sum_after_it() {
    let (apart, fused) = (2f32.powi(-11), 2f32.powi(-11) + 2f32.powi(-24));
    let line = 14;
    for (sum, sign) in [("add.f32 %f5, %f4, %f3;", 1.0), ("add.f32 %f5, %f3, %f4;", 1.0)] {
        let body = format!("mul.f32 %f4, %f1, %f2;\n{sum}");
        assert_eq!(execute(&body, false), (sign * apart, vec![("may_contract", line)]));
        assert_eq!(execute(&body, true), (sign * fused, vec![("may_contract", line)]));
    }
    let difference = "mul.f32 %f4, %f1, %f2;\nneg.f32 %f3, %f3;\nsub.f32 %f5, %f4, %f3;";
    assert_eq!(execute(difference, true), (fused, vec![("may_contract", line + 1)]));
    let reversed = "mul.f32 %f4, %f1, %f2;\nneg.f32 %f3, %f3;\nsub.f32 %f5, %f3, %f4;";
    assert_eq!(execute(reversed, true), (-fused, vec![("may_contract", line + 1)]));
}

#[test]
fn what_is_not_fused_is_exact() {
    let bodies = [
        "mul.rn.f32 %f4, %f1, %f2;\nadd.f32 %f5, %f4, %f3;",
        "mul.f32 %f4, %f1, %f2;\nadd.rn.f32 %f5, %f4, %f3;",
        // The operand of the product is written in between.
        "mul.f32 %f4, %f1, %f2;\nmov.f32 %f1, %f3;\nadd.f32 %f5, %f4, %f3;",
        // The product is in another basic block.
        "mul.f32 %f4, %f1, %f2;\nsetp.eq.f32 %p1, %f1, %f2;\n@%p1 bra NEXT;\nmov.f32 %f6, %f1;\nNEXT:\nadd.f32 %f5, %f4, %f3;",
    ];
    for body in bodies {
        assert_eq!(execute(body, true), (2f32.powi(-11), Vec::new()), "{body}");
    }
}
