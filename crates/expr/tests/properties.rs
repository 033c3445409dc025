//! Simplification never changes a value: tested for every rule by itself, and for the whole on random expressions.
//! Facts about values hold, and expressions and the e-graph know the same facts.

use egg::{Id, RecExpr, Runner, Symbol};
use proptest::prelude::*;
use tilewright_expr::rules::{Graph, Index, RULES, Ranges, Rule};
use tilewright_expr::{Expr, Facts, Node, Simplifier, ValueRange, Var};

fn eval(tree: &RecExpr<Index>, at: Id, env: &dyn Fn(Symbol) -> i64) -> i64 {
    let go = |id: &Id| eval(tree, *id, env);
    match &tree[at] {
        Index::Num(value) => *value,
        Index::Var(name) => env(*name),
        Index::Add([a, b]) => go(a) + go(b),
        Index::Mul([a, b]) => go(a) * go(b),
        Index::Div([a, b]) => go(a).div_euclid(go(b)),
        Index::Mod([a, b]) => go(a).rem_euclid(go(b)),
        Index::Xor([a, b]) => go(a) ^ go(b),
        Index::And([a, b]) => go(a) & go(b),
        Index::Min([a, b]) => go(a).min(go(b)),
        Index::Max([a, b]) => go(a).max(go(b)),
    }
}

/// What a trial substitutes for pattern variables: (multiples of) variables for `?a ?b`, numbers for `?c ?d`.
struct Trial {
    /// The text of each pattern variable.
    values: [(&'static str, String); 4],
    /// The variables, with their facts.
    known: Vec<(Symbol, Facts)>,
}

impl Trial {
    fn fill(&self, pattern: &str) -> RecExpr<Index> {
        let text = self.values.iter().fold(pattern.to_string(), |text, (name, value)| text.replace(name, value));
        text.parse().expect("a filled pattern is an expression")
    }
}

/// A small deterministic generator: the rules are few, the trials many.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n) as i64
    }
}

fn trial(dice: &mut Dice) -> Trial {
    let mut known = Vec::new();
    let mut operand = |name: &str, dice: &mut Dice| {
        let lo = [0, 0, 0, -17][dice.below(4) as usize];
        let symbol = Symbol::from(name);
        let multiple = [1, 1, 1, 4, 8][dice.below(5) as usize];
        known.push((symbol, Facts::new(ValueRange::new(lo, lo + dice.below(40)), multiple)));
        let factor = [1, 1, 2, 4, 6, 8, 32][dice.below(7) as usize];
        if factor == 1 { name.to_string() } else { format!("(* {name} {factor})") }
    };
    let a = operand("x", dice);
    let b = operand("y", dice);
    let number = |dice: &mut Dice| [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 5, -4][dice.below(12) as usize].to_string();
    let (c, d) = (number(dice), number(dice));
    Trial { values: [("?a", a), ("?b", b), ("?c", c), ("?d", d)], known }
}

/// True when the rule, alone, equates both sides of the filled pattern.
fn fires(rule: &Rule, trial: &Trial) -> bool {
    let from = trial.fill(rule.from);
    let rewrite = rule.rewrite().expect("the rule's patterns parse");
    let known = Ranges { variables: trial.known.clone() };
    let runner: Runner<Index, Ranges, ()> = Runner::new(known).with_iter_limit(1).with_expr(&from).run([&rewrite]);
    runner.iterations.iter().any(|it| it.applied.iter().any(|(name, _)| name.as_str() == rule.name))
}

/// All values that these facts allow.
fn values(facts: Facts) -> Vec<i64> {
    let Facts { range, multiple } = facts;
    (range.lo..=range.hi).filter(|value| if multiple == 0 { *value == 0 } else { value % multiple == 0 }).collect()
}

/// About eight of the values that these facts allow.
fn some_values(facts: Facts) -> impl Iterator<Item = i64> {
    let all = values(facts);
    let step = (all.len() / 7).max(1);
    all.into_iter().step_by(step)
}

fn check(rule: &Rule, trial: &Trial) {
    let (from, to) = (trial.fill(rule.from), trial.fill(rule.to));
    for x in some_values(trial.known[0].1) {
        for y in some_values(trial.known[1].1) {
            let env = |name: Symbol| if name == Symbol::from("x") { x } else { y };
            let last = |tree: &RecExpr<Index>| Id::from(tree.len() - 1);
            let (left, right) = (eval(&from, last(&from), &env), eval(&to, last(&to), &env));
            assert_eq!(left, right, "rule {}: {from} = {to} fails at x={x} y={y}", rule.name);
        }
    }
}

#[test]
fn every_rule_is_an_equation_wherever_its_condition_holds() {
    for rule in RULES {
        let mut dice = Dice(7);
        let mut fired = 0;
        for _ in 0..4000 {
            let trial = trial(&mut dice);
            if fires(rule, &trial) {
                fired += 1;
                check(rule, &trial);
            }
        }
        assert!(fired >= 20, "rule {} fired {fired} times in 4000 trials: nothing was tested", rule.name);
    }
}

fn expression(vars: Vec<Var>) -> impl Strategy<Value = Expr> {
    let var = (0..vars.len()).prop_map(move |at| Expr::var(&vars[at]));
    let leaf = prop_oneof![(-9i64..300).prop_map(Expr::constant), var];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let number =
            prop_oneof![Just(1i64), Just(2), Just(3), Just(4), Just(7), Just(8), Just(32), Just(60), Just(128)];
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a + b),
            (inner.clone(), number.clone()).prop_map(|(a, c)| a * c),
            (inner.clone(), number.clone()).prop_map(|(a, c)| a / c),
            (inner.clone(), number.clone()).prop_map(|(a, c)| a % c),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a ^ b),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.at_most(b)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.at_least(b)),
            (inner, prop_oneof![Just(112i64), Just(7), Just(5)]).prop_map(|(a, c)| a & c),
        ]
    })
}

fn variables() -> Vec<Var> {
    let ranges = [("lane", 0, 31), ("s", 0, 4), ("t", -8, 100), ("r", 0, 7)];
    let mut vars: Vec<Var> = ranges.into_iter().map(|(name, lo, hi)| Var::new(name, lo, hi)).collect();
    vars.push(Var::multiple_of("n", 8, 96, 8));
    vars
}

/// Variables with so few values that all points are checked.
fn small_variables() -> Vec<Var> {
    vec![Var::new("a", 0, 5), Var::new("b", -3, 4), Var::multiple_of("n", -4, 12, 4)]
}

/// The value that a seed picks for each of the variables.
fn picked(seed: [u16; 5]) -> impl Fn(&Var) -> Option<i64> {
    move |var| {
        let at = variables().iter().position(|known| known == var)?;
        let values = values(var.facts());
        Some(values[usize::from(seed[at]) % values.len()])
    }
}

/// All values of these variables.
fn points(vars: &[Var]) -> Vec<Vec<i64>> {
    let with = |points: Vec<Vec<i64>>, var: &Var| {
        let values = values(var.facts());
        points.iter().flat_map(|point| values.iter().map(move |value| [&point[..], &[*value]].concat())).collect()
    };
    vars.iter().fold(vec![Vec::new()], with)
}

fn facts_of(expr: &Expr) -> Facts {
    Facts { range: expr.range(), multiple: expr.multiple() }
}

fn assert_holds(facts: Facts, value: i64, expr: &Expr) -> Result<(), TestCaseError> {
    let Facts { range, multiple } = facts;
    prop_assert!(range.lo <= value && value <= range.hi, "{} = {} outside {:?}", expr, value, range);
    let divides = if multiple == 0 { value == 0 } else { value % multiple == 0 };
    prop_assert!(divides, "{} = {}, not a multiple of {}", expr, value, multiple);
    Ok(())
}

/// What the e-graph knows about an expression before any rule is applied.
fn facts_in_the_graph(expr: &Expr, vars: &[Var]) -> Facts {
    let variables = vars.iter().map(|var| (Symbol::from(var.name()), var.facts())).collect();
    let mut graph = Graph::new(Ranges { variables });
    let mut tree = RecExpr::default();
    add_to(&mut tree, expr);
    let root = graph.add_expr(&tree);
    graph.rebuild();
    graph[root].data
}

fn add_to(tree: &mut RecExpr<Index>, expr: &Expr) -> Id {
    let node = match expr.node() {
        Node::Const(value) => Index::Num(*value),
        Node::Var(var) => Index::Var(Symbol::from(var.name())),
        Node::Add(a, b) => Index::Add([add_to(tree, a), add_to(tree, b)]),
        Node::Mul(a, b) => Index::Mul([add_to(tree, a), add_to(tree, b)]),
        Node::Div(a, b) => Index::Div([add_to(tree, a), add_to(tree, b)]),
        Node::Mod(a, b) => Index::Mod([add_to(tree, a), add_to(tree, b)]),
        Node::Xor(a, b) => Index::Xor([add_to(tree, a), add_to(tree, b)]),
        Node::And(a, b) => Index::And([add_to(tree, a), add_to(tree, b)]),
        Node::Min(a, b) => Index::Min([add_to(tree, a), add_to(tree, b)]),
        Node::Max(a, b) => Index::Max([add_to(tree, a), add_to(tree, b)]),
    };
    tree.add(node)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn simplification_keeps_every_value(
        expr in expression(variables()),
        seeds in prop::collection::vec(any::<[u16; 5]>(), 24),
    ) {
        let simple = Simplifier::new().simplify(&expr);
        for seed in seeds {
            let env = picked(seed);
            prop_assert_eq!(expr.eval(&env), simple.eval(&env), "{} became {}", expr, simple);
        }
    }

    #[test]
    fn ranges_and_multiples_hold_for_every_value(expr in expression(variables()), seed in any::<[u16; 5]>()) {
        let value = expr.eval(&picked(seed)).expect("small numbers do not overflow");
        assert_holds(facts_of(&expr), value, &expr)?;
    }

    #[test]
    fn expressions_and_the_e_graph_know_the_same_which_holds_at_every_point(expr in expression(small_variables())) {
        let vars = small_variables();
        let facts = facts_of(&expr);
        prop_assert_eq!(facts_in_the_graph(&expr, &vars), facts, "{}", expr);
        for point in points(&vars) {
            let env = |var: &Var| vars.iter().position(|known| known == var).map(|at| point[at]);
            let value = expr.eval(&env).expect("small numbers do not overflow");
            assert_holds(facts, value, &expr)?;
        }
    }
}
