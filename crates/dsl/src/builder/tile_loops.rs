//! Loops over tiles that CTAs claim from each other, or that roles visit in turns.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::Handle;
use tilewright_ir::tile::{self, Part, RingKind, Side, Stmt, Unroll};

use super::{KernelBuilder, LoopKind};
use crate::expr::Expr;
use crate::loop_range::LoopRange;
use crate::nodes;

impl<'k> KernelBuilder<'k> {
    /// A ring in which a role tells the others which tile it has claimed.
    #[track_caller]
    pub(crate) fn ring_of_claims(&mut self, stages: i64) -> Handle<tile::Ring> {
        let (name, buffers) = (self.free_name("tiles"), Vec::new());
        self.kernel.rings.push(tile::Ring { name, stages, buffers, kind: RingKind::Claims, span: Span::here() })
    }

    /// A role of one warp that claims one tile after the other until none is left, and tells the other roles.
    #[track_caller]
    pub(crate) fn role_of_claims(&mut self, range: impl LoopRange, claims: Handle<tile::Ring>) {
        let (name, span) = (self.free_name("turn"), Span::here());
        self.role("claim", 1, |k| k.over_claimed((&name, span), range, (claims, Side::Produce), |_, _| ()));
    }

    /// A loop over the tiles that are claimed for the CTA, the first of which is its own.
    #[track_caller]
    pub(crate) fn claimed<T>(
        &mut self,
        name: &str,
        range: impl LoopRange,
        claims: Handle<tile::Ring>,
        body: impl FnOnce(&mut KernelBuilder<'k>, Expr) -> T,
    ) {
        match self.against_visit(claims, Span::here()) {
            Some(finding) => nodes::mistake(finding),
            None => self.over_claimed((name, Span::here()), range, (claims, Side::Consume), body),
        }
    }

    /// Why claimed tiles cannot be visited here, if they cannot.
    fn against_visit(&self, claims: Handle<tile::Ring>, span: Span) -> Option<Diagnostic> {
        let wrong = |message: String| Diagnostic::error("K0291", message).label(span, "visited here");
        let Some(role) = self.role else {
            let finding = wrong("claimed tiles are visited outside of roles".to_string());
            return Some(
                finding.help("write it in a role: k.role(\"compute\", 4, |k| tiles.for_each(k, |k, tile| ..))"),
            );
        };
        if let Some(outer) = self.loops.last() {
            let finding = wrong(format!("claimed tiles are visited inside of the loop `{outer}`"));
            return Some(finding.help("a tile is claimed once: write the loop inside of the visit"));
        }
        let is_earlier = |hold: &&tile::Hold| (hold.ring, hold.role) == (claims, Some(role));
        let earlier = self.kernel.holds.iter().map(|(_, hold)| hold).find(is_earlier)?;
        let finding = wrong(format!("the role `{}` visits the claimed tiles twice", self.kernel.roles[role].name));
        let finding = finding.label(earlier.span, "first visited here");
        Some(finding.help("a tile is claimed once: do all that the role does for it in one visit"))
    }

    /// A number of persistent CTAs: at least 1, or it is a mistake.
    #[track_caller]
    pub(crate) fn some_ctas(&self, ctas: i64) -> i64 {
        if ctas < 1 {
            let finding = Diagnostic::error("K0203", format!("tiles are divided among {ctas} CTAs"));
            let help = "give as many CTAs as the GPU runs at once: 148 on a B200, 132 on an H100";
            nodes::mistake(finding.label(Span::here(), "these tiles").help(help));
        }
        ctas.max(1)
    }

    /// Whether the current role may visit such a part of tiles, against which something may be; otherwise, that is a mistake.
    #[track_caller]
    pub(crate) fn takes_turn(&self, part: Option<Part>, against: Option<&str>) -> bool {
        let (Some(Part { index, of }), span) = (part, Span::here()) else { return true };
        let wrong = |message: String| Diagnostic::error("K0292", message).label(span, "visited here");
        let finding = if !(0..of).contains(&index) {
            let finding = wrong(format!("there is no turn {index} of {of}"));
            finding.help("turns are counted from 0 on: [0, 2] and [1, 2] are the two of two roles")
        } else if let Some(against) = against {
            let finding = wrong(format!("tiles are visited in turns, and {against}"));
            finding.help("use Tiles::persistent, or visit all tiles of the CTA with tiles.for_each")
        } else if self.role.is_none() {
            let finding = wrong("tiles are visited in turns outside of roles".to_string());
            finding.help("write it in a role: k.role(\"even\", 4, |k| tiles.for_every(k, [0, 2], |k, tile| ..))")
        } else if let Some(outer) = self.loops.last() {
            let finding = wrong(format!("tiles are visited in turns inside of the loop `{outer}`"));
            finding.help("write the loop inside of the visit")
        } else {
            return true;
        };
        nodes::mistake(finding);
        false
    }

    /// A loop of which the current role executes a part, if it does not execute all of it.
    #[track_caller]
    pub(crate) fn in_turn<T>(
        &mut self,
        name: &str,
        range: impl LoopRange,
        part: Option<Part>,
        body: impl FnOnce(&mut KernelBuilder<'k>, Expr) -> T,
    ) {
        self.repeat(name, range, LoopKind { part, ..Unroll::No.into() }, body);
    }

    /// A loop whose iterations end with the hold of a role, from which the next iteration has its value.
    fn over_claimed<T>(
        &mut self,
        (name, span): (&str, Span),
        range: impl LoopRange,
        (claims, side): (Handle<tile::Ring>, Side),
        body: impl FnOnce(&mut KernelBuilder<'k>, Expr) -> T,
    ) {
        self.repeat_at(span, name, range, Unroll::Claimed.into(), |k, value| {
            body(k, value);
            let hold = k.begin_hold(claims, side, span);
            k.push(Stmt::End(hold));
        });
    }
}
