//! What a layout inference answers, as tables: which threads hold which element, and which execute which iteration.

use std::collections::BTreeMap;

use super::boxes::{points, position, size};
use super::case::{Expected, ExpectedLoop};
use super::program::{Layout, Op, Parallel, Program};

/// An answer: where the fragments' elements are and where the loops' iterations run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The fragments, by name; views too.
    pub buffers: BTreeMap<String, Placement>,
    /// The parallel operations, in program order; none where only the fragments are known.
    pub loops: Vec<LoopPlacement>,
}

/// Where the elements of a fragment are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The fragment's extents.
    pub shape: Vec<i64>,
    /// Thread and slot of every copy of every element, row-major over elements; of an element in order, each once.
    pub owners: Vec<Vec<(i64, i64)>>,
}

/// Where the iterations of a parallel operation run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPlacement {
    /// The loop variables.
    pub vars: Vec<String>,
    /// Their extents.
    pub extents: Vec<i64>,
    /// The threads that execute every iteration, row-major over iterations; of an iteration in order, each once.
    pub executors: Vec<Vec<i64>>,
}

impl Assignment {
    /// The reference's answer. Loops of one iteration that it puts around loose statements are left out.
    pub fn of_expected(program: &Program, expected: &Expected) -> Result<Assignment, String> {
        let mut answered = expected.loops.iter();
        let mut loops = Vec::new();
        for nest in nests(&program.body) {
            let found = answered.find(|answer| !is_wrapper(&answer.vars) || is_wrapper(&nest.vars));
            let found = found.ok_or_else(|| format!("no loop `{}`", nest.vars.join(", ")))?;
            loops.push(LoopPlacement::of_expected(nest, found)?);
        }
        Ok(Assignment { loops, ..Assignment::of_layouts(&expected.buffers)? })
    }

    /// The fragments of a witness, or those that a program gives layouts for. Nothing is known about loops.
    pub fn of_layouts(layouts: &BTreeMap<String, Layout>) -> Result<Assignment, String> {
        let place = |(name, layout): (&String, &Layout)| {
            Ok((name.clone(), Placement::of_layout(layout).map_err(|why| format!("{name}: {why}"))?))
        };
        Ok(Assignment { buffers: layouts.iter().map(place).collect::<Result<_, String>>()?, loops: Vec::new() })
    }
}

impl Placement {
    /// The table of a layout. The error says where thread or slot have no value, as in a layout of foreign variables.
    pub fn of_layout(layout: &Layout) -> Result<Placement, String> {
        let owners = points(&layout.shape).map(|element| owners(layout, &element)).collect::<Result<_, _>>()?;
        Ok(Placement { shape: layout.shape.clone(), owners })
    }
}

impl LoopPlacement {
    /// The iterations of a nest that is executed as its layout says.
    pub fn of_layout(nest: &Parallel, layout: &Layout) -> Result<LoopPlacement, String> {
        let executors = points(&nest.extents).map(|iteration| match position(&iteration, &layout.shape) {
            Some(_) => threads(layout, &iteration),
            None => Ok(Vec::new()),
        });
        Ok(LoopPlacement {
            vars: nest.vars.clone(),
            extents: nest.extents.clone(),
            executors: executors.collect::<Result<_, _>>()?,
        })
    }

    /// The iterations of a nest as the reference executes it: perhaps fused to one loop, and on the threads that its
    /// predicate lets through.
    pub fn of_expected(nest: &Parallel, answer: &ExpectedLoop) -> Result<LoopPlacement, String> {
        let predicate = answer.predicate.as_deref().map(Predicate::parse).transpose()?;
        let mut placement = if is_fused(nest, answer) {
            let flat = Parallel { extents: vec![size(&nest.extents)], ..nest.clone() };
            let executors = LoopPlacement::of_layout(&flat, &answer.layout)?.executors;
            LoopPlacement { vars: nest.vars.clone(), extents: nest.extents.clone(), executors }
        } else if answer.vars == nest.vars && answer.extents == nest.extents {
            LoopPlacement::of_layout(nest, &answer.layout)?
        } else {
            return Err(format!("loop `{}` is answered by `{}`", nest.vars.join(", "), answer.vars.join(", ")));
        };
        for executors in &mut placement.executors {
            executors.retain(|thread| predicate.as_ref().is_none_or(|predicate| predicate.holds(*thread)));
        }
        Ok(placement)
    }
}

/// The parallel operations of a program, in order.
pub(crate) fn nests(body: &[Op]) -> Vec<&Parallel> {
    body.iter()
        .flat_map(|op| match op {
            Op::Parallel(nest) => vec![nest],
            Op::Loop(around) => nests(&around.body),
            Op::If { then, otherwise, .. } => [nests(then), nests(otherwise)].concat(),
            _ => Vec::new(),
        })
        .collect()
}

/// A condition on the thread `tx`: `tx < 49`, `tx <= 3`, `tx == 0` or `tx // 16 == 0`.
struct Predicate {
    divisor: i64,
    relation: Relation,
    bound: i64,
}

enum Relation {
    Less,
    AtMost,
    Equal,
}

impl Predicate {
    fn parse(text: &str) -> Result<Predicate, String> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let (divisor, relation, bound) = match parts[..] {
            ["tx", relation, bound] => ("1", relation, bound),
            ["tx", "//", divisor, relation, bound] => (divisor, relation, bound),
            _ => return Err(format!("the predicate `{text}`")),
        };
        let relation = match relation {
            "<" => Relation::Less,
            "<=" => Relation::AtMost,
            "==" => Relation::Equal,
            _ => return Err(format!("the relation of the predicate `{text}`")),
        };
        match (divisor.parse::<i64>(), bound.parse::<i64>()) {
            (Ok(divisor), Ok(bound)) if divisor >= 1 => Ok(Predicate { divisor, relation, bound }),
            _ => Err(format!("the numbers of the predicate `{text}`")),
        }
    }

    fn holds(&self, thread: i64) -> bool {
        let value = thread.div_euclid(self.divisor);
        match self.relation {
            Relation::Less => value < self.bound,
            Relation::AtMost => value <= self.bound,
            Relation::Equal => value == self.bound,
        }
    }
}

/// The name of the loop that the reference puts around a loose statement.
fn is_wrapper(vars: &[String]) -> bool {
    vars == ["_"]
}

/// True where the reference made one loop of the nest.
fn is_fused(nest: &Parallel, answer: &ExpectedLoop) -> bool {
    let fused = format!("{}_fused", nest.vars.join("_"));
    nest.vars.len() > 1 && answer.vars == [fused] && answer.extents == [size(&nest.extents)]
}

fn owners(layout: &Layout, element: &[i64]) -> Result<Vec<(i64, i64)>, String> {
    let owner = |replica| {
        let env = |name: &str| input(name, element, replica);
        let slot = layout.index.eval(&env).ok_or_else(|| format!("no slot for {element:?}"))?;
        Ok((thread(layout, element, replica)?, slot))
    };
    let mut owners = (0..layout.replicate).map(owner).collect::<Result<Vec<_>, String>>()?;
    owners.sort_unstable();
    owners.dedup();
    Ok(owners)
}

fn threads(layout: &Layout, element: &[i64]) -> Result<Vec<i64>, String> {
    let mut threads: Vec<i64> =
        (0..layout.replicate).map(|replica| thread(layout, element, replica)).collect::<Result<_, _>>()?;
    threads.sort_unstable();
    threads.dedup();
    Ok(threads)
}

fn thread(layout: &Layout, element: &[i64], replica: i64) -> Result<i64, String> {
    let thread = layout.thread.eval(&|name| input(name, element, replica));
    thread.ok_or_else(|| format!("no thread for {element:?}"))
}

/// An input of a layout: `rep`, or a coordinate such as `i0`.
fn input(name: &str, element: &[i64], replica: i64) -> Option<i64> {
    match name.strip_prefix('i') {
        Some(number) => element.get(number.parse::<usize>().ok()?).copied(),
        None => (name == "rep").then_some(replica),
    }
}
