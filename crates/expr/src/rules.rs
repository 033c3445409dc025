//! The rewrite rules given to egg, one row each.
//!
//! Every rule is an equation on all integers for which its condition holds; each is directional and makes no term
//! bigger in the cost of [`crate::Simplifier`], or enables one that makes it smaller. There is no
//! associativity and commutativity only of `^` and `&`: sums are kept sorted by [`crate::linear`].

use egg::{Analysis, DidMerge, EGraph, Id, Rewrite, Subst, Symbol, Var as PatternVar, define_language};

use crate::facts::Facts;
use crate::range::gcd;

/// The e-graph's own form of index expressions. The macro's variants carry no docs; they are those of [`crate::Node`].
#[allow(missing_docs)]
mod language {
    use super::*;
    define_language! {
        /// Index expressions inside the e-graph; a variable is named by its position in the list of variables.
        pub enum Index {
            "+" = Add([Id; 2]),
            "*" = Mul([Id; 2]),
            "/" = Div([Id; 2]),
            "%" = Mod([Id; 2]),
            "^" = Xor([Id; 2]),
            "&" = And([Id; 2]),
            "min" = Min([Id; 2]),
            "max" = Max([Id; 2]),
            Num(i64),
            Var(Symbol),
        }
    }
}
pub use language::Index;

/// The e-graph analysis: derives the [`Facts`] of every e-class from those of the variables.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Variables by the name used in the e-graph, with what is known about them.
    pub variables: Vec<(Symbol, Facts)>,
}

/// The e-graph of index expressions.
pub type Graph = EGraph<Index, Ranges>;

impl Analysis<Index> for Ranges {
    type Data = Facts;

    fn make(graph: &mut Graph, node: &Index, _: Id) -> Facts {
        let of = |id: &Id| graph[*id].data;
        match node {
            Index::Num(value) => Facts::of_number(*value),
            Index::Var(name) => {
                let known = graph.analysis.variables.iter().find(|(known, _)| known == name);
                known.map_or_else(Facts::unknown, |(_, facts)| *facts)
            }
            Index::Add([a, b]) => of(a).add(of(b)),
            Index::Mul([a, b]) => of(a).mul(of(b)),
            Index::Div([a, b]) => of(a).div(of(b)),
            Index::Mod([a, b]) => of(a).rem(of(b)),
            Index::Xor([a, b]) => of(a).xor(of(b)),
            Index::And([a, b]) => of(a).and(of(b)),
            Index::Min([a, b]) => of(a).min(of(b)),
            Index::Max([a, b]) => of(a).max(of(b)),
        }
    }

    fn merge(&mut self, to: &mut Facts, from: Facts) -> DidMerge {
        let met = to.met(from);
        let merged = DidMerge(met != *to, met != from);
        *to = met;
        merged
    }

    fn modify(graph: &mut Graph, id: Id) {
        if let Some(value) = graph[id].data.range.constant() {
            let number = graph.add(Index::Num(value));
            graph.union(id, number);
            // Without this, 0 = 0*32 = (0*32)*32 = ... grows without end.
            graph[id].nodes.retain(|node| matches!(node, Index::Num(_)));
        }
    }
}

/// The values bound to the variables `?a ?b ?c ?d` of a pattern, for a rule's condition.
pub struct Bound<'a> {
    graph: &'a Graph,
    subst: &'a Subst,
}

impl Bound<'_> {
    fn facts(&self, name: &str) -> Option<&Facts> {
        let var: PatternVar = name.parse().ok()?;
        self.subst.get(var).map(|id| &self.graph[*id].data)
    }

    /// The positive number bound to `name`.
    fn positive(&self, name: &str) -> Option<i64> {
        self.facts(name)?.range.constant().filter(|value| *value > 0)
    }

    fn power_of_two(&self, name: &str) -> Option<i64> {
        self.positive(name).filter(|value| value & (value - 1) == 0)
    }

    fn non_negative(&self, name: &str) -> bool {
        self.facts(name).is_some_and(|f| f.range.is_non_negative())
    }

    /// `b` is too small to carry into the multiples that `a` and `c` share.
    fn b_never_carries(&self) -> bool {
        let (Some(a), Some(b), Some(c)) = (self.facts("?a"), self.facts("?b"), self.positive("?c")) else {
            return false;
        };
        b.range.within(0, gcd(a.multiple, c).max(1))
    }

    fn disjoint_bits(&self) -> bool {
        let (Some(a), Some(b)) = (self.facts("?a"), self.facts("?b")) else { return false };
        a.range.is_non_negative() && b.range.is_non_negative() && a.possible_bits() & b.possible_bits() == 0
    }
}

/// One rewrite rule.
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What is matched; `?a ?b` are any values, `?c ?d` are numbers where the condition requires that.
    pub from: &'static str,
    /// What it equals under the condition.
    pub to: &'static str,
    /// When the equation holds.
    pub when: fn(&Bound<'_>) -> bool,
}

fn always(_: &Bound<'_>) -> bool {
    true
}

/// All rules, in the order in which they are given to egg.
pub const RULES: &[Rule] = &[
    Rule {
        name: "div-div",
        from: "(/ (/ ?a ?c) ?d)",
        to: "(/ ?a (* ?c ?d))",
        when: |m| matches!((m.positive("?c"), m.positive("?d")), (Some(c), Some(d)) if c.checked_mul(d).is_some()),
    },
    Rule {
        name: "mod-mod",
        from: "(% (% ?a ?c) ?d)",
        to: "(% ?a ?d)",
        when: |m| matches!((m.positive("?c"), m.positive("?d")), (Some(c), Some(d)) if c % d == 0),
    },
    Rule {
        name: "div-of-mod",
        from: "(/ (% ?a ?c) ?d)",
        to: "(% (/ ?a ?d) (/ ?c ?d))",
        when: |m| matches!((m.positive("?c"), m.positive("?d")), (Some(c), Some(d)) if c % d == 0),
    },
    Rule {
        name: "mod-small",
        from: "(% ?a ?c)",
        to: "?a",
        when: |m| m.positive("?c").is_some_and(|c| m.facts("?a").is_some_and(|a| a.range.within(0, c))),
    },
    Rule { name: "div-drops-low", from: "(/ (+ ?a ?b) ?c)", to: "(/ ?a ?c)", when: |m| m.b_never_carries() },
    Rule { name: "mod-keeps-low", from: "(% (+ ?a ?b) ?c)", to: "(+ (% ?a ?c) ?b)", when: |m| m.b_never_carries() },
    Rule { name: "xor-commutes", from: "(^ ?a ?b)", to: "(^ ?b ?a)", when: always },
    Rule { name: "xor-self", from: "(^ ?a ?a)", to: "0", when: always },
    Rule { name: "xor-cancels", from: "(^ ?a (^ ?a ?b))", to: "?b", when: always },
    Rule { name: "xor-of-disjoint-bits", from: "(^ ?a ?b)", to: "(+ ?a ?b)", when: |m| m.disjoint_bits() },
    Rule {
        name: "mod-of-xor",
        from: "(% (^ ?a ?b) ?c)",
        to: "(^ (% ?a ?c) (% ?b ?c))",
        when: |m| m.power_of_two("?c").is_some() && m.non_negative("?a") && m.non_negative("?b"),
    },
    Rule {
        name: "div-of-xor",
        from: "(/ (^ ?a ?b) ?c)",
        to: "(^ (/ ?a ?c) (/ ?b ?c))",
        when: |m| m.power_of_two("?c").is_some() && m.non_negative("?a") && m.non_negative("?b"),
    },
    Rule {
        name: "xor-of-multiples",
        from: "(^ (* ?a ?c) (* ?b ?c))",
        to: "(* (^ ?a ?b) ?c)",
        when: |m| m.power_of_two("?c").is_some() && m.non_negative("?a") && m.non_negative("?b"),
    },
    Rule { name: "and-commutes", from: "(& ?a ?b)", to: "(& ?b ?a)", when: always },
    Rule { name: "and-self", from: "(& ?a ?a)", to: "?a", when: always },
];

struct Condition(fn(&Bound<'_>) -> bool);

impl egg::Condition<Index, Ranges> for Condition {
    fn check(&self, graph: &mut Graph, _: Id, subst: &Subst) -> bool {
        (self.0)(&Bound { graph, subst })
    }
}

impl Rule {
    /// The rule as egg takes it; the error is a malformed row of [`RULES`].
    pub fn rewrite(&self) -> Result<Rewrite<Index, Ranges>, String> {
        let from: egg::Pattern<Index> = self.from.parse().map_err(|e| format!("{}: {e}", self.name))?;
        let to: egg::Pattern<Index> = self.to.parse().map_err(|e| format!("{}: {e}", self.name))?;
        let conditional = egg::ConditionalApplier { condition: Condition(self.when), applier: to };
        Rewrite::new(self.name, from, conditional)
    }
}
