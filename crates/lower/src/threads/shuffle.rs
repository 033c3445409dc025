//! Shuffles from a lane that each lane names.

use tilewright_expr::Expr;
use tilewright_ir::thread::{Call, Inst, Regs, Stmt};
use tilewright_layout::access::LANES;

use super::number;
use crate::builder::Builder;

/// Adds shuffles after which every lane has the registers of another one; where that is `None`, of any.
pub(crate) fn shuffle_from(
    source: impl Fn(usize) -> Option<usize>,
    lane: &Expr,
    registers: impl Iterator<Item = (Regs, Regs)>,
    builder: &mut Builder,
    out: &mut Vec<Stmt>,
) {
    let lanes: Vec<Option<i64>> = (0..LANES).map(|lane| source(lane).map(|lane| lane as i64)).collect();
    let (inst, arguments) = match within(&lanes) {
        Some((lane, width)) => (Inst::ShuffleWithin, [lane, width].map(Expr::constant).to_vec()),
        None => (Inst::Shuffle, vec![number(&lanes, 1, lane, builder, out)]),
    };
    for (from, to) in registers {
        let arguments = arguments.clone();
        out.push(Stmt::from(Call { to: Some(to), from: vec![from], arguments, ..Call::plain(inst) }));
    }
}

/// The lane that all lanes of a group read, if neighbouring lanes are groups, and how many these are.
fn within(lanes: &[Option<i64>]) -> Option<(i64, i64)> {
    let first = lanes[0]?;
    let is_width = |width: &i64| {
        let of = |lane: usize| lane as i64 / width * width + first;
        first < *width && lanes.iter().enumerate().all(|(lane, source)| *source == Some(of(lane)))
    };
    [2, 4, 8, 16].into_iter().find(is_width).map(|width| (first, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_lanes_that_read_one_are_a_group() {
        let of = |source: &dyn Fn(usize) -> usize| {
            within(&(0..LANES).map(|lane| Some(source(lane) as i64)).collect::<Vec<_>>())
        };
        assert_eq!(of(&|lane| lane / 8 * 8 + 3), Some((3, 8)));
        assert_eq!(of(&|lane| lane & !1), Some((0, 2)));
        // All lanes read one, and every second one does.
        assert_eq!([of(&|_| 15), of(&|lane| lane & 1)], [None, None]);
    }
}
