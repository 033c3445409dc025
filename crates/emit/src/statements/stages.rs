//! The stage and the phase of an iteration of a pipelined loop, which are counted on instead of computed from the number of the
//! iteration: a remainder and a quotient by 3, say, take more instructions.

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::Counter;
use tilewright_ir::thread::Stmt;

/// What a loop counts beside its variable.
pub(crate) struct Stages<'a> {
    /// The number of the iteration modulo the stages.
    stage: &'a Var,
    /// The number of the iteration divided by the stages.
    phase: Option<&'a Var>,
    stages: i64,
    /// The statements of the loop without the definitions of these.
    pub(crate) body: Vec<Stmt>,
}

impl<'a> Stages<'a> {
    /// The stages of a loop, if it begins with their definitions.
    pub(crate) fn of(counter: &Counter, body: &'a [Stmt]) -> Option<Stages<'a>> {
        let Counter { var, begin, step, .. } = counter;
        let number = normalize(&(normalize(&(Expr::var(var) - begin.clone())) / *step));
        let definitions = || {
            body.iter().map_while(|stmt| match stmt {
                Stmt::Let { var, value } => Some((var, value)),
                _ => None,
            })
        };
        let stages_of = |value: &Expr| match value.node() {
            Node::Mod(_, by) => by.as_const().filter(|by| normalize(&(&number % *by)) == *value),
            _ => None,
        };
        let (stage, stages) = definitions().find_map(|(var, value)| Some((var, stages_of(value)?)))?;
        let quotient = normalize(&(&number / stages));
        let phase = definitions().find(|(_, value)| **value == quotient).map(|(var, _)| var);
        let is_counted = |stmt: &&Stmt| match stmt {
            Stmt::Let { var, .. } => var == stage || Some(var) == phase,
            _ => false,
        };
        let body = body.iter().filter(|stmt| !is_counted(stmt)).cloned().collect();
        Some(Stages { stage, phase, stages, body })
    }

    /// The definitions in front of the loop.
    pub(crate) fn before(&self) -> String {
        let names = std::iter::once(self.stage).chain(self.phase).map(|var| format!("{} = 0", var.name()));
        format!("int {};", names.collect::<Vec<_>>().join(", "))
    }

    /// The lines at the end of an iteration.
    pub(crate) fn after(&self) -> Vec<String> {
        let (stage, stages) = (self.stage.name(), self.stages);
        match self.phase {
            None => vec![format!("if (++{stage} == {stages}) {stage} = 0;")],
            Some(phase) => vec![
                format!("if (++{stage} == {stages}) {{"),
                format!("  {stage} = 0;"),
                format!("  ++{};", phase.name()),
                "}".to_string(),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, value: Expr) -> Stmt {
        let value = normalize(&value);
        Stmt::Let { var: Var::new(name, value.range().lo, value.range().hi), value }
    }

    /// The lines before a loop and at the end of it, and the names that are left in it.
    fn counted(begin: i64, step: i64, body: &[Stmt]) -> Option<(String, Vec<String>, usize)> {
        let (counter, _) = Counter::new("t", Expr::constant(begin), Expr::constant(100), step);
        Stages::of(&counter, body).map(|stages| (stages.before(), stages.after(), stages.body.len()))
    }

    #[test]
    fn stage_and_phase_are_counted() {
        let t = Expr::var(&Var::new("t", 0, 99));
        let body = [named("stage", &t % 3), named("t_next", &t + 2), named("phase", &t / 3)];
        let after = ["if (++stage == 3) {", "  stage = 0;", "  ++phase;", "}"].map(str::to_string).to_vec();
        assert_eq!(counted(0, 1, &body), Some(("int stage = 0, phase = 0;".to_string(), after, 1)));
        let alone = vec!["if (++stage == 3) stage = 0;".to_string()];
        assert_eq!(counted(0, 1, &body[..2]), Some(("int stage = 0;".to_string(), alone, 1)));
    }

    #[test]
    fn other_remainders_stay() {
        let t = Expr::var(&Var::new("t", 0, 99));
        assert_eq!(counted(0, 1, &[named("x", (&t + 1) % 3)]), None);
        assert_eq!(counted(0, 2, &[named("x", &t % 3)]), None);
        assert_eq!(counted(0, 1, &[named("x", t.clone() * 2)]), None);
    }
}
