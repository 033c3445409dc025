//! Mutations: a small correct program, and one change per rule that must be reported with that rule's code.

use super::*;
use crate::scalar::Scalar;
use crate::target::Target;
use crate::thread::inst::Inst;
use crate::thread::program::{Call, Cond, Note};
use crate::thread::registers::RegArray;
use crate::thread::value::Value;
use crate::tile::{ElementOp, Narrowing};
use tilewright_layout::DType;

struct Fixture {
    program: Program,
    a: Handle<Memory>,
    t: Handle<Memory>,
    r: Handle<RegArray>,
    lane: Expr,
}

fn memory(name: &str, space: MemorySpace, elements: i64) -> Memory {
    Memory::new(name, DType::F32, elements, (space, 16), Span::here())
}

fn fixture() -> Fixture {
    let mut program = Program::new("k", Target::Sm100a, 64);
    let a = program.memories.push(memory("a", MemorySpace::Global { read_only: true, may_alias: false }, 64));
    let t = program.memories.push(memory("t", MemorySpace::Shared, 64));
    let r = program.registers.push(RegArray { name: "r".to_string(), dtype: DType::F32, len: 4, vector: 1 });
    Fixture { program, a, t, r, lane: Expr::var(&Var::new("lane", 0, 31)) }
}

impl Fixture {
    fn regs(&self, first: i64, count: i64) -> Regs {
        Regs { array: self.r, first: Expr::constant(first), count, step: 1 }
    }

    fn load(&self, index: Expr, first: i64, count: i64) -> Stmt {
        Stmt::Load { to: self.regs(first, count), memory: self.a, index }
    }

    fn store(&self, index: Expr, first: i64, count: i64) -> Stmt {
        Stmt::Store { memory: self.t, index, from: self.regs(first, count) }
    }

    /// The findings of the verifier for a program with this body.
    fn said(mut self, body: Vec<Stmt>) -> Vec<String> {
        self.program.body = body;
        match verify(self.program) {
            Ok(_) => Vec::new(),
            Err(found) => found.iter().map(|d| d.to_string()).collect(),
        }
    }
}

#[test]
fn a_right_program_passes() {
    let f = fixture();
    let body = vec![
        Stmt::Declare(f.r),
        f.load(f.lane.clone(), 0, 1),
        Stmt::from(Call::plain(Inst::SyncWarp)),
        f.store(f.lane.clone(), 0, 1),
        Stmt::from(Call::plain(Inst::SyncThreads)),
    ];
    assert_eq!(f.said(body), Vec::<String>::new());
}

/// An invalid program, made from the fixture and an expression of an undefined variable.
type Mutation = fn(&Fixture, Expr) -> Vec<Stmt>;

#[test]
fn every_rule_fires_on_its_mutation() {
    let ghost = Expr::var(&Var::new("ghost", 0, 3));
    let cases: &[(&str, Mutation)] = &[
        ("internal error[V0305]: `ghost` is used before it is defined", |f, ghost| {
            vec![Stmt::Declare(f.r), f.load(ghost, 0, 1)]
        }),
        ("internal error[V0310]: the register array `r` is used before it is declared", |f, _| {
            vec![f.load(f.lane.clone(), 0, 1)]
        }),
        ("internal error[V0313]: `r[0]` is read before it holds a value", |f, _| {
            vec![Stmt::Declare(f.r), f.store(f.lane.clone(), 0, 1)]
        }),
        ("internal error[V0312]: `r[3]` of width 2 is outside an array of 4", |f, _| {
            vec![Stmt::Declare(f.r), f.load(&f.lane * 2, 3, 2)]
        }),
        ("internal error[V0308]: `a[lane]` is not aligned to the 8 bytes of its access", |f, _| {
            vec![Stmt::Declare(f.r), f.load(f.lane.clone(), 0, 2)]
        }),
        ("internal error[V0307]: an access to `a` of 12 bytes; legal are 1, 2, 4, ... 32", |f, _| {
            vec![Stmt::Declare(f.r), f.load(&f.lane * 3, 0, 3)]
        }),
        ("internal error[V0309]: `a[64]` lies outside its 64 elements", |f, _| {
            vec![Stmt::Declare(f.r), f.load(Expr::constant(64), 0, 1)]
        }),
        ("internal error[V0315]: `syncwarp` is under a branch on which its threads may diverge", |f, _| {
            let cond = Cond::Less(f.lane.clone(), Expr::constant(7));
            vec![Stmt::If { cond, body: vec![Stmt::from(Call::plain(Inst::SyncWarp))] }]
        }),
        ("internal error[V0311]: `r[lane/8]`: a register index must be a constant", |f, _| {
            let to = Regs { array: f.r, first: &f.lane / 8, count: 1, step: 1 };
            vec![Stmt::Declare(f.r), Stmt::Load { to, memory: f.a, index: f.lane.clone() }]
        }),
        ("internal error[V0302]: a store to the input `a`", |f, _| {
            let set = Stmt::Set { to: f.regs(0, 1), value: Scalar::Int(0) };
            let store = Stmt::Store { memory: f.a, index: f.lane.clone(), from: f.regs(0, 1) };
            vec![Stmt::Declare(f.r), set, store]
        }),
        ("internal error[V0304]: `x` is defined twice", |f, _| {
            let var = Var::new("x", 0, 31);
            let twice = |value: &Expr| Stmt::Let { var: var.clone(), value: value.clone() };
            vec![twice(&f.lane), twice(&f.lane)]
        }),
        ("internal error[V0320]: `x` cannot have every value of `lane`", |f, _| {
            vec![Stmt::Let { var: Var::new("x", 0, 30), value: f.lane.clone() }]
        }),
        ("internal error[V0320]: `x` cannot have every value of `lane*4`", |f, _| {
            vec![Stmt::Let { var: Var::multiple_of("x", 0, 124, 8), value: &f.lane * 4 }]
        }),
    ];
    for (said, mutation) in cases {
        let f = fixture();
        let body = mutation(&f, ghost.clone());
        assert_eq!(f.said(body), [*said]);
    }
}

#[test]
fn a_cta_barrier_under_a_branch_of_warps_is_reported_but_a_warp_barrier_is_not() {
    let warp = Expr::var(&Var::new("warp", 0, 1));
    let under = |inst| {
        let cond = Cond::Equal(warp.clone(), Expr::constant(0));
        fixture().said(vec![Stmt::If { cond, body: vec![Stmt::from(Call::plain(inst))] }])
    };
    let said = "internal error[V0315]: `syncthreads` is under a branch on which its threads may diverge";
    assert_eq!((under(Inst::SyncWarp), under(Inst::SyncThreads)), (vec![], vec![said.to_string()]));
}

#[test]
fn an_element_outside_of_a_tensor_may_stand_under_a_condition() {
    let under = |space: fn(&Fixture) -> Handle<Memory>| {
        let f = fixture();
        let load = Stmt::Load { to: f.regs(0, 1), memory: space(&f), index: Expr::constant(-1) };
        let cond = Cond::Less(Expr::constant(-1), &f.lane - 32);
        let body = vec![Stmt::Declare(f.r), Stmt::If { cond, body: vec![load] }];
        f.said(body)
    };
    let said = "internal error[V0309]: `t[-1]` lies outside its 64 elements";
    assert_eq!((under(|f| f.a), under(|f| f.t)), (vec![], vec![said.to_string()]));
}

#[test]
fn a_part_of_a_vector_register_is_reported() {
    let mut f = fixture();
    f.program.registers[f.r].vector = 4;
    let body = vec![Stmt::Declare(f.r), f.load(&f.lane * 2, 2, 2)];
    assert_eq!(f.said(body), ["internal error[V0316]: `r[2]` of width 2 is not a whole vector of 4"]);
}

#[test]
fn a_word_of_narrow_elements_may_be_moved_as_one_register() {
    let mut f = fixture();
    f.program.memories[f.a].dtype = DType::U8;
    f.program.registers[f.r].dtype = DType::B32;
    let body = vec![Stmt::Declare(f.r), f.load(&f.lane * 4, 0, 1), f.load(f.lane.clone(), 1, 1)];
    assert_eq!(f.said(body), ["internal error[V0308]: `a[lane]` is not aligned to the 4 bytes of its access"]);
}

#[test]
fn instructions_have_the_operands_of_their_row() {
    let f = fixture();
    let set = Stmt::Set { to: f.regs(0, 2), value: Scalar::Int(0) };
    let compute = |arguments: Vec<Expr>| {
        let (to, from) = (Some(f.regs(2, 1)), vec![f.regs(0, 1), f.regs(1, 1)]);
        Stmt::from(Call { to, from, arguments, ..Call::plain(Inst::BytePermute) })
    };
    let (right, wrong) = (compute(vec![f.lane.clone()]), compute(Vec::new()));
    let body = vec![Stmt::Declare(f.r), set, right, wrong, Stmt::from(Call::plain(Inst::ShuffleXor))];
    let operands = "internal error[V0317]: `byte_permute` has operands that it does not accept";
    let without = "internal error[V0317]: `shuffle_xor` has operands that it does not accept";
    assert_eq!(f.said(body), [operands, without]);
}

#[test]
fn a_lookup_stays_inside_its_table_and_its_names_hold_the_entries() {
    let mut f = fixture();
    f.program.memories[f.t].space = MemorySpace::Table;
    f.program.memories[f.t].values = (0..32).collect();
    let lookup = |name: &str, most, index: Expr| {
        let vars = vec![Var::new(name, 0, most)];
        Stmt::Lookup { vars, table: f.t, index }
    };
    let body = vec![lookup("x", 31, f.lane.clone()), lookup("y", 31, &f.lane + 1), lookup("z", 7, f.lane.clone())];
    let outside = "internal error[V0318]: a lookup of width 1 at `t[lane + 1]`";
    assert_eq!(f.said(body), [outside, "internal error[V0318]: `z` cannot hold all entries of `t`"]);
}

#[test]
fn values_have_the_type_of_their_register() {
    let f = fixture();
    let to = Regs { array: f.r, first: Expr::constant(0), count: 1, step: 1 };
    let value = Value::Const(DType::I32, Scalar::Int(1));
    let body = vec![Stmt::Declare(f.r), Stmt::Assign { to, value }];
    assert_eq!(f.said(body), ["internal error[V0319]: `r[0]` is assigned a value of another type"]);
}

/// The findings for registers of this type, set to 1, of which two from `first` on are assigned these values at once.
fn said_of_pair(target: Target, dtype: DType, first: i64, values: [Value; 2]) -> Vec<String> {
    let mut f = fixture();
    f.program.target = target;
    let floats = Stmt::Set { to: f.regs(0, 4), value: Scalar::Float(1.0) };
    let array = f.program.registers.push(RegArray { name: "p".to_string(), dtype, len: 4, vector: 1 });
    let to = Regs { array, first: Expr::constant(first), count: 2, step: 1 };
    let body = vec![Stmt::Declare(f.r), Stmt::Declare(array), floats, Stmt::AssignPair { to, values }];
    f.said(body)
}

#[test]
fn a_pair_takes_two_floats_or_their_halves() {
    let r = fixture().r;
    let registers = || [0, 1].map(|at| Value::reg(r, at));
    let sums = || registers().map(|float| Value::Op(ElementOp::Add, vec![float.clone(), float]));
    let halves = || registers().map(|float| Value::Cast(DType::F16, Narrowing::Fits, Box::new(float)));
    let fits = Vec::<String>::new();
    assert_eq!(said_of_pair(Target::Sm100a, DType::F32, 2, sums()), fits);
    assert_eq!(said_of_pair(Target::Sm90a, DType::F32, 0, registers()), fits);
    assert_eq!(said_of_pair(Target::Sm90a, DType::F16, 0, halves()), fits);
    let pair = |first| vec![format!("internal error[V0319]: `p[{first}]` is not a pair that takes these values")];
    assert_eq!(said_of_pair(Target::Sm100a, DType::F32, 1, sums()), pair(1));
    assert_eq!(said_of_pair(Target::Sm100a, DType::F16, 0, sums()), pair(0));
    let ones = [1, 1].map(|one| Value::Const(DType::F16, Scalar::Int(one)));
    assert_eq!(said_of_pair(Target::Sm100a, DType::F16, 0, ones), pair(0));
    let target = "internal error[V0314]: an instruction on pairs of f32 does not exist on sm_90a";
    assert_eq!(said_of_pair(Target::Sm90a, DType::F32, 0, sums()), [target]);
}

#[test]
fn threads_diverge_where_not_all_conditions_hold() {
    let index = |name: &str, most| Expr::var(&Var::new(name, 0, most));
    let unless = |conds| Stmt::Unless { conds, body: vec![Stmt::from(Call::plain(Inst::SyncWarp))] };
    let of_warps = Cond::Less(index("warp", 1), Expr::constant(1));
    let of_lanes = Cond::Less(index("lane", 31), Expr::constant(7));
    assert_eq!(fixture().said(vec![unless(vec![of_warps.clone()])]), Vec::<String>::new());
    let said = fixture().said(vec![unless(vec![of_warps, of_lanes])]);
    assert_eq!(said, ["internal error[V0315]: `syncwarp` is under a branch on which its threads may diverge"]);
}

#[test]
fn types_of_both_sides_must_agree() {
    let mut f = fixture();
    f.program.registers[f.r].dtype = DType::I32;
    let body = vec![Stmt::Declare(f.r), f.load(f.lane.clone(), 0, 1)];
    assert_eq!(f.said(body), ["internal error[V0306]: `a` holds f32, `r` holds i32"]);
}

#[test]
fn too_much_shared_memory_is_reported() {
    let mut f = fixture();
    f.program.memories[f.t].elements = 60_000;
    assert_eq!(f.said(Vec::new()), ["internal error[V0301]: 240000 bytes of shared memory, but sm_100a has 232448"]);
}

#[test]
fn an_instruction_of_another_target_is_reported() {
    let f = fixture();
    let mut checker = Checker::new(&f.program);
    checker.inst(&InstInfo { targets: &[Target::Sm90a], ..Inst::SyncWarp.info() });
    assert_eq!(checker.found[0].to_string(), "internal error[V0314]: `syncwarp` does not exist on sm_100a");
}

#[test]
fn moves_need_equal_types() {
    let mut f = fixture();
    let other = f.program.registers.push(RegArray { name: "q".to_string(), dtype: DType::I32, len: 1, vector: 1 });
    let to = Regs { array: other, first: Expr::constant(0), count: 1, step: 1 };
    let set = Stmt::Set { to: f.regs(0, 1), value: Scalar::Int(1) };
    let body = vec![Stmt::Declare(f.r), Stmt::Declare(other), set, Stmt::Move { to, from: f.regs(0, 1) }];
    assert_eq!(f.said(body), ["internal error[V0303]: a move between registers of different types"]);
}

#[test]
fn a_finding_names_the_tile_op() {
    let mut f = fixture();
    let note = f.program.notes.push(Note {
        title: "copy(t, a)".to_string(),
        details: Vec::new(),
        span: Span::here(),
        plan: 0,
    });
    f.program.body = vec![Stmt::Op { note, body: vec![f.store(f.lane.clone(), 0, 1)] }];
    let found = verify(f.program).unwrap_err();
    assert_eq!(found[0].labels[0].text, "while lowering copy(t, a)");
}
