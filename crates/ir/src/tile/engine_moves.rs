//! Statements that the copy engine can execute: boxes of a tensor, or neighbouring elements of it, that fill a tile in shared
//! memory, or get its elements.

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_layout::axis::Scope;
use tilewright_layout::descriptor::{BoxCopy, Boxes, ROW_UNIT, Source, TensorDimension, tensor_strides};
use tilewright_layout::{ComposeLayout, Layout, LayoutError};

use crate::arena::Handle;
use crate::plan::Reason;
use crate::thread::RUN_UNIT;
use crate::tile::atomic::AtomicOp;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::{ElementStmt, Parallel};
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::op::Op;
use crate::tile::producer::{BULK, TMA};
use crate::tile::value::{Access, Coord, Value};

/// The most boxes of a statement: one thread issues them one after the other.
const MOST_BOXES: usize = 16;

/// From this index on, a box may reach an index that is 0 in 32 bits.
const LEAST_AMBIGUOUS: i64 = (1 << 32) - (1 << 16);

/// A statement as the copy engine executes it: it copies a tile between a tensor and a shared buffer, or combines it with what is
/// there.
#[derive(Clone, Debug)]
pub struct EngineMove {
    /// The tensor.
    pub tensor: Handle<Buffer>,
    /// Elements from the first of the tensor's memory to the first of the tensor.
    pub start: i64,
    /// Its extents.
    pub extents: Vec<Expr>,
    /// The distance of neighbours in each of its dimensions, in elements.
    pub strides: Vec<Expr>,
    /// The first index of the tile in each of these dimensions.
    pub starts: Vec<Expr>,
    /// Elements of the tile along each of them.
    pub sides: Vec<i64>,
    /// What is moved of the tensor.
    pub part: MovedPart,
    /// The shared buffer.
    pub shared: Handle<Buffer>,
    /// The place of the tile in it, in elements before its swizzle.
    pub place: Expr,
    /// How elements are combined with those of the tensor; `None` if they replace them.
    pub combined: Option<AtomicOp>,
}

/// What the copy engine moves of a tensor.
#[derive(Clone, Debug)]
pub enum MovedPart {
    /// Boxes, by a tensor map.
    Boxes {
        /// The boxes.
        boxes: Boxes,
        /// The first index of the first box in each dimension of the map, fastest first.
        coordinates: Vec<Expr>,
    },
    /// Neighbouring elements, all of which are inside of the tensor.
    Run {
        /// The first of them, from the beginning of the tensor's memory on.
        first: Expr,
        /// Their bytes.
        bytes: i64,
    },
}

/// The coordinates of a box among those of a tile.
pub fn coordinates_of(coordinates: &[Expr], copy: &BoxCopy) -> Vec<Expr> {
    coordinates.iter().zip(&copy.offset).map(|(first, offset)| normalize(&(first + *offset))).collect()
}

impl EngineMove {
    /// The variant of an op that is executed so.
    pub fn variant(&self) -> &'static str {
        match &self.part {
            MovedPart::Boxes { .. } => TMA,
            MovedPart::Run { .. } => BULK,
        }
    }

    /// The number of copies that one thread issues.
    pub fn copy_count(&self) -> usize {
        match &self.part {
            MovedPart::Boxes { boxes, .. } => boxes.copies.len(),
            MovedPart::Run { .. } => 1,
        }
    }

    /// Bytes that they move.
    pub fn bytes(&self) -> i64 {
        match &self.part {
            MovedPart::Boxes { boxes, .. } => boxes.copies.len() as i64 * boxes.box_bytes(),
            MovedPart::Run { bytes, .. } => *bytes,
        }
    }

    /// The shared memory of the tile begins at a multiple of as many bytes.
    pub fn alignment(&self) -> i64 {
        match &self.part {
            MovedPart::Boxes { boxes, .. } => boxes.alignment(),
            MovedPart::Run { .. } => RUN_UNIT,
        }
    }

    /// The same with every expression replaced that says where a copy begins.
    pub fn map_exprs(mut self, change: &dyn Fn(&Expr) -> Expr) -> EngineMove {
        self.place = change(&self.place);
        match &mut self.part {
            MovedPart::Boxes { coordinates, .. } => coordinates.iter_mut().for_each(|at| *at = change(at)),
            MovedPart::Run { first, .. } => *first = change(first),
        }
        self
    }
}

/// How the copy engine moves a tile in each of its ways, or why it does not.
#[derive(Clone, Debug)]
pub struct EngineOffers {
    /// As one run of neighbouring elements.
    pub run: Result<EngineMove, Reason>,
    /// In boxes.
    pub boxes: Result<EngineMove, Reason>,
}

impl EngineOffers {
    /// Why the engine does neither.
    pub fn refused(reason: Reason) -> EngineOffers {
        EngineOffers { run: Err(reason.clone()), boxes: Err(reason) }
    }

    /// A run, which takes one copy and no map, otherwise boxes.
    pub fn best(self) -> Result<EngineMove, Reason> {
        self.run.or(self.boxes)
    }
}

/// A move of elements, one for each combination of the values of variables.
struct Move {
    vars: Vec<Var>,
    to: Access,
    from: Access,
}

/// The tiles of a move: the shared buffer and the tensor, and where they are in these.
#[derive(Clone)]
struct Tiles<'a> {
    shared: (Handle<Buffer>, &'a Buffer),
    tensor: (Handle<Buffer>, &'a Buffer),
    /// The part of the tensor.
    side: Side,
    /// Where the tensor begins in its memory, its extents, and the distances of neighbours.
    start: i64,
    extents: Vec<Expr>,
    strides: Vec<Expr>,
    /// The layout of the tile in shared memory, and the place of its first element.
    layout: Layout,
    place: Expr,
    combined: Option<AtomicOp>,
}

/// One side of a move: the index of the first element, and the variable that each dimension counts.
#[derive(Clone)]
struct Side {
    starts: Vec<Expr>,
    vars: Vec<Option<Var>>,
}

impl Kernel {
    /// How the copy engine executes a statement that fills a shared buffer from a tensor that is only read. Error: why it
    /// cannot.
    pub fn engine_fill(&self, stmt: &Stmt) -> Result<EngineMove, Reason> {
        let Move { vars, to, from } = self.one_move(stmt)?;
        self.engine_move(&vars, &to, &from, None).best()
    }

    /// Whether an op of two tiles goes from shared memory to a tensor.
    pub fn is_to_tensor(&self, op: &Op) -> bool {
        matches!(self.spaces(op), Some([Space::Global(_), Space::Shared]))
    }

    /// Whether an op of two tiles goes from a tensor to shared memory.
    pub fn is_from_tensor(&self, op: &Op) -> bool {
        matches!(self.spaces(op), Some([Space::Shared, Space::Global(_)]))
    }

    /// Where an op of two tiles goes to, and where it comes from.
    fn spaces(&self, op: &Op) -> Option<[Space; 2]> {
        let [dst, src] = &op.operands[..] else { return None };
        Some([dst, src].map(|tile| self.buffers[tile.buffer].space))
    }

    /// How the copy engine executes an op that copies a tile between a tensor and a shared buffer, or combines it with a tensor.
    pub fn engine_copy(&self, op: &Op) -> EngineOffers {
        let Move { vars, to, from } = match self.move_of_op(op) {
            Ok(moved) => moved,
            Err(reason) => return EngineOffers::refused(reason),
        };
        if !self.is_to_tensor(op) {
            return self.engine_move(&vars, &to, &from, None);
        }
        let EngineOffers { run, boxes } = self.engine_move(&vars, &from, &to, op.kind.atomic());
        EngineOffers { run, boxes: boxes.and_then(|moved| self.beginning_inside(moved)) }
    }

    /// Boxes that are stored. Error: one may begin where it is not.
    fn beginning_inside(&self, moved: EngineMove) -> Result<EngineMove, Reason> {
        let MovedPart::Boxes { boxes, coordinates } = &moved.part else { return Ok(moved) };
        // What lies before the first element of a row is no place to store to: an H200 does not. Beyond 2^31, an index is negative.
        let is_inside = |first: &Expr| first.range().lo >= 0 && first.range().hi <= i64::from(i32::MAX);
        let firsts = boxes.copies.iter().filter_map(|copy| coordinates_of(coordinates, copy).into_iter().next());
        match firsts.into_iter().find(|first| !is_inside(first)) {
            Some(first) => {
                let name = &self.buffers[moved.tensor].name;
                let text = format!("a box may begin at `{first}` in a row of `{name}`");
                Err(Reason::new(text, "boxes that begin at 0 to 2^31 - 1"))
            }
            None => Ok(moved),
        }
    }

    /// How the copy engine moves elements between shared memory and a tensor.
    fn engine_move(&self, vars: &[Var], shared: &Access, tensor: &Access, combined: Option<AtomicOp>) -> EngineOffers {
        let tiles = match self.moved_tiles(vars, shared, tensor, combined) {
            Ok(tiles) => tiles,
            Err(reason) => return EngineOffers::refused(reason),
        };
        EngineOffers { run: self.run(&tiles), boxes: self.boxes(&tiles) }
    }

    /// What boxes and runs have in common.
    fn moved_tiles(
        &self,
        vars: &[Var],
        shared: &Access,
        tensor: &Access,
        combined: Option<AtomicOp>,
    ) -> Result<Tiles<'_>, Reason> {
        let [of_shared, of_tensor] = [shared, tensor].map(|access| side(access, vars));
        let (of_shared, of_tensor) = (of_shared?, of_tensor?);
        let [to, from] = [shared, tensor].map(|access| &self.buffers[access.buffer]);
        if to.dtype != from.dtype {
            let text = format!("elements of {} become elements of {} on the way", from.dtype, to.dtype);
            return Err(Reason::new(text, "elements that are only moved"));
        }
        if !of_shared.vars.iter().flatten().eq(of_tensor.vars.iter().flatten())
            || of_shared.vars.iter().flatten().count() != vars.len()
        {
            return Err(Reason::new("elements change their order on the way", "the same order on both sides"));
        }
        let (start, extents, strides) = self.dimensions(tensor.buffer)?;
        if start * from.dtype.bytes() % ROW_UNIT != 0 {
            let text = format!("`{}` begins {start} elements into its memory", from.name);
            return Err(Reason::new(text, format!("multiples of {ROW_UNIT} bytes")));
        }
        let (layout, place) = placed(to, &of_shared)?;
        Ok(Tiles {
            shared: (shared.buffer, to),
            tensor: (tensor.buffer, from),
            side: of_tensor,
            start,
            extents,
            strides,
            layout,
            place,
            combined,
        })
    }

    /// A move with what all have in common.
    fn move_of(&self, tiles: &Tiles<'_>, part: MovedPart) -> EngineMove {
        let Tiles { start, extents, strides, place, combined, .. } = tiles.clone();
        EngineMove {
            tensor: self.storage(tiles.tensor.0),
            start,
            extents,
            strides,
            starts: tiles.side.starts.clone(),
            sides: tiles.side.extents(),
            part,
            shared: tiles.shared.0,
            place,
            combined,
        }
    }

    /// The boxes that a tile is. Error: why it is none.
    fn boxes(&self, tiles: &Tiles<'_>) -> Result<EngineMove, Reason> {
        let Tiles { shared: (_, to), tensor: (_, from), side, extents, strides, layout, place, .. } = tiles;
        let known = known_dimensions(from, side, extents, strides)?;
        let bits = from.dtype.bytes() * 8;
        let boxes = Boxes::of(&known, &side.extents(), layout, bits).map_err(|error| no_boxes(from, to, &error))?;
        if boxes.copies.len() > MOST_BOXES {
            let text = format!("`{}` takes {} boxes of `{}`", to.name, boxes.copies.len(), from.name);
            return Err(Reason::new(text, format!("at most {MOST_BOXES}")));
        }
        begins_at(to, place, boxes.alignment())?;
        let coordinates = coordinates(&boxes, side, from)?;
        Ok(self.move_of(tiles, MovedPart::Boxes { boxes, coordinates }))
    }

    /// The neighbouring elements that a tile is, in shared memory and in the tensor. Error: why it is none.
    fn run(&self, tiles: &Tiles<'_>) -> Result<EngineMove, Reason> {
        let Tiles { shared: (_, to), tensor: (_, from), side, start, extents, strides, layout, place, .. } = tiles;
        let sides = side.extents();
        let is_beyond = |at: &usize| !self.lies_inside(&side.starts[*at], sides[*at], &extents[*at]);
        if let Some(at) = (0..sides.len()).find(is_beyond) {
            let text = format!("the tile may reach beyond dimension {at} of `{}`", from.name);
            return Err(Reason::new(text, "tiles that are inside of the tensor for all sizes, CTAs and iterations"));
        }
        let of_shared = match layout {
            Layout::Tile(tile) => tensor_strides(tile, &sides, to.dtype.bytes() * 8).ok(),
            Layout::Compose(_) | Layout::Table(_) => None,
        };
        let of_shared = of_shared.map(|strides| strides.into_iter().map(Expr::constant).collect::<Vec<_>>());
        for (buffer, strides) in [(to, of_shared.as_ref()), (from, Some(strides))] {
            if !strides.is_some_and(|strides| are_neighbours(&sides, strides)) {
                let text = format!("the elements of the tile are not one after the other in `{}`", buffer.name);
                return Err(Reason::new(text, "whole rows in their order, not swizzled"));
            }
        }
        let places = side.starts.iter().zip(strides).map(|(first, stride)| first * stride);
        let first = normalize(&places.fold(Expr::constant(*start), |sum, place| sum + place));
        let unit = RUN_UNIT / from.dtype.bytes();
        let bytes = sides.iter().product::<i64>() * from.dtype.bytes();
        if first.multiple() % unit != 0 || bytes % RUN_UNIT != 0 {
            let text = format!("the tile is {bytes} bytes from element {first} of `{}` on", from.name);
            return Err(Reason::new(text, format!("multiples of {RUN_UNIT} bytes")));
        }
        begins_at(to, place, RUN_UNIT)?;
        Ok(self.move_of(tiles, MovedPart::Run { first, bytes }))
    }

    /// What a copy by all threads moves, or an atomic op.
    fn move_of_op(&self, op: &Op) -> Result<Move, Reason> {
        let moves = op.kind.is_copy() || op.kind.is_atomic();
        let ([dst, src], true, Scope::Cta) = (&op.operands[..], moves, op.scope) else {
            return Err(Reason::new(format!("`{}` is not a copy by the whole CTA", self.op_title(op)), "copies"));
        };
        let extents = dst.non_unit_extents();
        let vars: Vec<Var> = extents.iter().enumerate().map(|(at, extent)| counted_var(at, *extent)).collect();
        let [to, from] = [dst, src].map(|tile| tile.access(&vars, op.span));
        Ok(Move { vars, to, from })
    }

    /// The only move of a statement.
    fn one_move(&self, stmt: &Stmt) -> Result<Move, Reason> {
        match stmt {
            Stmt::Op(op) => self.move_of_op(&self.ops[*op]),
            Stmt::Parallel(parallel) => {
                let Parallel { vars, body, .. } = &self.parallels[*parallel];
                let [ElementStmt::Store { to, value: Value::Load(from), .. }] = &body[..] else {
                    return Err(Reason::new("elements are computed on the way", "one store of what one load gives"));
                };
                let moving: Vec<Var> = vars.iter().filter(|var| var.range().hi > 0).cloned().collect();
                Ok(Move { vars: moving, to: to.clone(), from: from.clone() })
            }
            Stmt::Loop(_) | Stmt::EachThread(_) | Stmt::If(_) | Stmt::Begin(_) | Stmt::End(_) => {
                Err(Reason::new("elements are moved inside of a loop or a branch", "copies directly in the loop"))
            }
        }
    }

    /// Where a tensor begins in its memory, its extents, and the distances of neighbours.
    fn dimensions(&self, handle: Handle<Buffer>) -> Result<(i64, Vec<Expr>, Vec<Expr>), Reason> {
        let buffer = &self.buffers[handle];
        let Some((start, strides)) = buffer.strides() else {
            let text = format!("`{}` is {}", buffer.name, buffer.laid_out());
            return Err(Reason::new(text, "tensors with one stride for each dimension"));
        };
        if let Some(loaded) = self.loaded_end(buffer) {
            let text = format!("`{}` ends at `{}`, which a launch does not know", buffer.name, loaded.var.name());
            return Err(Reason::new(text, "tensors whose extents are sizes"));
        }
        Ok((start, (0..buffer.shape.len()).map(|at| buffer.extent(at)).collect(), strides))
    }
}

/// What is known of the dimensions of a tensor, if its rows begin at multiples of 16 bytes.
fn known_dimensions(
    tensor: &Buffer,
    side: &Side,
    extents: &[Expr],
    strides: &[Expr],
) -> Result<Vec<TensorDimension>, Reason> {
    let dimension = |(at, (extent, stride)): (usize, (&Expr, &Expr))| {
        let is_contiguous = stride.as_const() == Some(1);
        let bytes = tensor.dtype.bytes() * stride.as_const().unwrap_or(stride.multiple());
        if !is_contiguous && bytes % ROW_UNIT != 0 {
            let apart = format!("neighbours of dimension {at} of `{}` are {stride} elements apart", tensor.name);
            let unit = ROW_UNIT / tensor.dtype.bytes();
            let accepted = match stride.as_const() {
                Some(_) => format!("multiples of {unit} elements"),
                None => format!("multiples of {unit} elements, declared with `.multiple_of({unit})`"),
            };
            return Err(Reason::new(apart, accepted));
        }
        // A map leaves out such a dimension; a tile beyond its only index needs it.
        let is_at_its_index = side.starts[at].as_const() == Some(0);
        Ok(TensorDimension {
            divisor: extent.as_const().unwrap_or(extent.multiple()),
            is_unit: extent.as_const() == Some(1) && is_at_its_index,
            is_contiguous,
            stride: stride.as_const().unwrap_or(stride.multiple()),
        })
    };
    extents.iter().zip(strides).enumerate().map(dimension).collect()
}

/// A variable for a dimension of a tile.
fn counted_var(dimension: usize, extent: i64) -> Var {
    Var::new(format!("#{dimension}"), 0, extent - 1)
}

/// What the dimensions of an access count.
fn side(access: &Access, vars: &[Var]) -> Result<Side, Reason> {
    let mut found = Side { starts: Vec::new(), vars: Vec::new() };
    for coord in &access.index {
        let Coord::At(index) = coord else {
            return Err(Reason::new("an index depends on data", "indices that are expressions"));
        };
        let mentioned: Vec<&Var> = vars.iter().filter(|var| index.mentions(var)).collect();
        let var = match mentioned[..] {
            [] => None,
            [var] => Some(var),
            _ => return Err(Reason::new("an index depends on several variables", "one variable for each dimension")),
        };
        let start = normalize(&var.map_or_else(|| index.clone(), |var| index.with(var, 0)));
        if let Some(var) = var
            && normalize(&(index - &start)) != Expr::var(var)
        {
            let text = format!("`{index}` does not go through neighbours");
            return Err(Reason::new(text, format!("a start plus `{}`", var.name())));
        }
        found.starts.push(start);
        found.vars.push(var.cloned());
    }
    Ok(found)
}

impl Side {
    /// Elements along each dimension.
    fn extents(&self) -> Vec<i64> {
        self.vars.iter().map(|var| var.as_ref().map_or(1, |var| var.range().hi + 1)).collect()
    }
}

/// The layout of a tile of a shared buffer from its first element on, and the place of that element.
fn placed(buffer: &Buffer, side: &Side) -> Result<(Layout, Expr), Reason> {
    let unusual = || {
        let text = format!("`{}` is {}", buffer.name, buffer.laid_out());
        Reason::new(text, "rows, swizzled or not")
    };
    let (Space::Shared, Some(layout)) = (buffer.space, &buffer.layout) else { return Err(unusual()) };
    let placed = layout.place(&buffer.shape, &side.starts, &side.extents()).map_err(|_| unusual())?;
    let tile = placed.iters().ok_or_else(unusual)?.clone();
    let layout = match placed.swizzle {
        None => Layout::Tile(tile),
        Some(swizzle) => Layout::Compose(ComposeLayout::new(swizzle, tile).map_err(|_| unusual())?),
    };
    Ok((layout, normalize(&placed.start)))
}

/// A tile of shared memory begins at a multiple of so many bytes. Error: it may not.
fn begins_at(shared: &Buffer, place: &Expr, bytes: i64) -> Result<(), Reason> {
    let unit = bytes / shared.dtype.bytes();
    if place.multiple() % unit == 0 {
        return Ok(());
    }
    let text = format!("the tile begins at element {place} of `{}`", shared.name);
    Err(Reason::new(text, format!("multiples of {unit}")))
}

/// Whether the elements of a tile are one after the other in memory, in their order.
fn are_neighbours(sides: &[i64], strides: &[Expr]) -> bool {
    let mut next = 1;
    sides.iter().zip(strides).rev().filter(|(side, _)| **side > 1).all(|(side, stride)| {
        let is_next = stride.as_const() == Some(next);
        next *= side;
        is_next
    })
}

fn no_boxes(tensor: &Buffer, shared: &Buffer, error: &LayoutError) -> Reason {
    let (problem, accepted) = match error {
        LayoutError::Descriptor { problem, legal, .. } => (problem.clone(), legal.clone()),
        other => (other.to_string(), "tiles of rows".to_string()),
    };
    Reason::new(format!("no box of `{}` matches `{}`: {problem}", tensor.name, shared.name), accepted)
}

/// The index of the tile in each dimension of the map.
fn coordinates(boxes: &Boxes, side: &Side, tensor: &Buffer) -> Result<Vec<Expr>, Reason> {
    let coordinate = |source: &Source| {
        let (at, block) = (&side.starts[source.dimension], boxes.block(source.dimension));
        if at.multiple() % block != 0 {
            let text = format!("the tile begins at `{at}` in dimension {} of `{}`", source.dimension, tensor.name);
            return Err(Reason::new(text, format!("multiples of {block}")));
        }
        let index = if source.step == block { normalize(&(at / block)) } else { Expr::constant(0) };
        // The engine takes 32 bits. An index from 2^31 on becomes negative, which is outside of the tensor as well.
        let range = index.range();
        if range.lo < i64::from(i32::MIN) || range.hi >= LEAST_AMBIGUOUS {
            return Err(Reason::new(format!("`{index}` may not have a place in 32 bits"), "indices of less than 2^32"));
        }
        Ok(index)
    };
    let coordinates: Vec<Expr> = boxes.sources.iter().map(coordinate).collect::<Result<_, _>>()?;
    let unit = ROW_UNIT / tensor.dtype.bytes();
    match coordinates.first() {
        Some(first) if first.multiple() % unit != 0 => {
            let text = format!("the rows of the box begin at `{first}` in rows of `{}`", tensor.name);
            Err(Reason::new(text, format!("multiples of {unit}, which are {ROW_UNIT} bytes")))
        }
        _ => Ok(coordinates),
    }
}
