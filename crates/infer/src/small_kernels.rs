//! Tests on small kernels and the layouts that are found for them.

use std::collections::BTreeMap;

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_ir::tile::{
    Access, Buffer, Claim, Coord, Direction, ElementOp, ElementStmt, Kernel, KernelsByRole, Parallel, Space, Stmt,
    Value,
};
use tilewright_ir::{Arena, Handle, Scalar};
use tilewright_layout::map::Map;
use tilewright_layout::{DType, Layout, TileLayout};

use crate::graph::Graph;
use crate::inference::infer;
use crate::inferred::Inferred;
use crate::known::{Known, Pass, Reason};
use crate::scene::Scene;
use crate::search;
use crate::storage::Storages;
use crate::tables::{BUDGET, Tables};
use crate::write::lay_out;

/// The indices of an access, from the variables of the loop.
type Index<'a> = &'a dyn Fn(&[Expr]) -> Vec<Expr>;

#[derive(Default)]
struct Small {
    buffers: Arena<Buffer>,
    parallels: Arena<Parallel>,
    body: Vec<Stmt>,
}

impl Small {
    fn buffer(&mut self, name: &str, space: Space, shape: &[i64]) -> Handle<Buffer> {
        let row_major = TileLayout::row_major(shape).map(Layout::Tile).ok();
        self.buffers.push(Buffer {
            name: name.to_string(),
            dtype: DType::F32,
            shape: shape.to_vec(),
            space,
            layout: row_major.filter(|_| space != Space::Fragment),
            dynamic_shape: None,
            view_of: None,
            order: None,
            is_open: false,
            span: Span::here(),
        })
    }

    fn input(&mut self, shape: &[i64]) -> Handle<Buffer> {
        self.buffer("x", Space::Global(Direction::Input), shape)
    }

    fn output(&mut self, shape: &[i64]) -> Handle<Buffer> {
        self.buffer("y", Space::Global(Direction::Output), shape)
    }

    fn fragment(&mut self, name: &str, shape: &[i64]) -> Handle<Buffer> {
        self.buffer(name, Space::Fragment, shape)
    }

    /// A loop that copies an element in every iteration.
    fn copy(&mut self, extents: &[i64], to: (Handle<Buffer>, Index), from: (Handle<Buffer>, Index)) {
        self.nest(extents, &|at| {
            let [to, from] = [to, from].map(|(buffer, index)| access(buffer, index(at)));
            ElementStmt::Store { to, value: Value::Load(from), claim: Claim::None }
        });
    }

    fn nest(&mut self, extents: &[i64], element: &dyn Fn(&[Expr]) -> ElementStmt) {
        let vars: Vec<Var> =
            ["i", "j"].into_iter().zip(extents).map(|(name, extent)| Var::new(name, 0, extent - 1)).collect();
        let at: Vec<Expr> = vars.iter().map(Expr::var).collect();
        let body = vec![element(&at)];
        let span = Span::at("k.rs", 1 + self.body.len() as u32, 1);
        let parallel = Parallel { vars, body, layout: None, vector: None, role: None, span };
        self.body.push(Stmt::Parallel(self.parallels.push(parallel)));
    }

    fn kernel(self, threads: i64) -> Kernel {
        Kernel {
            threads,
            buffers: self.buffers,
            parallels: self.parallels,
            body: self.body,
            ..Kernel::new("k", Span::here())
        }
    }
}

/// A kernel with an input of 64 elements and nothing else.
pub(crate) fn kernel_of_x() -> (Kernel, Handle<Buffer>) {
    let mut small = Small::default();
    let x = small.input(&[64]);
    (small.kernel(32), x)
}

fn access(buffer: Handle<Buffer>, index: Vec<Expr>) -> Access {
    Access { buffer, index: index.into_iter().map(Coord::At).collect(), or_zero: false, span: Span::here() }
}

fn same(at: &[Expr]) -> Vec<Expr> {
    at.to_vec()
}

/// The slots, and the greatest number of copies of an element, of each fragment.
fn placed(inferred: &Inferred) -> Vec<(usize, usize)> {
    inferred.fragments.values().map(|placed| (placed.map.slots(), placed.map.copies())).collect()
}

#[test]
fn a_chain_is_shared_alike_in_vectors() {
    let mut small = Small::default();
    let (x, y) = (small.input(&[64, 64]), small.output(&[64, 64]));
    let mut last = x;
    for name in ["a", "b", "c"] {
        let next = small.fragment(name, &[64, 64]);
        small.copy(&[64, 64], (next, &same), (last, &same));
        last = next;
    }
    small.copy(&[64, 64], (y, &same), (last, &same));
    let inferred = infer(&small.kernel(128)).unwrap();
    let maps: Vec<&Map> = inferred.fragments.values().map(|placed| &*placed.map).collect();
    assert!(maps.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!((placed(&inferred)[0], inferred.loops.len()), ((32, 1), 4));
    assert_eq!(inferred.accesses.iter().map(|access| access.widths).collect::<Vec<_>>(), [(4, 4), (4, 4)]);
    assert_eq!(inferred.cost.registers, 3 * 32 * 20);
}

#[test]
fn a_shifted_write_takes_no_copies() {
    let mut small = Small::default();
    let (x, y) = (small.input(&[64]), small.output(&[64]));
    let (a, b) = (small.fragment("a", &[64]), small.fragment("b", &[64]));
    small.copy(&[64], (a, &same), (x, &same));
    small.copy(&[63], (b, &|at| vec![at[0].clone() + 1]), (a, &same));
    small.copy(&[64], (y, &same), (b, &same));
    assert_eq!(placed(&infer(&small.kernel(64)).unwrap()), [(1, 1), (1, 1)]);
}

#[test]
fn rows_that_are_read_several_times_stay_where_they_are() {
    let mut small = Small::default();
    let (x, y) = (small.input(&[8, 16]), small.output(&[32, 16]));
    let (a, b) = (small.fragment("a", &[8, 16]), small.fragment("b", &[32, 16]));
    small.copy(&[8, 16], (a, &same), (x, &same));
    small.copy(&[32, 16], (b, &same), (a, &|at| vec![at[0].clone() / 4, at[1].clone()]));
    small.copy(&[32, 16], (y, &same), (b, &same));
    assert_eq!(placed(&infer(&small.kernel(64)).unwrap()), [(2, 1), (8, 1)]);
}

#[test]
fn iterations_that_are_known_to_do_nothing_are_anywhere() {
    let mut small = Small::default();
    let (x, y) = (small.input(&[16]), small.output(&[16]));
    let a = small.fragment("a", &[16]);
    small.nest(&[16], &|at| {
        let cond = Value::Op(ElementOp::Lt, [Value::Index(at[0].clone()), Value::Const(Scalar::Int(8))].into());
        let value = Value::Load(access(x, same(at)));
        let store = ElementStmt::Store { to: access(a, same(at)), value, claim: Claim::None };
        ElementStmt::If { cond, then: vec![store], otherwise: Vec::new(), span: Span::here() }
    });
    small.copy(&[16], (y, &same), (a, &same));
    assert_eq!(placed(&infer(&small.kernel(32)).unwrap()), [(1, 1)]);
}

#[test]
fn a_component_leaves_places_to_the_others() {
    let mut small = Small::default();
    let y = small.output(&[2, 32]);
    let (a, b, c) = (small.fragment("a", &[16, 16]), small.fragment("b", &[1]), small.fragment("c", &[2, 32]));
    let zero = |to| ElementStmt::Store { to, value: Value::Const(Scalar::Float(0.0)), claim: Claim::None };
    small.nest(&[16, 16], &|at| zero(access(a, same(at))));
    small.nest(&[1], &|at| zero(access(b, same(at))));
    small.copy(&[2, 16], (a, &same), (c, &same));
    small.nest(&[16, 16], &|at| zero(access(a, vec![at[1].clone(), at[0].clone()])));
    small.copy(&[2, 32], (c, &same), (a, &|at| vec![at[0].clone(), (at[1].clone() + 3) % 16]));
    small.copy(&[2, 32], (y, &same), (c, &same));
    assert_eq!(infer(&small.kernel(64)).unwrap().fragments.len(), 3);
}

#[test]
fn what_cannot_be_is_told_as_data() {
    let mut small = Small::default();
    let (first, second) = (small.fragment("first", &[32]), small.fragment("second", &[16, 2]));
    small.copy(&[32], (first, &same), (second, &|at| vec![at[0].clone() / 2, at[0].clone() % 2]));
    let kernel = small.kernel(32);
    let mut known = Known::default();
    for (handle, text) in [(first, "S[32:1@tx]"), (second, "S[(16,2):(1@tx,16@tx)]")] {
        let map = Map::of_layout(&text.parse().unwrap(), 32).unwrap();
        let (pass, span) = (Pass::Strict, Span::here());
        known.set(handle, map, Reason { pass, rule: "given", op: "test".to_string(), span, parent: None });
    }
    let storages = Storages::of(&kernel);
    let graph = Graph::of(&KernelsByRole::of(&kernel), &storages);
    let mut tables = Tables::new(32);
    let scene = Scene::of(&mut tables, (&graph, &storages), &known, &BTreeMap::new(), &[0]);
    let violation = search::best(&scene, &mut tables, BUDGET).unwrap_err().violation;
    let clash = violation.clash.unwrap();
    assert_eq!((clash.fragment, clash.element, clash.writes), (second, 1, false));
    assert_eq!((clash.executing, clash.owning), (vec![1], vec![16]));
    assert_eq!(violation.op, "parallel i");
}

#[test]
fn the_graph_names_ops_fragments_and_uses() {
    let mut small = Small::default();
    let (x, y) = (small.input(&[16]), small.output(&[16]));
    let [declared, common, free] = ["declared", "common", "free"].map(|name| small.fragment(name, &[16]));
    small.buffers[declared].layout = "S[16:1@tx]".parse().ok();
    small.copy(&[16], (declared, &same), (x, &same));
    small.copy(&[16], (common, &same), (declared, &same));
    small.nest(&[16], &|at| {
        let [sum, term] = [common, declared].map(|buffer| Value::Load(access(buffer, same(at))));
        let value = Value::Op(ElementOp::Add, [sum, term].into());
        ElementStmt::Store { to: access(common, same(at)), value, claim: Claim::None }
    });
    small.copy(&[16], (free, &same), (x, &same));
    small.copy(&[16], (y, &same), (free, &same));
    let (kernel, inferred) = lay_out(small.kernel(16)).unwrap();
    let expected = r#"digraph "k" {
  // blue: declared, purple: strict, darkgreen: common, orangered: free
  n0 [shape=box, color=darkgreen, label="parallel i\nk.rs:1"];
  n1 [shape=ellipse, color=blue, label="declared\nf32(16)\nS[16:1@tx]"];
  n2 [shape=box, color=darkgreen, label="parallel i\nk.rs:2"];
  n3 [shape=ellipse, color=darkgreen, label="common\nf32(16)\nS[16:1@tx]"];
  n4 [shape=box, color=darkgreen, label="parallel i\nk.rs:3"];
  n5 [shape=box, color=orangered, label="parallel i\nk.rs:4"];
  n6 [shape=ellipse, color=orangered, label="free\nf32(16)\nS[16:1@tx]"];
  n7 [shape=box, color=darkgreen, label="parallel i\nk.rs:5"];
  n0 -> n1 [label=write, color=blue];
  n1 -> n2 [label=read, color=blue];
  n2 -> n3 [label=write, color=darkgreen];
  n1 -> n4 [label=read, color=blue];
  n4 -> n3 [label=update, color=darkgreen];
  n5 -> n6 [label=write, color=orangered];
  n6 -> n7 [label=read, color=orangered];
}
"#;
    assert_eq!(inferred.dot(&kernel), expected);
}
