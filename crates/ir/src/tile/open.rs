//! Shared buffers whose layout the compiler chooses.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_layout::banks::RowLayout;
use tilewright_layout::hardware::{SwizzleMode, mma_shared_layout, mma_shared_layout_of_tf32_rows};
use tilewright_layout::{DType, Layout, LayoutError};

use crate::arena::Handle;
use crate::product::Product;
use crate::target::{Target, padded_shared_bytes};
use crate::tile::attributes::Gemm;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::Kernel;
use crate::tile::op::{Op, OpClass, OpKind};
use crate::tile::producer::BULK;

impl Kernel {
    /// The shared buffers whose layout the compiler may choose: those for which only a shape of several rows was
    /// written, and of which no view has a layout of its own.
    pub fn open_buffers(&self) -> Vec<Handle<Buffer>> {
        let is_fixed = |handle: Handle<Buffer>| {
            self.buffers.iter().any(|(view, buffer)| {
                buffer.view_of.is_some() && buffer.order.is_none() && self.storage(view) == handle
            })
        };
        let is_open = |(handle, buffer): &(Handle<Buffer>, &Buffer)| {
            buffer.is_open && buffer.shape.len() > 1 && !is_fixed(*handle)
        };
        self.buffers.iter().filter(is_open).map(|(handle, _)| handle).collect()
    }

    /// Gives an open buffer a layout, and its views the same in their order of dimensions. Error: a shape that does not
    /// agree with the layout.
    pub fn place(&mut self, handle: Handle<Buffer>, layout: &Layout) -> Result<(), LayoutError> {
        self.buffers[handle].layout = Some(layout.clone());
        let views: Vec<Handle<Buffer>> =
            self.buffers.iter().filter(|(_, view)| view.view_of == Some(handle)).map(|(view, _)| view).collect();
        for view in views {
            let Some(order) = self.buffers[view].order.clone() else { continue };
            let reordered = layout.reorder(&self.buffers[handle].shape, &order)?;
            self.place(view, &reordered)?;
        }
        Ok(())
    }

    /// The rows with which most accesses to an open buffer are free of conflicts: those of a factor of a product are read
    /// in vectors of 16 bytes, and a transposed view is read across, element by element.
    fn usual_rows(&self, handle: Handle<Buffer>, interleaves: bool) -> RowLayout {
        let buffer = &self.buffers[handle];
        let is_turned = |view: Handle<Buffer>| self.buffers[view].order.is_some() && self.storage(view) == handle;
        if self.products_of(handle).next().is_some() {
            let is_interleaved = interleaves && self.can_interleave(handle);
            let rows = if is_interleaved { RowLayout::with_odd_words_apart } else { RowLayout::in_vectors };
            rows(buffer.row_bytes())
        } else if self.buffers.iter().any(|(view, _)| is_turned(view)) {
            RowLayout::in_words(buffer.row_bytes(), buffer.dtype.bytes())
        } else {
            RowLayout::dense(buffer.row_bytes())
        }
    }

    /// Layouts of open buffers under which the copy engine can fill them, or copy them to tensors: rows that are as long as
    /// one of its swizzles. All buffers of a loop have one, or none.
    fn with_box_swizzles(&self) -> BTreeMap<Handle<Buffer>, Layout> {
        let mut found = BTreeMap::new();
        let open = self.open_buffers();
        let mut place = |buffers: &BTreeSet<Handle<Buffer>>, is_by_engine: &dyn Fn(&Kernel) -> bool| {
            let is_open = |handle: &&Handle<Buffer>| open.contains(handle);
            let layouts: Vec<(Handle<Buffer>, Layout)> = buffers
                .iter()
                .filter(is_open)
                .filter_map(|handle| Some((*handle, self.box_swizzle(*handle)?)))
                .collect();
            let mut placed = self.clone();
            let is_placed = layouts.iter().all(|(handle, layout)| placed.place(*handle, layout).is_ok());
            if is_placed && is_by_engine(&placed) {
                found.extend(layouts);
            }
        };
        for (inner, fills) in self.all_fills() {
            let is_by_engine = |at: &usize, placed: &Kernel| placed.engine_fill(&inner.body[*at]).is_ok();
            place(&fills.buffers, &|placed| fills.statements.iter().all(|at| is_by_engine(at, placed)));
        }
        for (op, shared) in self.moves_in_flight().filter(|(op, _)| op.variant.as_deref() != Some(BULK)) {
            place(&BTreeSet::from([shared]), &|placed| placed.engine_copy(op).best().is_ok());
        }
        // A run takes rows as they are.
        let runs = self.moves_in_flight().filter(|(op, _)| op.variant.as_deref() == Some(BULK));
        let dense = runs
            .filter(|(_, shared)| open.contains(shared))
            .filter_map(|(_, shared)| Some((shared, self.buffers[shared].layout.clone()?)));
        found.extend(dense);
        found
    }

    /// The layout of a buffer in which its rows are as long as a swizzle of the copy engine, or that of the factors of
    /// asynchronous products.
    fn box_swizzle(&self, handle: Handle<Buffer>) -> Option<Layout> {
        if let Some(layout) = self.matrix_layout(handle) {
            return Some(layout);
        }
        let buffer = &self.buffers[handle];
        let count = buffer.shape.iter().rev().skip(1).product();
        let rows = RowLayout::of_boxes(buffer.row_bytes(), count)?;
        rows.layout(&buffer.shape, buffer.dtype.bytes()).ok()
    }

    /// The layout in which asynchronous products read a buffer that is a factor of one, with the widest swizzle; `None` for other
    /// buffers.
    fn matrix_layout(&self, handle: Handle<Buffer>) -> Option<Layout> {
        let is_async = |op: &Op| matches!(op.kind, OpKind::GemmAsync(_));
        let product = self.products_of(handle).find(|op| is_async(op))?;
        let buffer = &self.buffers[handle];
        if buffer.dtype == DType::F32 && self.is_mn_major(product, handle) {
            return mma_shared_layout_of_tf32_rows(&buffer.shape).ok();
        }
        let of = |mode: &SwizzleMode| mma_shared_layout(8 * buffer.dtype.bytes(), *mode, &buffer.shape).ok();
        SwizzleMode::ALL.iter().rev().find_map(of)
    }

    /// Whether rows of a factor are along M or N of a product.
    fn is_mn_major(&self, product: &Op, factor: Handle<Buffer>) -> bool {
        let is_major = product.kind.product().map_or([false; 2], Gemm::is_mn_major);
        let factors = product.operands.iter().skip(1).zip(is_major);
        factors.into_iter().any(|(tile, is_major)| is_major && self.storage(tile.buffer) == factor)
    }

    /// The products that have a buffer as an operand.
    fn products_of(&self, handle: Handle<Buffer>) -> impl Iterator<Item = &Op> {
        let is_product = |op: &&Op| match op.kind.info().class {
            OpClass::Product => true,
            OpClass::Elementwise | OpClass::Reduction | OpClass::Scan | OpClass::Permutation | OpClass::Conversion => {
                false
            }
        };
        let uses = move |op: &&Op| op.operands.iter().any(|tile| self.storage(tile.buffer) == handle);
        self.ops.iter().map(|(_, op)| op).filter(is_product).filter(uses)
    }

    /// Whether the words of an open buffer's rows can be apart: it is the right factor of its products, and the left
    /// factor, which has the same order if rows are along K, is in registers then. It pays where threads load the 32
    /// bytes that become a vector of even and one of odd words.
    fn can_interleave(&self, handle: Handle<Buffer>) -> bool {
        let is_right = |op: &Op| {
            let [_, left, right] = &op.operands[..] else { return false };
            let is_whole = right.buffer == handle && right.extents.last() == self.buffers[handle].shape.last();
            let is_possible = Product::of(self, op).is_ok_and(|product| {
                let is_free = !product.transpose_b || self.buffers[left.buffer].space == Space::Fragment;
                is_free && product.can_interleave()
            });
            is_whole && self.storage(left.buffer) != handle && is_possible
        };
        self.widest_global >= RowLayout::BYTES_OF_BOTH_WORDS && self.products_of(handle).all(is_right)
    }

    /// Whether layouts of open buffers have a price elsewhere: conversions of fragments that they would not agree with, or
    /// sums of products, in another order, that `stmatrix` would have stored in shared memory.
    pub fn compares_open_layouts(&self) -> bool {
        self.allow_conversions || self.may_take_sums().next().is_some()
    }

    /// The shared buffers that `stmatrix` could fill with sums of products.
    pub fn may_take_sums(&self) -> impl Iterator<Item = &Buffer> {
        let takes_sums = |(handle, buffer): &(Handle<Buffer>, &Buffer)| {
            let is_narrow = buffer.space == Space::Shared && buffer.dtype.bytes() < 4;
            is_narrow && self.products_of(self.storage(*handle)).next().is_none()
        };
        self.buffers.iter().filter(takes_sums).map(|(_, buffer)| buffer)
    }
}

impl Buffer {
    /// Bytes of a row, which is the last dimension.
    pub fn row_bytes(&self) -> i64 {
        self.shape.last().map_or(0, |extent| extent * self.dtype.bytes())
    }
}

/// The kernel with layouts for its open buffers, most promising first: factors of products and buffers with transposed
/// views have padded rows, at first with the even and odd words of right factors apart; at last all rows are dense.
/// Inference and lowering then count on the vectors that this allows. A buffer for whose padding shared memory does not
/// suffice stays row-major. Buffers that the copy engine can fill ahead have its swizzles, in all but the last.
pub fn with_open_placed(kernel: &Kernel, target: Target) -> Vec<Kernel> {
    let mut all = vec![pad_open(kernel, target, true), pad_open(kernel, target, false), kernel.clone()];
    all.dedup_by(|one, other| {
        one.buffers.iter().map(|(_, b)| &b.layout).eq(other.buffers.iter().map(|(_, b)| &b.layout))
    });
    all
}

fn pad_open(kernel: &Kernel, target: Target, interleaves: bool) -> Kernel {
    let mut padded = kernel.clone();
    // Asynchronous copies do not take words apart.
    let filled_ahead = kernel.filled_ahead();
    let of_boxes = kernel.with_box_swizzles();
    for handle in kernel.open_buffers() {
        let buffer = &kernel.buffers[handle];
        if let Some(layout) = of_boxes.get(&handle) {
            let _ = padded.place(handle, layout);
            continue;
        }
        if let Some(layout) = kernel.matrix_layout(handle) {
            let _ = padded.place(handle, &layout);
            continue;
        }
        let rows = kernel.usual_rows(handle, interleaves && !filled_ahead.contains(&handle));
        let count = buffer.shape.iter().rev().skip(1).product();
        let more = rows.bytes(count) - RowLayout::dense(buffer.row_bytes()).bytes(count);
        if padded.shared_storage(target).bytes.saturating_add(padded_shared_bytes(more)) > target.shared_bytes() {
            continue;
        }
        // A layout that has no place in 64 bits is not taken.
        if let Ok(layout) = rows.layout(&buffer.shape, buffer.dtype.bytes()) {
            let _ = padded.place(handle, &layout);
        }
    }
    padded
}
