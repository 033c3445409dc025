//! The statements of a move in rounds.

use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Cond, Inst, Memory, RegArray, Regs, Stmt};
use tilewright_layout::DType;
use tilewright_layout::access::LANES;

use super::plan::RoundPlan;
use super::recipe::{Action, VirtualReg, actions, written};
use super::round::Round;
use super::table::{first_selector, first_value, selector_entries, selector_table};
use crate::builder::{Builder, regs};
use crate::permute_layout::context::{Context, staged};
use crate::refusal::Refusal;

/// What all rounds have in common.
struct Site<'a> {
    context: &'a Context,
    lane: Expr,
    /// Tables of offsets, with the base names of their entries.
    offsets: Vec<(&'static str, Handle<Memory>)>,
    /// The table of selectors, if any round takes them from one.
    selectors: Option<Handle<Memory>>,
    /// The registers of all rounds.
    registers: Handle<RegArray>,
}

/// Where the registers of one round begin.
#[derive(Clone, Copy, Debug)]
struct RoundRegisters {
    /// The first register of its words.
    words: i64,
    /// The first register of its intermediate values.
    scratch: i64,
}

impl RoundRegisters {
    fn at(&self, registers: Handle<RegArray>, place: VirtualReg) -> Regs {
        match place {
            VirtualReg::Word(at) => regs(registers, self.words + at, 1),
            VirtualReg::Scratch(at) => regs(registers, self.scratch + at, 1),
        }
    }
}

/// The statements of the rounds that are read before any of them is written.
#[derive(Default)]
struct Phases {
    reads: Vec<Stmt>,
    exchanges: Vec<Stmt>,
    writes: Vec<Stmt>,
}

/// The inputs of a round other than registers, as expressions of the lane.
struct RoundInputs {
    /// The source word of every step.
    src: Vec<Expr>,
    /// The destination word of every step.
    dst: Vec<Expr>,
    /// The selectors of the byte permutations.
    selectors: Vec<Expr>,
}

/// A round, with what it is made of.
struct RoundMove<'a> {
    round: &'a Round,
    needed: RoundInputs,
    held: RoundRegisters,
}

impl RoundPlan {
    pub(crate) fn build(&self, context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let mut body = Vec::new();
        let site = self.site(context, builder, &mut body);
        for chunk in &self.chunks {
            let mut phases = Phases::default();
            let mut held = RoundRegisters { words: 0, scratch: self.most_words() };
            for round in chunk.clone() {
                let needed = self.needed(&site, builder, round, &mut body)?;
                let one = RoundMove { round: &self.rounds[round], needed, held };
                self.move_round(&site, builder, &one, &mut phases);
                held.words += self.rounds[round].shape.steps() as i64;
                held.scratch += self.own_scratch();
            }
            phases.reads.extend(phases.exchanges);
            body = staged(context, body, phases.reads, phases.writes);
        }
        Ok(body)
    }

    fn site<'a>(&self, context: &'a Context, builder: &mut Builder, body: &mut Vec<Stmt>) -> Site<'a> {
        let name = builder.program.name.clone();
        let mut table = |what: &str, values| builder.table(&format!("{name}_{what}"), values, context.span);
        let tables = self.encoding.tables(&self.rounds).into_iter().map(|values| table("offsets", values));
        let offsets = self.encoding.names().iter().copied().zip(tables).collect();
        let selectors = Some(selector_table(&self.rounds)).filter(|values| !values.is_empty());
        let selectors = selectors.map(|values| table("selectors", values));
        let registers = builder.registers("r", DType::B32, self.most_words() + self.most_scratch(), 1, body);
        Site { context, lane: Expr::var(&context.lane), offsets, selectors, registers }
    }

    /// Looks up what a round needs, and names it.
    fn needed(
        &self,
        site: &Site<'_>,
        builder: &mut Builder,
        at: usize,
        body: &mut Vec<Stmt>,
    ) -> Result<RoundInputs, Refusal> {
        let round = &self.rounds[at];
        let first = first_value(&self.rounds, at);
        let mut entries = Vec::new();
        for table in &site.offsets {
            entries.push(lookup(site, builder, *table, (first, round.values()), body));
        }
        let [src, dst] = self.encoding.values(&entries)?;
        let mut from = |value| named(builder, "from", value, body);
        let (src, read) = round.src.located(src, round.form, self.encoding.src_unit, &mut from)?;
        let mut to = |value| named(builder, "to", value, body);
        let (dst, write) = round.dst.located(dst, round.form, self.encoding.dst_unit, &mut to)?;
        let listed = match site.selectors {
            Some(table) if selector_entries(round) > 0 => {
                let first = first_selector(&self.rounds, at);
                lookup(site, builder, ("selector", table), (first, selector_entries(round)), body)
            }
            _ => Vec::new(),
        };
        let selectors = round.selectors(&site.lane, [&read, &write], &listed)?;
        let selectors = selectors.into_iter().map(|selector| named(builder, "sel", selector, body)).collect();
        Ok(RoundInputs { src, dst, selectors })
    }

    /// Adds the statements of a round. Lanes that share blocks exchange by shuffles, in which idle lanes take part.
    fn move_round(&self, site: &Site<'_>, builder: &mut Builder, one: &RoundMove<'_>, phases: &mut Phases) {
        let RoundMove { round, needed, held } = one;
        let Site { context, registers, .. } = *site;
        let loads = needed.src.iter().zip(0..).map(|(word, step)| {
            let index = self.index(builder, &self.src, word);
            Stmt::Load { to: held.at(registers, VirtualReg::Word(step)), memory: context.src.memory, index }
        });
        let loads: Vec<Stmt> = loads.collect();
        let exchange = exchange(builder, registers, one);
        let stores = needed.dst.iter().zip(written(round.shape)).map(|(word, place)| {
            let index = self.index(builder, &self.dst, word);
            Stmt::Store { memory: context.dst.memory, index, from: held.at(registers, place) }
        });
        let stores: Vec<Stmt> = stores.collect();
        let sharing = round.shape.sharing() > 1;
        if sharing && round.busy() < LANES {
            let words = regs(registers, held.words, round.shape.steps() as i64);
            phases.reads.push(Stmt::Set { to: words, value: 0.into() });
        }
        phases.reads.extend(if_busy(site, round, loads));
        phases.exchanges.extend(if sharing { exchange } else { if_busy(site, round, exchange) });
        phases.writes.extend(if_busy(site, round, stores));
    }

    /// The element at which a word begins.
    fn index(&self, builder: &mut Builder, start: &Expr, word: &Expr) -> Expr {
        builder.simplifier.simplify(&(start + &(word * self.per_word)))
    }
}

/// The permutations and shuffles of a round.
fn exchange(
    builder: &mut Builder,
    registers: Handle<RegArray>,
    RoundMove { round, needed, held }: &RoundMove<'_>,
) -> Vec<Stmt> {
    let at = |place: &VirtualReg| held.at(registers, *place);
    let statement = |action: &Action| match action {
        Action::Permute { to, from, selector, flip } => {
            let selector = &needed.selectors[*selector] ^ &Expr::constant(*flip);
            Stmt::from(Call {
                to: Some(at(to)),
                from: from.iter().map(at).collect(),
                arguments: vec![builder.simplifier.simplify(&selector)],
                ..Call::plain(Inst::BytePermute)
            })
        }
        Action::Shuffle { to, from, mask } => Stmt::from(Call {
            to: Some(at(to)),
            from: vec![at(from)],
            arguments: vec![Expr::constant(*mask)],
            ..Call::plain(Inst::ShuffleXor)
        }),
    };
    actions(round.shape).iter().map(statement).collect()
}

/// `body`, under a condition if some lanes are idle.
fn if_busy(site: &Site<'_>, round: &Round, body: Vec<Stmt>) -> Vec<Stmt> {
    if round.busy() == LANES || body.is_empty() {
        return body;
    }
    vec![Stmt::If { cond: Cond::Less(site.lane.clone(), Expr::constant(round.busy() as i64)), body }]
}

/// Looks up `count` entries of every lane in the part of a table that begins at `first`.
fn lookup(
    site: &Site<'_>,
    builder: &mut Builder,
    (name, table): (&str, Handle<Memory>),
    (first, count): (usize, usize),
    body: &mut Vec<Stmt>,
) -> Vec<Expr> {
    let most = builder.program.memories[table].values.iter().copied().max().unwrap_or(0);
    let vars: Vec<Var> = (0..count).map(|_| Var::new(builder.fresh(name), 0, most)).collect();
    let entries = vars.iter().map(Expr::var).collect();
    let index = &site.lane * count as i64 + first as i64;
    body.push(Stmt::Lookup { vars, table, index });
    entries
}

/// Binds a value to a variable if computing it takes an operation.
fn named(builder: &mut Builder, base: &str, value: Expr, body: &mut Vec<Stmt>) -> Expr {
    let value = builder.simplifier.simplify(&value);
    if value.operands().is_none() { value } else { builder.name(base, value, body) }
}
