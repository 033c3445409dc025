use std::collections::BTreeMap;
use std::sync::LazyLock;

use egg::{CostFunction, EGraph, Extractor, Id, Language, RecExpr, Rewrite, Symbol};

use crate::expr::{Expr, Node, Var};
use crate::linear::{Linear, linear, normalize};
use crate::rules::{Index, RULES, Ranges};

/// Limits of one search. There is no time limit: results must not depend on the machine.
const ITERATIONS: usize = 12;
const NODES: usize = 20_000;
/// A rule with more matches is left out of an iteration.
const MATCHES: usize = 1_000;
/// Sums and egg take turns at most this often; two turns settle every index seen so far.
const TURNS: usize = 4;

static REWRITES: LazyLock<Vec<Rewrite<Index, Ranges>>> =
    LazyLock::new(|| RULES.iter().filter_map(|rule| rule.rewrite().ok()).collect());

/// Simplifies index expressions and remembers what it has seen.
#[derive(Debug, Default)]
pub struct Simplifier {
    /// The simplified form of each expression that was given.
    seen: BTreeMap<Expr, Expr>,
}

impl Simplifier {
    /// A simplifier that has seen nothing yet.
    pub fn new() -> Simplifier {
        Simplifier::default()
    }

    /// An expression with the same value for all values of its variables, and no more costly to compute.
    pub fn simplify(&mut self, expr: &Expr) -> Expr {
        if let Some(known) = self.seen.get(expr) {
            return known.clone();
        }
        // Addresses often differ by a constant only.
        let Linear { terms, constant } = linear(expr);
        let rest = Linear { terms, constant: 0 }.to_expr();
        let best = match self.seen.get(&rest) {
            Some(known) => known.clone(),
            None => {
                let found = search(&rest);
                self.seen.insert(rest, found.clone());
                found
            }
        };
        let best = normalize(&(best + constant));
        self.seen.insert(expr.clone(), best.clone());
        best
    }
}

fn search(expr: &Expr) -> Expr {
    let mut best = normalize(expr);
    for _ in 0..TURNS {
        if !has_work_for_egg(&best) {
            break;
        }
        let next = normalize(&rewrite(&best));
        if next == best || cost(&next) >= cost(&best) {
            break;
        }
        best = next;
    }
    best
}

/// True when an operation other than a sum has something to rewrite: another operation below it, or operands without
/// a common bit.
fn has_work_for_egg(expr: &Expr) -> bool {
    let Some((a, b)) = expr.operands() else { return false };
    let nested = |e: &Expr| e.operands().is_some();
    let here = match expr.node() {
        Node::Div(..) | Node::Mod(..) => nested(a),
        Node::Xor(..) | Node::And(..) => nested(a) || nested(b) || a == b || bits(a) & bits(b) == 0,
        Node::Min(..) | Node::Max(..) | Node::Const(_) | Node::Var(_) | Node::Add(..) | Node::Mul(..) => false,
    };
    here || has_work_for_egg(a) || has_work_for_egg(b)
}

fn bits(expr: &Expr) -> i64 {
    expr.facts().possible_bits()
}

fn rewrite(expr: &Expr) -> Expr {
    let mut variables: Vec<Var> = Vec::new();
    let mut start = RecExpr::default();
    to_egg(expr, &mut variables, &mut start);
    let known = Ranges { variables: variables.iter().enumerate().map(|(at, var)| (symbol(at), var.facts())).collect() };
    let mut egraph = EGraph::new(known);
    let root = egraph.add_expr(&start);
    egraph.rebuild();
    saturate(&mut egraph);
    let (_, found) = Extractor::new(&egraph, Instructions).find_best(root);
    from_egg(&found, Id::from(found.len() - 1), &variables).unwrap_or_else(|| expr.clone())
}

/// Applies the rules until nothing changes or a limit is reached. Unlike egg's runner, this reads no clock.
fn saturate(egraph: &mut EGraph<Index, Ranges>) {
    for _ in 0..ITERATIONS {
        let size = (egraph.total_size(), egraph.number_of_classes());
        let found: Vec<_> = REWRITES.iter().map(|rule| rule.search_with_limit(egraph, MATCHES + 1)).collect();
        let mut changed = false;
        for (rule, matches) in REWRITES.iter().zip(found) {
            if matches.iter().map(|one| one.substs.len()).sum::<usize>() <= MATCHES {
                changed |= !rule.apply(egraph, &matches).is_empty();
            }
            if egraph.total_size() > NODES {
                egraph.rebuild();
                return;
            }
        }
        egraph.rebuild();
        if !changed && size == (egraph.total_size(), egraph.number_of_classes()) {
            return;
        }
    }
}

/// Position-based names keep the search independent of how the user's variables are called.
fn symbol(position: usize) -> Symbol {
    Symbol::from(format!("v{position}"))
}

/// The position of a variable, which is added if it is not there.
fn position(variables: &mut Vec<Var>, var: &Var) -> usize {
    variables.iter().position(|known| known == var).unwrap_or_else(|| {
        variables.push(var.clone());
        variables.len() - 1
    })
}

/// Adds an expression to `out`, and its variables to `variables`, each once.
fn to_egg(expr: &Expr, variables: &mut Vec<Var>, out: &mut RecExpr<Index>) -> Id {
    let node = match expr.node() {
        Node::Const(value) => Index::Num(*value),
        Node::Var(var) => Index::Var(symbol(position(variables, var))),
        Node::Add(a, b) => Index::Add([to_egg(a, variables, out), to_egg(b, variables, out)]),
        Node::Mul(a, b) => Index::Mul([to_egg(a, variables, out), to_egg(b, variables, out)]),
        Node::Div(a, b) => Index::Div([to_egg(a, variables, out), to_egg(b, variables, out)]),
        Node::Mod(a, b) => Index::Mod([to_egg(a, variables, out), to_egg(b, variables, out)]),
        Node::Xor(a, b) => Index::Xor([to_egg(a, variables, out), to_egg(b, variables, out)]),
        Node::And(a, b) => Index::And([to_egg(a, variables, out), to_egg(b, variables, out)]),
        Node::Min(a, b) => Index::Min([to_egg(a, variables, out), to_egg(b, variables, out)]),
        Node::Max(a, b) => Index::Max([to_egg(a, variables, out), to_egg(b, variables, out)]),
    };
    out.add(node)
}

fn from_egg(tree: &RecExpr<Index>, at: Id, variables: &[Var]) -> Option<Expr> {
    let child = |id: &Id| from_egg(tree, *id, variables);
    Some(match &tree[at] {
        Index::Num(value) => Expr::constant(*value),
        Index::Var(name) => Expr::var(variables.get((0..variables.len()).position(|i| symbol(i) == *name)?)?),
        Index::Add([a, b]) => child(a)? + child(b)?,
        Index::Mul([a, b]) => child(a)? * child(b)?,
        Index::Div([a, b]) => child(a)? / child(b)?,
        Index::Mod([a, b]) => child(a)? % child(b)?,
        Index::Xor([a, b]) => child(a)? ^ child(b)?,
        Index::And([a, b]) => child(a)? & child(b)?,
        Index::Min([a, b]) => child(a)?.at_most(child(b)?),
        Index::Max([a, b]) => child(a)?.at_least(child(b)?),
    })
}

/// Rough cost of operations. Sums are a little cheaper than bitwise operations, because they merge with other sums;
/// a division that is not a shift takes about eight instructions. Every edge adds 1, so smaller terms win ties.
const SUM: u64 = 2;
const BITWISE: u64 = 3;
const DIVISION: u64 = 16;

fn division_cost(divisor: Option<i64>) -> u64 {
    let is_shift = divisor.is_some_and(|d| d > 0 && d & (d - 1) == 0);
    if is_shift { BITWISE } else { DIVISION }
}

struct Instructions;

impl CostFunction<Index> for Instructions {
    /// The cost, and the number if the term is one (a divisor's cost depends on it).
    type Cost = (u64, Option<i64>);

    fn cost<C>(&mut self, node: &Index, mut costs: C) -> Self::Cost
    where
        C: FnMut(Id) -> Self::Cost,
    {
        let (mut sum, mut divisor) = (0u64, None);
        for &child in node.children() {
            let (cost, number) = costs(child);
            sum = sum.saturating_add(cost).saturating_add(1);
            divisor = number;
        }
        let (own, number) = match node {
            Index::Num(value) => (0, Some(*value)),
            Index::Var(_) => (0, None),
            Index::Add(_) | Index::Mul(_) => (SUM, None),
            Index::Xor(_) | Index::And(_) | Index::Min(_) | Index::Max(_) => (BITWISE, None),
            Index::Div(_) | Index::Mod(_) => (division_cost(divisor), None),
        };
        (sum.saturating_add(own), number)
    }
}

fn cost(expr: &Expr) -> u64 {
    let Some((a, b)) = expr.operands() else { return 0 };
    let own = match expr.node() {
        Node::Const(_) | Node::Var(_) => 0,
        Node::Add(..) | Node::Mul(..) => SUM,
        Node::Xor(..) | Node::And(..) | Node::Min(..) | Node::Max(..) => BITWISE,
        Node::Div(_, divisor) | Node::Mod(_, divisor) => division_cost(divisor.as_const()),
    };
    cost(a) + cost(b) + own + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(name: &str, hi: i64) -> Expr {
        Expr::var(&Var::new(name, 0, hi))
    }

    fn simplified(expr: Expr) -> String {
        Simplifier::new().simplify(&expr).to_string()
    }

    #[test]
    fn the_seed_programs_source_index() {
        let (s, r, tx) = (v("s", 1), v("r", 3), v("tx", 31));
        let index = s * 128 + (r ^ (tx.clone() / 8 % 4)) % 4 * 32 + tx;
        assert_eq!(simplified(index), "s*128 + (r ^ tx/8)*32 + tx");
    }

    #[test]
    fn a_lane_and_warp_round_trip_is_the_thread_index() {
        let t = v("tid", 255);
        let (warp, lane) = (&t / 32, &t % 32);
        assert_eq!(simplified(warp * 32 + lane), "tid");
    }

    #[test]
    fn nested_division_of_a_decomposition() {
        let t = v("t", 4095);
        assert_eq!(simplified(((&t / 4) % 64) / 16 % 4), "t/64%4");
    }

    #[test]
    fn an_xor_of_disjoint_bits_is_a_sum() {
        let (a, b) = (v("a", 7), v("b", 3));
        assert_eq!(simplified((b * 8) ^ a), "b*8 + a");
    }

    #[test]
    fn what_divides_a_variable_is_known_to_the_rules() {
        let n = Expr::var(&Var::multiple_of("n", 0, 4096, 8));
        assert_eq!(simplified((n.clone() + 3) % 8), "3");
        assert_eq!(simplified(n.clone() ^ v("r", 7)), "n + r");
    }

    #[test]
    fn many_terms_do_not_explode() {
        let sum = (0..14).fold(Expr::constant(0), |sum, i| sum + v(&format!("x{i:02}"), 3 + i) * (1 << i));
        assert!(simplified((sum.clone() / 64) % 8).len() < 4_000);
    }

    #[test]
    fn a_second_request_is_answered_from_memory() {
        let mut simplifier = Simplifier::new();
        let e = (v("a", 100) + 3) / 5 % 7;
        let first = simplifier.simplify(&e);
        assert_eq!((simplifier.simplify(&e), simplifier.seen.len()), (first, 1));
    }
}
