//! The result of a layout inference as tables: the threads that hold each element, and those that execute each
//! iteration.

use std::collections::BTreeMap;

use super::boxes::{points, position, size};
use super::case::{Expected, ExpectedLoop};
use super::program::{Layout, Op, Parallel, Program};

/// The placements of the fragments' elements and of the loops' iterations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The placements of fragments and their views, by name.
    pub buffers: BTreeMap<String, Placement>,
    /// The placements of parallel operations, in program order; empty if only the fragments are known.
    pub loops: Vec<LoopPlacement>,
}

/// The placement of the elements of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The fragment's extents.
    pub shape: Vec<i64>,
    /// For every element, row-major: the threads and slots of its copies, sorted and distinct.
    pub owners: Vec<Vec<(i64, i64)>>,
}

/// The placement of the iterations of a parallel operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPlacement {
    /// The loop variables.
    pub vars: Vec<String>,
    /// Their extents.
    pub extents: Vec<i64>,
    /// For every iteration, row-major: the threads that execute it, sorted and distinct.
    pub executors: Vec<Vec<i64>>,
}

impl Assignment {
    /// The reference's answer, without the loops of one iteration that it puts around standalone statements.
    pub fn of_expected(program: &Program, expected: &Expected) -> Result<Assignment, String> {
        let mut answered = expected.loops.iter();
        let mut loops = Vec::new();
        for nest in nests(&program.body) {
            let found = answered.find(|answer| !is_wrapper(&answer.vars) || is_wrapper(&nest.vars));
            let found = found.ok_or_else(|| format!("missing loop `{}`", nest.vars.join(", ")))?;
            loops.push(LoopPlacement::of_expected(nest, found)?);
        }
        Ok(Assignment { loops, ..Assignment::of_layouts(&expected.buffers)? })
    }

    /// The fragments of a witness, or those with layouts in the program. Loops are unknown.
    pub fn of_layouts(layouts: &BTreeMap<String, Layout>) -> Result<Assignment, String> {
        let place = |(name, layout): (&String, &Layout)| {
            Ok((name.clone(), Placement::of_layout(layout).map_err(|why| format!("{name}: {why}"))?))
        };
        Ok(Assignment { buffers: layouts.iter().map(place).collect::<Result<_, String>>()?, loops: Vec::new() })
    }
}

impl Placement {
    /// The table of a layout. The error names an element without a thread or slot, as in a layout with foreign
    /// variables.
    pub fn of_layout(layout: &Layout) -> Result<Placement, String> {
        let owners = points(&layout.shape).map(|element| owners(layout, &element)).collect::<Result<_, _>>()?;
        Ok(Placement { shape: layout.shape.clone(), owners })
    }
}

impl LoopPlacement {
    /// The iterations of a nest that is executed according to its layout.
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

    /// The iterations of a nest as the reference executes it: possibly fused into one loop, and on the threads for
    /// which its predicate is true.
    pub fn of_expected(nest: &Parallel, answer: &ExpectedLoop) -> Result<LoopPlacement, String> {
        let predicate = answer.predicate.as_deref().map(Predicate::parse).transpose()?;
        let mut placement = if is_fused(nest, answer) {
            let flat = Parallel { extents: vec![size(&nest.extents)], ..nest.clone() };
            let executors = LoopPlacement::of_layout(&flat, &answer.layout)?.executors;
            LoopPlacement { vars: nest.vars.clone(), extents: nest.extents.clone(), executors }
        } else if answer.vars == nest.vars && answer.extents == nest.extents {
            LoopPlacement::of_layout(nest, &answer.layout)?
        } else {
            return Err(format!("loop `{}` is matched with `{}`", nest.vars.join(", "), answer.vars.join(", ")));
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
            _ => return Err(format!("unknown predicate `{text}`")),
        };
        let relation = match relation {
            "<" => Relation::Less,
            "<=" => Relation::AtMost,
            "==" => Relation::Equal,
            _ => return Err(format!("unknown relation in predicate `{text}`")),
        };
        match (divisor.parse::<i64>(), bound.parse::<i64>()) {
            (Ok(divisor), Ok(bound)) if divisor >= 1 => Ok(Predicate { divisor, relation, bound }),
            _ => Err(format!("bad numbers in predicate `{text}`")),
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

/// The name of the loop that the reference puts around a standalone statement.
fn is_wrapper(vars: &[String]) -> bool {
    vars == ["_"]
}

/// True if the reference fused the nest into one loop.
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
