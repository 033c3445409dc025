//! Statements that the copy engine can execute: boxes of a tensor that fill a tile in shared memory, or get its elements.

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_layout::axis::{M, Scope};
use tilewright_layout::descriptor::{BoxCopy, Boxes, ROW_UNIT, Source, TensorDimension, tensor_strides};
use tilewright_layout::{ComposeLayout, Layout, LayoutError};

use crate::arena::Handle;
use crate::plan::Reason;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::{AtomicOp, ElementStmt, Parallel};
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::op::Op;
use crate::tile::value::{Access, Coord, Value};

/// The most boxes of a statement: one thread issues them one after the other.
const MOST_BOXES: usize = 16;

/// From this index on, a box may reach an index that is 0 in 32 bits.
const LEAST_AMBIGUOUS: i64 = (1 << 32) - (1 << 16);

/// A statement as the copy engine executes it: it copies boxes between a tensor and a shared buffer, or combines them with what is there.
#[derive(Clone, Debug)]
pub struct BoxMove {
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
    /// The boxes.
    pub boxes: Boxes,
    /// The first index of the first box in each dimension of the map, fastest first.
    pub coordinates: Vec<Expr>,
    /// The shared buffer.
    pub shared: Handle<Buffer>,
    /// The place of the tile in it, in elements before its swizzle.
    pub place: Expr,
    /// How elements are combined with those of the tensor; `None` if they replace them.
    pub combined: Option<AtomicOp>,
}

impl BoxMove {
    /// The coordinates of a box.
    pub fn coordinates_of(&self, copy: &BoxCopy) -> Vec<Expr> {
        self.coordinates.iter().zip(&copy.offset).map(|(first, offset)| normalize(&(first + *offset))).collect()
    }
}

/// A move of elements, one for each combination of the values of variables.
struct Move {
    vars: Vec<Var>,
    to: Access,
    from: Access,
}

/// One side of a move: the index of the first element, and the variable that each dimension counts.
struct Side {
    starts: Vec<Expr>,
    vars: Vec<Option<Var>>,
}

impl Kernel {
    /// How the copy engine executes a statement that fills a shared buffer from a tensor that is only read. Error: why it
    /// cannot.
    pub fn box_fill(&self, stmt: &Stmt) -> Result<BoxMove, Reason> {
        let Move { vars, to, from } = self.one_move(stmt)?;
        self.box_move(&vars, &to, &from)
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

    /// How the copy engine executes an op that copies a tile between a tensor and a shared buffer, or combines it with a tensor. Error:
    /// why it cannot.
    pub fn box_copy(&self, op: &Op) -> Result<BoxMove, Reason> {
        if self.is_to_tensor(op) { self.box_store(op) } else { self.box_load(op) }
    }

    /// How the copy engine executes an op that copies a tile of a tensor to a shared buffer. Error: why it cannot.
    fn box_load(&self, op: &Op) -> Result<BoxMove, Reason> {
        let Move { vars, to, from } = self.move_of_op(op)?;
        self.box_move(&vars, &to, &from)
    }

    /// How the copy engine executes an op that copies a shared buffer to a tensor, or combines it with what is there. Error: why it cannot.
    fn box_store(&self, op: &Op) -> Result<BoxMove, Reason> {
        let Move { vars, to, from } = self.move_of_op(op)?;
        let moved = BoxMove { combined: op.kind.atomic(), ..self.box_move(&vars, &from, &to)? };
        // What lies before the first element of a row is no place to store to: an H200 does not. Beyond 2^31, an index is negative.
        let is_inside = |first: &Expr| first.range().lo >= 0 && first.range().hi <= i64::from(i32::MAX);
        let firsts = moved.boxes.copies.iter().filter_map(|copy| moved.coordinates_of(copy).into_iter().next());
        match firsts.into_iter().find(|first| !is_inside(first)) {
            Some(first) => {
                let name = &self.buffers[to.buffer].name;
                let text = format!("a box may begin at `{first}` in a row of `{name}`");
                Err(Reason::new(text, "boxes that begin at 0 to 2^31 - 1"))
            }
            None => Ok(moved),
        }
    }

    /// How the copy engine moves elements between shared memory and a tensor.
    fn box_move(&self, vars: &[Var], shared: &Access, tensor: &Access) -> Result<BoxMove, Reason> {
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
        let known = known_dimensions(from, &of_tensor, &extents, &strides)?;
        let (layout, place) = placed(to, &of_shared)?;
        let (bits, sides) = (from.dtype.bytes() * 8, of_tensor.extents());
        let boxes = Boxes::of(&known, &sides, &layout, bits).map_err(|error| no_boxes(from, to, &error))?;
        if boxes.copies.len() > MOST_BOXES {
            let text = format!("`{}` takes {} boxes of `{}`", to.name, boxes.copies.len(), from.name);
            return Err(Reason::new(text, format!("at most {MOST_BOXES}")));
        }
        let unit = boxes.alignment() / to.dtype.bytes();
        if place.multiple() % unit != 0 {
            let text = format!("the tile begins at element {place} of `{}`", to.name);
            return Err(Reason::new(text, format!("multiples of {unit}")));
        }
        let coordinates = coordinates(&boxes, &of_tensor, from)?;
        let (tensor, shared, starts) = (self.storage(tensor.buffer), shared.buffer, of_tensor.starts);
        Ok(BoxMove {
            tensor,
            start,
            extents,
            strides,
            starts,
            sides,
            boxes,
            coordinates,
            shared,
            place,
            combined: None,
        })
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
            Stmt::Loop(_) | Stmt::EachThread(_) | Stmt::If(_) => {
                Err(Reason::new("elements are moved inside of a loop or a branch", "copies directly in the loop"))
            }
        }
    }

    /// Where a tensor begins in its memory, its extents, and the distances of neighbours.
    fn dimensions(&self, handle: Handle<Buffer>) -> Result<(i64, Vec<Expr>, Vec<Expr>), Reason> {
        let buffer = &self.buffers[handle];
        if let Some(shape) = &buffer.dynamic_shape {
            return Ok((0, shape.extents.clone(), shape.strides.clone()));
        }
        let no_strides = || {
            let text = format!("`{}` is {}", buffer.name, buffer.laid_out());
            Reason::new(text, "tensors with one stride for each dimension")
        };
        let Some(Layout::Tile(layout)) = &buffer.layout else { return Err(no_strides()) };
        let strides = tensor_strides(layout, &buffer.shape, buffer.dtype.bytes() * 8).map_err(|_| no_strides())?;
        let extents = buffer.shape.iter().map(|extent| Expr::constant(*extent)).collect();
        Ok((layout.offset_on(&M), extents, strides.into_iter().map(Expr::constant).collect()))
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
