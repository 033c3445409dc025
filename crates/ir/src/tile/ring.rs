//! Rings: stages of shared memory that some roles fill and others use, at the same time.
//!
//! A ring is a queue. Each *hold* that produces appends a stage to it, which has the elements that the role writes, and each hold
//! that consumes takes the next one. What a role gets does not depend on how many stages there are or on how far another role
//! is: only the number of stages that are on their way does. All roles that take part go through the same sequence of stages.

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_layout::descriptor::SwizzlePattern;

use crate::arena::Handle;
use crate::counter::Counter;
use crate::target::SHARED_ALIGNMENT;
use crate::tile::buffer::Buffer;
use crate::tile::fills::for_each_loop;
use crate::tile::kernel::{Kernel, Loop, Part, Stmt, Unroll};
use crate::tile::op::{Op, OpKind};
use crate::tile::role::Role;

/// What the stages of a ring of [`RingKind::Claims`] carry.
pub const CLAIMED_TILES: &str = "claimed tiles";

/// Buffers that several roles share, in stages.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Its name.
    pub name: String,
    /// The number of stages.
    pub stages: i64,
    /// What a stage carries: buffers, each with a copy in every stage.
    pub buffers: Vec<Handle<Buffer>>,
    /// What the stages are for.
    pub kind: RingKind,
    /// Where it was written.
    pub span: Span,
}

/// What the stages of a ring are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingKind {
    /// Roles that produce fill them, and those that consume read them.
    Queue,
    /// There is one stage, which two roles have in turn: in its tensor memory, each goes on with what the other one has left.
    Exchange,
    /// A stage carries, in place of buffers, the next tile of a claimed loop: a role claims it in the hold that produces, and the
    /// loops of all roles go on with it where they consume.
    Claims,
}

impl Ring {
    /// Whether its stages carry claimed tiles.
    pub fn claims(&self) -> bool {
        self.kind == RingKind::Claims
    }

    /// Whether two roles have its buffers in turn.
    pub fn is_exchange(&self) -> bool {
        self.kind == RingKind::Exchange
    }
}

/// What a role does with a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Fills it.
    Produce,
    /// Uses it.
    Consume,
}

impl Side {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Side::Produce => "produce",
            Side::Consume => "consume",
        }
    }

    /// What it is called where it begins, and where it ends.
    pub fn ends(self) -> [&'static str; 2] {
        match self {
            Side::Produce => ["acquire", "publish"],
            Side::Consume => ["wait", "release"],
        }
    }
}

/// A role has a stage of a ring for itself, from one statement to another.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The ring.
    pub ring: Handle<Ring>,
    /// What the role does with the stage.
    pub side: Side,
    /// The role; `None` outside of roles, which is a mistake.
    pub role: Option<Handle<Role>>,
    /// Where it begins.
    pub span: Span,
}

impl Kernel {
    /// The ring that a shared buffer is a part of, and its place there.
    pub fn ring_of(&self, buffer: Handle<Buffer>) -> Option<Handle<Ring>> {
        let storage = self.storage(buffer);
        self.rings.iter().find(|(_, ring)| ring.buffers.contains(&storage)).map(|(handle, _)| handle)
    }

    /// The copies that there are of a shared buffer: one for each stage of its ring.
    pub fn stages_of(&self, buffer: Handle<Buffer>) -> i64 {
        self.ring_of(buffer).map_or(1, |ring| self.rings[ring].stages)
    }

    /// Whether asynchronous products read shared memory in the stages of a ring: they see what threads wrote only after a fence.
    pub fn is_read_by_products(&self, ring: Handle<Ring>) -> bool {
        let is_async = |op: &&Op| matches!(op.kind, OpKind::GemmAsync(_));
        let ops = self.ops.iter().map(|(_, op)| op).filter(is_async);
        let factors = ops.flat_map(|op| op.operands.iter().skip(1));
        let mut in_shared = factors.filter(|tile| !self.is_in_tensor_memory(tile.buffer));
        in_shared.any(|tile| self.ring_of(tile.buffer) == Some(ring))
    }

    /// Bytes of which the stages of a buffer of a ring begin at multiples: after so many, its swizzle repeats.
    pub fn stage_alignment(&self, handle: Handle<Buffer>) -> i64 {
        let buffer = &self.buffers[handle];
        let pattern = buffer.layout.as_ref().and_then(|layout| SwizzlePattern::of(layout, 8 * buffer.dtype.bytes()));
        pattern.map_or(SHARED_ALIGNMENT, |pattern| pattern.repeat().max(SHARED_ALIGNMENT))
    }

    /// Bytes from one stage of a buffer of a ring to the next.
    pub fn stage_bytes(&self, handle: Handle<Buffer>) -> i64 {
        let buffer = &self.buffers[handle];
        let bytes = buffer.span_elements().saturating_mul(buffer.dtype.bytes());
        let alignment = self.stage_alignment(handle);
        bytes.saturating_add(alignment - 1) / alignment * alignment
    }

    /// A hold as it is printed: `ab.acquire role load`.
    pub(super) fn hold_text(&self, handle: Handle<Hold>, is_end: bool) -> String {
        let hold = &self.holds[handle];
        let role = hold.role.map_or(String::new(), |role| format!(" role {}", self.roles[role].name));
        format!("{}.{}{role}", self.rings[hold.ring].name, hold.side.ends()[usize::from(is_end)])
    }

    /// A hold in plans and CUDA: `ab.produce`.
    pub fn hold_title(&self, hold: &Hold) -> String {
        format!("{}.{}", self.rings[hold.ring].name, hold.side.name())
    }

    /// How many stages of a ring a role goes through.
    pub(super) fn sequence(&self, ring: Handle<Ring>, role: Handle<Role>) -> Sequence {
        self.sequence_of(&self.body, (ring, role), 0)
    }

    /// How many stages of each ring the holds in a body go through. Error: they cannot be counted before.
    pub fn stages_in(&self, body: &[Stmt]) -> Result<Vec<(Handle<Ring>, Expr)>, Box<Diagnostic>> {
        let mut of: Vec<&Hold> = Vec::new();
        self.holds_in(body, &mut |hold| {
            if !of.iter().any(|known| (known.ring, known.role) == (hold.ring, hold.role)) {
                of.push(hold);
            }
        });
        let stages = |hold: &Hold| {
            let sequence = hold.role.map_or_else(Sequence::none, |role| self.sequence_of(body, (hold.ring, role), 0));
            let message = format!("how many stages of `{}` a tile has is not known before", self.rings[hold.ring].name);
            let finding = Diagnostic::error("K0292", message).label(hold.span, format!("{sequence} of them"));
            let help = "a role passes the stages of the tiles of other roles at once: let their number be an expression of the tile";
            if sequence.sums.is_empty() { Ok((hold.ring, sequence.count)) } else { Err(Box::new(finding.help(help))) }
        };
        of.into_iter().map(stages).collect()
    }

    fn holds_in<'a>(&'a self, body: &'a [Stmt], visit: &mut dyn FnMut(&'a Hold)) {
        for stmt in body {
            match stmt {
                Stmt::Begin(hold) => visit(&self.holds[*hold]),
                Stmt::Loop(inner) => self.holds_in(&inner.body, visit),
                // Holds are under no conditions.
                Stmt::If(_) | Stmt::End(_) | Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => {}
            }
        }
    }

    /// The roles that use the stages of a ring in turns.
    pub fn parts(&self, ring: Handle<Ring>) -> BTreeMap<Handle<Role>, Part> {
        self.holds_in_parts(ring).into_iter().filter_map(|(hold, part, _)| Some((hold.role?, part))).collect()
    }

    /// The holds of a ring in loops that roles execute in turns, each with its loop.
    pub(super) fn holds_in_parts(&self, ring: Handle<Ring>) -> Vec<(&Hold, Part, &Loop)> {
        let mut found = Vec::new();
        for_each_loop(&self.body, &mut |inner| {
            if let Some(part) = inner.part {
                self.holds_in(&inner.body, &mut |hold| {
                    found.extend((hold.ring == ring).then_some((hold, part, inner)))
                });
            }
        });
        found
    }

    fn sequence_of(&self, body: &[Stmt], of: (Handle<Ring>, Handle<Role>), depth: usize) -> Sequence {
        let mut all = Sequence::none();
        for stmt in body {
            match stmt {
                Stmt::Begin(hold) => {
                    let hold = &self.holds[*hold];
                    if (hold.ring, hold.role) == (of.0, Some(of.1)) {
                        all.count = all.count + 1;
                    }
                }
                Stmt::Loop(inner) if inner.unroll == Unroll::Once => {
                    let Counter { var, begin, .. } = &inner.counter;
                    all.add(self.sequence_of(&inner.body, of, depth).substituted(var, begin));
                }
                Stmt::Loop(inner) => {
                    all.add(self.sequence_of(&inner.body, of, depth + 1).repeated(&inner.counter, depth))
                }
                // Holds are under no conditions.
                Stmt::If(_) | Stmt::End(_) | Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => {}
            }
        }
        all.count = normalize(&all.count);
        all
    }
}

/// A number of stages: an expression, and sums over loops whose iterations have different numbers of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sequence {
    count: Expr,
    sums: Vec<Sum>,
}

/// The stages of all iterations of a loop.
#[derive(Clone, Debug)]
struct Sum {
    /// The variable in the kernel, and how deep the loop is.
    name: (String, usize),
    begin: Expr,
    end: Expr,
    step: i64,
    /// The stages of an iteration; loops count with variables that are known by their depth.
    of: Sequence,
}

impl PartialEq for Sum {
    fn eq(&self, other: &Sum) -> bool {
        let Sum { name: _, begin, end, step, of } = self;
        (begin, end, step, of) == (&other.begin, &other.end, &other.step, &other.of)
    }
}

impl Sequence {
    fn none() -> Sequence {
        Sequence { count: Expr::constant(0), sums: Vec::new() }
    }

    /// Whether there are none.
    pub(super) fn is_none(&self) -> bool {
        self.count.as_const() == Some(0) && self.sums.is_empty()
    }

    fn add(&mut self, more: Sequence) {
        self.count = self.count.clone() + more.count;
        self.sums.extend(more.sums);
    }

    /// The stages of all iterations of a loop, each of which has these.
    fn repeated(self, counter: &Counter, depth: usize) -> Sequence {
        if self.is_none() {
            return self;
        }
        if self.sums.is_empty() && !self.count.mentions(&counter.var) {
            return Sequence { count: normalize(&(self.count * counter.trips())), sums: Vec::new() };
        }
        let range = counter.var.range();
        let by_depth = Var::multiple_of(format!("#{depth}"), range.lo, range.hi, counter.var.multiple());
        let of = self.substituted(&counter.var, &Expr::var(&by_depth));
        let (begin, end) = (counter.begin.clone(), counter.end.clone());
        Sequence {
            count: Expr::constant(0),
            sums: vec![Sum { name: (counter.var.name().to_string(), depth), begin, end, step: counter.step, of }],
        }
    }

    fn substituted(self, var: &Var, by: &Expr) -> Sequence {
        let of = |expr: &Expr| normalize(&expr.substitute(&|other| (other == var).then(|| by.clone())));
        let sum = |sum: Sum| Sum { begin: of(&sum.begin), end: of(&sum.end), of: sum.of.substituted(var, by), ..sum };
        Sequence { count: of(&self.count), sums: self.sums.into_iter().map(sum).collect() }
    }
}

impl std::fmt::Display for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sum = |sum: &Sum| {
            let Sum { name: (name, depth), begin, end, of, .. } = sum;
            let of = of.to_string().replace(&format!("#{depth}"), name);
            format!("the sum of {of} for {name} in {begin}..{end}")
        };
        let count = (self.count.as_const() != Some(0) || self.sums.is_empty()).then(|| self.count.to_string());
        let all: Vec<String> = count.into_iter().chain(self.sums.iter().map(sum)).collect();
        f.write_str(&all.join(" and "))
    }
}
