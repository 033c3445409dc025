//! What statements touch: thread statements evaluated for every thread of a CTA, without running anything.

use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::thread::{Cond, Memory, MemorySpace, Program, Regs, Stmt};

/// One access of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) thread: i64,
    /// Position of the statement among the loads and stores, in order of execution; the same for all threads.
    pub(crate) step: usize,
    pub(crate) memory: Handle<Memory>,
    pub(crate) first_byte: i64,
    pub(crate) bytes: i64,
    pub(crate) writes: bool,
}

/// Values of the variables that are defined outside the traced statements; sizes have their greatest value if not here.
pub(crate) type Env = Vec<(Var, i64)>;

const LANES: usize = 32;

/// Accesses that are listed, at most.
const MOST_TOUCHES: usize = 1 << 21;

/// The accesses of some statements.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) touches: Vec<Touch>,
    /// Whether these are all of them. Of more than can be listed, it is the first of each warp.
    pub(crate) is_whole: bool,
}

/// The greatest value of a size: what stands for it where nothing else is said, so that nothing is masked.
pub(crate) fn largest(size: &Var) -> i64 {
    let (most, multiple) = (size.range().hi, size.multiple());
    most - most % multiple
}

/// A value per lane of the warp that is traced.
type Lanes = [i64; LANES];

/// One warp on its way through the statements, all lanes together.
struct Tracer<'a> {
    program: &'a Program,
    env: Vec<(Var, Lanes)>,
    warp: i64,
    /// The lanes for which the conditions around hold.
    active: [bool; LANES],
    step: usize,
    touches: Vec<Touch>,
    /// How many touches may be listed until the end of this warp.
    most: usize,
}

/// The accesses of `warps` in `body`, where `outer` gives loop variables and block indices (their least value if not).
pub(crate) fn trace(program: &Program, body: &[Stmt], warps: std::ops::Range<i64>, outer: &Env) -> Trace {
    let of_warp = MOST_TOUCHES / (warps.end - warps.start).max(1) as usize;
    let (mut touches, mut is_whole) = (Vec::new(), true);
    for warp in warps {
        let env = outer.iter().map(|(var, value)| (var.clone(), [*value; LANES])).collect();
        let active = std::array::from_fn(|lane| warp * 32 + (lane as i64) < program.threads);
        let most = touches.len() + of_warp;
        let mut tracer = Tracer { program, env, warp, active, step: 0, touches, most };
        tracer.body(body);
        is_whole &= !tracer.is_full();
        touches = tracer.touches;
    }
    Trace { touches, is_whole }
}

/// How many accesses each thread does, whatever conditions say.
pub(crate) fn steps(body: &[Stmt]) -> u64 {
    let turns = |stmt: &Stmt| {
        let Stmt::For { var, .. } = stmt else { return 1 };
        var.range().hi.saturating_sub(var.range().lo).saturating_add(1).max(0) as u64
    };
    let of = |stmt: &Stmt| {
        let inside = steps(stmt.inner()).saturating_mul(turns(stmt));
        inside.saturating_add(stmt.accesses().count() as u64)
    };
    body.iter().map(of).fold(0, u64::saturating_add)
}

/// The memory that owns the bytes of `memory`.
pub(crate) fn owner(program: &Program, memory: Handle<Memory>) -> Handle<Memory> {
    match program.memories[memory].space {
        MemorySpace::SharedView { of } => of,
        MemorySpace::Global { .. } | MemorySpace::Shared | MemorySpace::Table => memory,
    }
}

/// What data may say: another place for every lane, as far apart as there is room.
fn scattered(var: &Var) -> Lanes {
    let (range, lanes) = (var.range(), LANES as i64);
    let apart = range.hi.saturating_sub(range.lo).saturating_add(1) / lanes;
    std::array::from_fn(|lane| (range.lo + lane as i64 * apart.max(1)).min(range.hi))
}

impl Tracer<'_> {
    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn is_full(&self) -> bool {
        self.touches.len() >= self.most
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Op { body, .. } => self.body(body),
            Stmt::Let { var, value } => {
                let value = self.eval(value);
                self.env.push((var.clone(), value));
            }
            Stmt::Load { to, memory, index } => self.access(*memory, index, to, false),
            Stmt::Store { memory, index, from } => self.access(*memory, index, from, true),
            Stmt::For { var, body, .. } => {
                let range = var.range();
                for value in range.lo..=range.hi {
                    if self.is_full() {
                        break;
                    }
                    self.env.push((var.clone(), [value; LANES]));
                    self.body(body);
                    self.env.retain(|(known, _)| known != var);
                }
            }
            Stmt::If { cond, body } => {
                let outer = self.active;
                let holds = self.holds(cond);
                self.active = std::array::from_fn(|lane| outer[lane] && holds[lane]);
                self.body(body);
                self.active = outer;
            }
            Stmt::Lookup { vars, table, index } => self.lookup(vars, *table, index),
            Stmt::AtomicAdd { memory, index, from } => self.access(*memory, index, from, true),
            // Data may say so to every thread.
            Stmt::When { body, .. } => self.body(body),
            Stmt::Name { var, .. } => self.env.push((var.clone(), scattered(var))),
            Stmt::Declare(_)
            | Stmt::Set { .. }
            | Stmt::Move { .. }
            | Stmt::Compute { .. }
            | Stmt::Mma { .. }
            | Stmt::Assign { .. }
            | Stmt::Inst(_) => {}
        }
    }

    fn holds(&self, cond: &Cond) -> [bool; LANES] {
        let (Cond::Less(a, b) | Cond::Equal(a, b)) = cond;
        let (a, b) = (self.eval(a), self.eval(b));
        std::array::from_fn(|lane| match cond {
            Cond::Less(..) => a[lane] < b[lane],
            Cond::Equal(..) => a[lane] == b[lane],
        })
    }

    fn lookup(&mut self, vars: &[Var], table: Handle<Memory>, index: &Expr) {
        let at = self.eval(index);
        let memory = &self.program.memories[table];
        for (offset, var) in vars.iter().enumerate() {
            let entry = |lane: usize| memory.values.get(at[lane] as usize + offset).copied().unwrap_or(0);
            self.env.push((var.clone(), std::array::from_fn(entry)));
        }
        self.touch(table, at, vars.len() as i64 * memory.dtype.bytes(), false);
    }

    fn access(&mut self, memory: Handle<Memory>, index: &Expr, regs: &Regs, writes: bool) {
        let index = self.eval(index);
        let bytes = regs.count * self.program.registers[regs.array].dtype.bytes();
        self.touch(memory, index, bytes, writes);
    }

    /// Every active lane touches `bytes` from element `index` on.
    fn touch(&mut self, memory: Handle<Memory>, index: Lanes, bytes: i64, writes: bool) {
        let width = self.program.memories[memory].dtype.bytes();
        for lane in (0..LANES).filter(|lane| self.active[*lane]) {
            self.touches.push(Touch {
                thread: self.warp * 32 + lane as i64,
                step: self.step,
                memory,
                first_byte: index[lane] * width,
                bytes,
                writes,
            });
        }
        self.step += 1;
    }

    /// Verified statements only use defined variables; what is not in the environment is a hardware index or 0.
    fn eval(&self, expr: &Expr) -> Lanes {
        expr.eval_all(&|var| Some(self.value(var))).unwrap_or([0; LANES])
    }

    fn value(&self, var: &Var) -> Lanes {
        if let Some((_, values)) = self.env.iter().rev().find(|(known, _)| known == var) {
            return *values;
        }
        let lane = std::array::from_fn(|lane| lane as i64);
        match var.name() {
            "lane" => lane,
            "warp" => [self.warp; LANES],
            "tid" => lane.map(|lane| self.warp * 32 + lane),
            _ if self.program.sizes.contains(var) => [largest(var); LANES],
            _ => [var.range().lo; LANES],
        }
    }
}
