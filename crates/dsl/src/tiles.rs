//! Which CTA computes which tile of a result, for all roles alike.

use crate::builder::KernelBuilder;
use crate::expr::Expr;

/// The tiles of a result, divided among CTAs. Every role that goes through them visits the same tiles in the same order, so that
/// rings between the roles stay in step.
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    /// Rows and columns of tiles.
    extent: [Expr; 2],
    schedule: Schedule,
}

/// Which tiles a CTA computes.
#[derive(Clone, Copy, Debug)]
enum Schedule {
    /// The one in this row and column.
    One([Expr; 2]),
    /// `first`, `first + ctas`, and so on, `count` in all. Tiles are counted through groups of so many rows.
    Persistent { first: Expr, ctas: i64, count: Expr, group: i64 },
}

impl Tiles {
    /// A grid with one CTA for each of `rows` by `columns` tiles. It calls [`KernelBuilder::grid`].
    #[track_caller]
    pub fn one_per_cta(k: &mut KernelBuilder<'_>, [rows, columns]: [Expr; 2]) -> Tiles {
        let [column, row] = k.grid([columns, rows]);
        Tiles { extent: [rows, columns], schedule: Schedule::One([row, column]) }
    }

    /// A grid of at most `ctas` CTAs, as many as can be resident at once, which compute `rows` by `columns` tiles: CTA `i` computes
    /// tiles `i`, `i + ctas`, `i + 2*ctas` and so on. While some roles still work on one tile, others begin the next. It calls
    /// [`KernelBuilder::grid`].
    ///
    /// Tiles are counted through groups of `group` rows, column by column within a group, so that CTAs that work at the same time
    /// read few different rows and columns of the factors; with `group` 1, row by row. It is at least 1.
    #[track_caller]
    pub fn persistent(k: &mut KernelBuilder<'_>, [rows, columns]: [Expr; 2], (ctas, group): (i64, i64)) -> Tiles {
        let [first] = k.grid([(rows * columns).at_most(ctas)]);
        let count = (rows * columns + (ctas - 1) - first) / ctas;
        Tiles { extent: [rows, columns], schedule: Schedule::Persistent { first, ctas, count, group: group.max(1) } }
    }

    /// Visits the tiles of this CTA, in the role that calls it: `body` gets the row and the column of each.
    #[track_caller]
    pub fn for_each<'k>(&self, k: &mut KernelBuilder<'k>, body: impl FnOnce(&mut KernelBuilder<'k>, [Expr; 2])) {
        match self.schedule {
            Schedule::One(tile) => body(k, tile),
            Schedule::Persistent { first, ctas, count, group } => {
                k.serial("tile", ..count, |k, turn| body(k, self.place(turn * ctas + first, group)));
            }
        }
    }

    /// The row and the column of a tile. The limits on both change nothing, but bound them: coordinates in tensors fit in 32 bits.
    fn place(&self, tile: Expr, group: i64) -> [Expr; 2] {
        let [rows, columns] = self.extent;
        let within = tile % (columns * group);
        let first = tile / (columns * group) * group;
        let in_group = (rows - first).at_most(group).at_least(1);
        [(first + within % in_group).at_most(rows - 1), (within / in_group).at_most(columns - 1)]
    }
}
