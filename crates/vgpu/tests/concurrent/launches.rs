//! What a kernel takes from its CTA and from the launch before: registers, and results.

use tilewright_vgpu::{Fault, FaultKind, Launch, Memory, Module, Options, RunError, run};

use crate::harness::{Outcome, agreed, fault_of, launch, module, words_of};

/// Runs `body` by 384 threads; `%r1` is the thread, `%r2` the warpgroup, and `%rd1` a buffer of 384 words.
fn execute(body: &str, directive: &str, seed: u64) -> Outcome {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{directive}\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [a];\nmov.u32 %r1, %tid.x;\n\
         shr.u32 %r2, %r1, 7;\nsetp.eq.u32 %p1, %r2, 0;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd2, %rd2, %rd1;\n{body}\n}}\n"
    );
    let mut memory = Memory::new();
    let a = memory.allocate("a", vec![0; 4 * 384]);
    let options = Options { seed, ..Options::default() };
    let result = run(&module(&text), &launch(384, &[a]), &mut memory, &options).map(|_| ());
    (result, words_of(&memory, a))
}

/// One warpgroup gives registers back, and the others take `more`.
fn roles(less: u32, more: u32) -> String {
    format!(
        "@%p1 bra PRODUCER;\nsetmaxnreg.inc.sync.aligned.u32 {more};\nst.global.u32 [%rd2], %r2;\nret;\n\
         PRODUCER:\nsetmaxnreg.dec.sync.aligned.u32 {less};\nret;"
    )
}

#[test]
fn registers_are_taken_from_those_that_others_gave_back() {
    let found = agreed(|seed| execute(&roles(40, 232), "", seed));
    assert_eq!(found, (0..384).map(|thread| thread / 128).collect::<Vec<u32>>());
    // 168 registers at first: 128 of each are given back, and 64 more for each of two groups are all of them.
    let fault = fault_of(execute(&roles(48, 232), "", 0));
    assert_eq!(fault.kind, FaultKind::Deadlock);
    let waits = "232 registers for each of its threads (`setmaxnreg.inc`); the pool of the CTA has enough for";
    assert!(fault.waiting[0].what.starts_with(waits), "{fault}");
    assert!(execute(&roles(40, 72), ".maxnreg 64", 0).0.is_ok());
}

#[test]
fn a_warpgroup_changes_its_registers_together() {
    let one = "setp.lt.u32 %p2, %r1, 32;\n@!%p2 bra END;\nsetmaxnreg.dec.sync.aligned.u32 40;\nEND:\nret;";
    let fault = fault_of(execute(one, "", 0));
    let said = "the warps of a warpgroup end with [40, 168, 168, 168] registers for each thread; all four execute `setmaxnreg`";
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::IllegalInstruction, said));
}

#[test]
fn registers_that_nobody_gives_may_be_fewer_than_here() {
    // 384 threads have 168 registers each here, and maybe 128 on a device.
    assert!(execute(&roles(24, 136), "", 0).0.is_ok());
    // But it is known after the first change.
    let twice = roles(40, 168).replace("st.global", "setmaxnreg.inc.sync.aligned.u32 160;\nst.global");
    let said = fault_of(execute(&twice, "", 0)).message;
    assert_eq!(said, "this raises the registers of a thread to 160, and it has 168");
}

#[test]
fn registers_change_in_the_direction_that_is_said() {
    let said = |body: &str| fault_of(execute(body, ".maxnreg 64", 0)).message;
    let lower = "setmaxnreg.inc.sync.aligned.u32 40;\nret;";
    assert_eq!(said(lower), "this raises the registers of a thread to 40, and it has 64");
    let higher = "setmaxnreg.dec.sync.aligned.u32 80;\nret;";
    assert_eq!(said(higher), "this lowers the registers of a thread to 80, and it has 64");
}

/// Two launches: the first one writes 5 and reads word 1, and the second one, which may overlap it, executes `body`.
fn dependent(overlaps: bool, body: &str) -> Result<Vec<u32>, Box<Fault>> {
    let kernel = |body: &str| {
        format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n.reg .pred %p<4>;\n\
             .reg .b32 %r<8>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [a];\nmov.u32 %r1, %tid.x;\n\
             setp.eq.u32 %p1, %r1, 0;\n{body}\nret;\n}}\n"
        )
    };
    let mut memory = Memory::new();
    let a = memory.allocate("a", vec![0; 16]);
    let first = kernel(
        "griddepcontrol.launch_dependents;\nmov.u32 %r2, 5;\n@%p1 st.global.u32 [%rd1], %r2;\n\
                        @%p1 ld.global.u32 %r3, [%rd1+4];\n@%p1 st.global.u32 [%rd1+8], %r3;",
    );
    run(&module(&first), &launch(64, &[a]), &mut memory, &Options::default()).expect("the first launch is right");
    let second = Launch { overlaps_previous: overlaps, ..launch(64, &[a]) };
    match run(&module(&kernel(body)), &second, &mut memory, &Options::default()) {
        Ok(_) => Ok(words_of(&memory, a)),
        Err(RunError::Fault(fault)) => Err(fault),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_the_launch_before_did_is_known_after_a_wait() {
    let read = |wait: &str| format!("{wait}\n@%p1 ld.global.u32 %r2, [%rd1];\n@%p1 st.global.u32 [%rd1+12], %r2;");
    assert_eq!(dependent(false, &read("")).expect("it is right"), [5, 0, 0, 5]);
    assert_eq!(dependent(true, &read("griddepcontrol.wait;")).expect("it is right"), [5, 0, 0, 5]);
    let fault = dependent(true, &read("")).expect_err("a race");
    assert_eq!(fault.kind, FaultKind::Race);
    let said = "this read of `a` + 0 and the write at PTX line 14 in the launch before are not ordered; \
                `griddepcontrol.wait` is missing between them";
    assert!(fault.message.starts_with(said), "{}", fault.message);
    // One thread waits, and the others meet it at a barrier.
    let for_all =
        "@%p1 griddepcontrol.wait;\nbar.sync 0;\nld.global.u32 %r2, [%rd1];\n@%p1 st.global.u32 [%rd1+12], %r2;";
    assert_eq!(dependent(true, for_all).expect("it is right"), [5, 0, 0, 5]);
    let late = "ld.global.u32 %r2, [%rd1];\ngriddepcontrol.wait;\n@%p1 st.global.u32 [%rd1+12], %r2;";
    assert_eq!(dependent(true, late).expect_err("a race").kind, FaultKind::Race);
}

#[test]
fn a_write_over_what_the_launch_before_reads_waits_for_it() {
    let write = |wait: &str| format!("{wait}\nmov.u32 %r2, 9;\n@%p1 st.global.u32 [%rd1+4], %r2;");
    assert_eq!(dependent(true, &write("griddepcontrol.wait;")).expect("it is right"), [5, 9, 0, 0]);
    let fault = dependent(true, &write("")).expect_err("a race");
    assert_eq!(fault.kind, FaultKind::Race);
    assert!(fault.message.contains("the read at PTX line 15 in the launch before"), "{}", fault.message);
}

#[test]
fn variables_of_a_module_keep_their_values_between_launches() {
    let text = ".version 8.8\n.target sm_100a\n.address_size 64\n.global .align 4 .u32 count = 5;\n\
                .visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [a];\n\
                ld.global.u32 %r1, [count];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [count], %r1;\n\
                st.global.u32 [%rd1], %r1;\nret;\n}\n";
    let (one, other) = (module(text), module(text));
    let mut memory = Memory::new();
    let a = memory.allocate("a", vec![0; 4]);
    let count = |module: &Module, memory: &mut Memory| {
        run(module, &launch(1, &[a]), memory, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
        words_of(memory, a)[0]
    };
    let mut copy = memory.clone();
    assert_eq!([(); 3].map(|()| count(&one, &mut memory)), [6, 7, 8]);
    // Another module has variables of its own, and so has another memory.
    assert_eq!((count(&other, &mut memory), count(&one, &mut memory)), (6, 9));
    assert_eq!(count(&one, &mut copy), 6);
    assert_eq!(memory.buffers().count(), 1);
}
