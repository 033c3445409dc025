//! Simplification never changes a value: every rule by itself, and the whole on random expressions.

use egg::{Id, RecExpr, Runner, Symbol};
use proptest::prelude::*;
use tilewright_expr::rules::{Index, RULES, Ranges, Rule};
use tilewright_expr::{Expr, Simplifier, ValueRange, Var};

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
    }
}

/// What a trial puts for a pattern variable: `?a ?b` become (multiples of) variables, `?c ?d` numbers.
struct Trial {
    values: [(&'static str, String); 4],
    ranges: Vec<(Symbol, ValueRange)>,
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
    let mut ranges = Vec::new();
    let mut operand = |name: &str, dice: &mut Dice| {
        let lo = [0, 0, 0, -17][dice.below(4) as usize];
        let symbol = Symbol::from(name);
        ranges.push((symbol, ValueRange::new(lo, lo + dice.below(40))));
        let factor = [1, 1, 2, 4, 6, 8, 32][dice.below(7) as usize];
        if factor == 1 { name.to_string() } else { format!("(* {name} {factor})") }
    };
    let a = operand("x", dice);
    let b = operand("y", dice);
    let number = |dice: &mut Dice| [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 5, -4][dice.below(12) as usize].to_string();
    let (c, d) = (number(dice), number(dice));
    Trial { values: [("?a", a), ("?b", b), ("?c", c), ("?d", d)], ranges }
}

/// True when the rule, alone, equates both sides of the filled pattern.
fn fires(rule: &Rule, trial: &Trial) -> bool {
    let from = trial.fill(rule.from);
    let rewrite = rule.rewrite().expect("the rule's patterns parse");
    let ranges = Ranges { variables: trial.ranges.clone() };
    let runner: Runner<Index, Ranges, ()> = Runner::new(ranges).with_iter_limit(1).with_expr(&from).run([&rewrite]);
    runner.iterations.iter().any(|it| it.applied.iter().any(|(name, _)| name.as_str() == rule.name))
}

fn values(range: ValueRange) -> impl Iterator<Item = i64> {
    let step = ((range.hi - range.lo) / 7).max(1);
    (range.lo..=range.hi).step_by(step as usize)
}

fn check(rule: &Rule, trial: &Trial) {
    let (from, to) = (trial.fill(rule.from), trial.fill(rule.to));
    for x in values(trial.ranges[0].1) {
        for y in values(trial.ranges[1].1) {
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

fn expression() -> impl Strategy<Value = Expr> {
    let leaf =
        prop_oneof![(-9i64..300).prop_map(Expr::constant), (0usize..4).prop_map(|i| Expr::var(&variables()[i])),];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let number =
            prop_oneof![Just(1i64), Just(2), Just(3), Just(4), Just(7), Just(8), Just(32), Just(60), Just(128)];
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a + b),
            (inner.clone(), number.clone()).prop_map(|(a, c)| a * c),
            (inner.clone(), number.clone()).prop_map(|(a, c)| a / c),
            (inner.clone(), number.clone()).prop_map(|(a, c)| a % c),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a ^ b),
            (inner, prop_oneof![Just(112i64), Just(7), Just(5)]).prop_map(|(a, c)| a & c),
        ]
    })
}

fn variables() -> [Var; 4] {
    [Var::new("lane", 0, 31), Var::new("s", 0, 4), Var::new("t", -8, 100), Var::new("r", 0, 7)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn simplification_keeps_every_value(expr in expression(), seeds in prop::collection::vec(any::<[u16; 4]>(), 24)) {
        let simple = Simplifier::new().simplify(&expr);
        for seed in seeds {
            let env = |var: &Var| {
                let at = variables().iter().position(|v| v == var)?;
                let range = var.range();
                Some(range.lo + i64::from(seed[at]) % (range.hi - range.lo + 1))
            };
            prop_assert_eq!(expr.eval(&env), simple.eval(&env), "{} became {}", expr, simple);
        }
    }

    #[test]
    fn ranges_and_multiples_hold_for_every_value(expr in expression(), seed in any::<[u16; 4]>()) {
        let env = |var: &Var| {
            let at = variables().iter().position(|v| v == var)?;
            let range = var.range();
            Some(range.lo + i64::from(seed[at]) % (range.hi - range.lo + 1))
        };
        let value = expr.eval(&env).expect("small numbers do not overflow");
        let range = expr.range();
        prop_assert!(range.lo <= value && value <= range.hi, "{} = {} outside {:?}", expr, value, range);
        let multiple = expr.multiple();
        prop_assert!(if multiple == 0 { value == 0 } else { value % multiple == 0 }, "{} = {}, not a multiple of {}", expr, value, multiple);
    }
}
