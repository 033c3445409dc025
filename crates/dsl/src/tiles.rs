//! Which CTA computes which tile of a result, for all roles alike.

use tilewright_expr::{Node, Var};
use tilewright_ir::Handle;
use tilewright_ir::tile::{Part, Ring};

use crate::builder::{KernelBuilder, Names};
use crate::expr::Expr;
use crate::loop_range::LoopRange;

/// The tiles of a result, divided among CTAs: rows and columns of tiles, `[rows, columns]`, or those of each matrix of a batch,
/// `[matrices, rows, columns]`. Every role that goes through them visits the same tiles in the same order, so that rings between
/// the roles stay in step.
#[derive(Clone, Copy, Debug)]
pub struct Tiles<const N: usize> {
    extent: [Expr; N],
    schedule: Schedule<N>,
}

/// Which tiles a CTA computes.
#[derive(Clone, Copy, Debug)]
enum Schedule<const N: usize> {
    /// The one at this place.
    One([Expr; N]),
    /// `first`, `first + ctas`, and so on. Tiles of a matrix are counted through groups of so many rows.
    Persistent { first: Expr, ctas: i64, group: i64 },
    /// `first`, and then those that it claims. Tiles of a matrix are counted as with persistent CTAs.
    Claimed { first: Expr, group: i64, claims: Handle<Ring> },
}

/// Stages of the ring of claimed tiles: one is used, the next one is known, and another one is on its way.
const CLAIMED_STAGES: i64 = 3;

impl<const N: usize> Tiles<N> {
    const IS_PLACE: () =
        assert!(N == 2 || N == 3, "tiles have a row and a column, after the matrix if there are several");

    /// A grid with one CTA for each tile. It calls [`KernelBuilder::grid`].
    #[track_caller]
    pub fn one_per_cta(k: &mut KernelBuilder<'_>, extent: [Expr; N]) -> Tiles<N> {
        const { Self::IS_PLACE };
        let mut place = [Expr::from(0); N];
        if let (true, [.., rows, columns]) = (k.has_cluster(), &extent[..]) {
            // A grid of clusters has two dimensions.
            let [column, other] = k.grid([*columns, product(&extent[..N - 1])]);
            if let [.., of_row, of_column] = &mut place[..] {
                (*of_row, *of_column) = (other % *rows, column);
            }
            if N == 3 {
                place[0] = other / *rows;
            }
        } else {
            let mut fastest_first = extent;
            fastest_first.reverse();
            place = k.grid(fastest_first);
            place.reverse();
        }
        Tiles { extent, schedule: Schedule::One(place) }
    }

    /// A grid of at most `ctas` CTAs, as many as can be resident at once, which compute all tiles: CTA `i` computes tiles `i`,
    /// `i + ctas`, `i + 2*ctas` and so on. While some roles still work on one tile, others begin the next. It calls
    /// [`KernelBuilder::grid`].
    ///
    /// Tiles of a matrix are counted through groups of `group` rows, column by column within a group, so that CTAs that work at
    /// the same time read few different rows and columns of the factors; with `group` 1, row by row. It is at least 1.
    #[track_caller]
    pub fn persistent(k: &mut KernelBuilder<'_>, extent: [Expr; N], (ctas, group): (i64, i64)) -> Tiles<N> {
        const { Self::IS_PLACE };
        let ctas = k.some_ctas(ctas);
        let [first] = k.grid([product(&extent).at_most(ctas)]);
        Tiles { extent, schedule: Schedule::Persistent { first, ctas, group: group.max(1) } }
    }

    /// A grid with one CTA for each tile, or one cluster, of which those that run claim the tiles of others that have not started:
    /// whoever is done first takes the next tile, and the roles of a CTA work on up to 3 tiles at once. This is cluster launch control
    /// of sm_100a; on sm_90a each CTA computes its own tile. The order of the tiles is that of [`Tiles::persistent`]. It calls
    /// [`KernelBuilder::grid`].
    ///
    /// It has a role `claim` of one warp, which counts among [`KernelBuilder::threads`]. Each role visits the tiles once, and what it
    /// does for a tile does not depend on the tiles before, since it is not known which these are.
    #[track_caller]
    pub fn claimed(k: &mut KernelBuilder<'_>, extent: [Expr; N], group: i64) -> Tiles<N> {
        const { Self::IS_PLACE };
        let first = if k.has_cluster() {
            // Clusters are counted in two dimensions, each of which has up to 65535.
            let (columns, others) = (extent[N - 1], product(&extent[..N - 1]));
            let [column, other] = k.grid([columns, others]);
            other * columns + column
        } else {
            let [first] = k.grid([product(&extent)]);
            first
        };
        let claims = k.ring_of_claims(CLAIMED_STAGES);
        k.role_of_claims((first, product(&extent)), claims);
        Tiles { extent, schedule: Schedule::Claimed { first, group: group.max(1), claims } }
    }

    /// Visits the tiles of this CTA, in the role that calls it: `body` gets the row and the column of each, after the matrix if
    /// there are several.
    #[track_caller]
    pub fn for_each<'k, T>(
        &self,
        k: &mut KernelBuilder<'k>,
        body: impl FnOnce(&mut KernelBuilder<'k>, [Expr; N]) -> T,
    ) {
        self.visit(k, None, body);
    }

    /// Visits every `of`-th tile of this CTA, from number `index` on, in the role that calls it; `of` roles together visit all. While one
    /// stores its tile, another multiplies the next one ("ping-pong").
    ///
    /// A role passes the stages of rings that the others consume for their tiles, as many as it consumes for one of its own. So stages
    /// are filled for all tiles in order, by a role that visits them with [`for_each`](Tiles::for_each).
    #[track_caller]
    pub fn for_every<'k, T>(
        &self,
        k: &mut KernelBuilder<'k>,
        [index, of]: [i64; 2],
        body: impl FnOnce(&mut KernelBuilder<'k>, [Expr; N]) -> T,
    ) {
        let against = match self.schedule {
            Schedule::Persistent { .. } => None,
            Schedule::One(_) => Some("each CTA has one tile"),
            Schedule::Claimed { .. } => Some("which tile is next is known only when it is claimed"),
        };
        let part = ([index, of] != [0, 1]).then_some(Part { index, of });
        if k.takes_turn(part, against) {
            self.visit(k, part, body);
        }
    }

    /// Visits the tiles of this CTA, or a part of them.
    #[track_caller]
    fn visit<'k, T>(
        &self,
        k: &mut KernelBuilder<'k>,
        part: Option<Part>,
        body: impl FnOnce(&mut KernelBuilder<'k>, [Expr; N]) -> T,
    ) {
        let (extent, name) = (self.extent, k.free_name("turn"));
        let mut vars = Vec::new();
        match self.schedule {
            Schedule::One(tile) => _ = body(k, tile),
            Schedule::Persistent { first, ctas, group } => {
                let range = (first, product(&extent)).step(ctas);
                k.in_turn(&name, range, part, |k, turn| at_place(k, (extent, group), turn, &mut vars, body));
            }
            Schedule::Claimed { first, group, claims } => {
                let range = (first, product(&extent));
                k.claimed(&name, range, claims, |k, turn| at_place(k, (extent, group), turn, &mut vars, body));
            }
        }
        k.set_place(&name, vars);
    }
}

/// `body`, for the tile with this number; the variables that name its place are added.
#[track_caller]
fn at_place<'k, const N: usize, T>(
    k: &mut KernelBuilder<'k>,
    order: ([Expr; N], i64),
    number: Expr,
    vars: &mut Vec<Var>,
    body: impl FnOnce(&mut KernelBuilder<'k>, [Expr; N]) -> T,
) {
    let named = |names: &mut Names<'_, '_>| place(names, number, order);
    k.named(named, |k, tile| {
        vars.extend(tile.iter().filter_map(|at| match at.resolved().node() {
            Node::Var(var) => Some(var.clone()),
            _ => None,
        }));
        body(k, tile)
    });
}

fn product(extent: &[Expr]) -> Expr {
    extent.iter().fold(Expr::from(1), |product, extent| product * *extent)
}

/// The place of a tile, and what it follows from.
fn place<const N: usize>(names: &mut Names<'_, '_>, number: Expr, (extent, group): ([Expr; N], i64)) -> [Expr; N] {
    let mut tile = extent;
    let ([outer @ .., row, column], [.., rows, columns]) = (&mut tile[..], &extent[..]) else { return tile };
    let mut number = names.name("tile_id", number);
    // The limits change nothing, but bound all: coordinates in tensors fit in 32 bits.
    if let [matrix] = outer {
        let (matrices, of_matrix) = (*matrix, *rows * *columns);
        *matrix = Expr::from(0);
        if matrices.resolved().as_const() != Some(1) {
            *matrix = names.name("matrix", (number / of_matrix).at_most(matrices - 1));
            number = names.name("in_matrix", number % of_matrix);
        }
    }
    let begin = names.name("group_row", number / (*columns * group) * group);
    let height = names.name("group_rows", (*rows - begin).at_most(group).at_least(1));
    let in_group = names.name("in_group", number % (*columns * group));
    *row = names.name("tile_row", (begin + in_group % height).at_most(*rows - 1));
    *column = names.name("tile_column", (in_group / height).at_most(*columns - 1));
    tile
}
