//! Checks copies, fills, reductions and matrix products.

use super::accesses::index_loads;
use super::boxes::{points, position};
use super::fault::Fault;
use super::judge::{Judge, within};
use super::judge_buffers::Held;
use super::program::{Gemm, Reduce, Region};
use super::walk::Env;

/// A region with known bounds.
struct Window<'a> {
    buffer: &'a str,
    shape: &'a [i64],
    mins: Vec<Option<i64>>,
    extents: Vec<i64>,
    /// The owners, for a fragment.
    held: Option<&'a Held>,
}

impl<'a> Judge<'a> {
    /// A copy runs on the owners of its destination, or else on the owners of its source: only between fragments can
    /// these differ.
    pub(crate) fn copy(&mut self, src: &'a Region, dst: &'a Region, env: &Env<'a>) {
        let (Some(from), Some(to)) = (self.window(src, env), self.window(dst, env)) else { return };
        let extents = long(&from.extents);
        if extents != long(&to.extents) {
            return self.shapes(vec![from.extents, to.extents]);
        }
        if from.held.is_none() && to.held.is_none() {
            return;
        }
        for at in points(&extents) {
            let (read, written) = (self.element(&from, &at), self.element(&to, &at));
            let (Some((read, src_owners)), Some((written, dst_owners))) = (read, written) else { continue };
            if !within(dst_owners, src_owners) {
                let (src, dst) = (self.place(from.buffer, read), self.place(to.buffer, written));
                let (src_owners, dst_owners) = (src_owners.to_vec(), dst_owners.to_vec());
                self.report.add(Fault::CopyElsewhere { op: self.op(), src, src_owners, dst, dst_owners });
            }
        }
    }

    /// Every owner writes, so only the region can be wrong.
    pub(crate) fn fill(&mut self, dst: &'a Region, env: &Env<'a>) {
        let Some(window) = self.window(dst, env) else { return };
        if window.held.is_some() {
            for at in points(&long(&window.extents)) {
                self.element(&window, &at);
            }
        }
    }

    /// A result is only on threads that hold some of the reduced elements.
    pub(crate) fn reduce(&mut self, reduce: &'a Reduce) {
        let (Some(src), Some(dst)) = (self.buffer(&reduce.src), self.buffer(&reduce.dst)) else { return };
        let mut rest = src.shape.clone();
        let extent = if reduce.dim < rest.len() { rest.remove(reduce.dim) } else { 0 };
        if extent == 0 || long(&rest) != long(&dst.shape) {
            return self.shapes(vec![src.shape.clone(), dst.shape.clone()]);
        }
        let (from, to) = (self.fragment(&reduce.src), self.fragment(&reduce.dst));
        let (Some(from), Some(to)) = (from, to) else { return };
        for (result, at) in points(&rest).enumerate() {
            let owners_of = |part| {
                let mut element = at.clone();
                element.insert(reduce.dim, part);
                position(&element, &src.shape).and_then(|element| from.owners(element))
            };
            let mut holders: Vec<i64> = (0..extent).filter_map(owners_of).flatten().copied().collect();
            holders.sort_unstable();
            holders.dedup();
            let owners = to.owners(result).unwrap_or_default();
            if !within(owners, &holders) {
                let (dst, owners) = (self.place(&reduce.dst, result), owners.to_vec());
                self.report.add(Fault::ReduceElsewhere { op: self.op(), dst, owners, holders });
            }
        }
    }

    /// Checks the shapes, and that operands in fragments have a placement. The layouts required by instructions are not
    /// checked.
    pub(crate) fn gemm(&mut self, gemm: &'a Gemm) {
        let operands = [&gemm.a, &gemm.b, &gemm.c];
        let mut shapes = Vec::new();
        for (operand, transposed) in operands.into_iter().zip([gemm.transpose_a, gemm.transpose_b, false]) {
            let Some(buffer) = self.buffer(operand) else { return };
            let mut shape = buffer.shape.clone();
            if transposed {
                shape.reverse();
            }
            shapes.push(shape);
            self.fragment(operand);
        }
        let fits = matches!(
            [&shapes[0][..], &shapes[1][..], &shapes[2][..]],
            [[m, k], [of_b, n], [rows, cols]] if k == of_b && m == rows && n == cols
        );
        if !fits {
            self.shapes(shapes);
        }
    }

    /// The bounds of a region; `None`, with a fault, if it does not match its buffer or its start depends on data.
    fn window(&mut self, region: &'a Region, env: &Env<'a>) -> Option<Window<'a>> {
        let buffer = self.buffer(&region.buffer)?;
        let shape = buffer.shape.as_slice();
        let (mut mins, mut extents) = (vec![Some(0); shape.len()], shape.to_vec());
        if let Some(ranges) = &region.ranges {
            let mut found = Vec::new();
            ranges.iter().for_each(|range| index_loads(&range.min, env, &mut found));
            self.floating(&found);
            mins = ranges.iter().map(|range| env.index(&range.min)).collect();
            extents = ranges.iter().map(|range| range.extent).collect();
        }
        if extents.len() != shape.len() {
            self.shapes(vec![extents, shape.to_vec()]);
            return None;
        }
        let held = self.fragment(&region.buffer);
        if held.is_some() && mins.contains(&None) {
            self.report.add(Fault::UnknownRegion(self.at(&region.buffer)));
            return None;
        }
        Some(Window { buffer: &region.buffer, shape, mins, extents, held })
    }

    /// An element of a fragment's region, with its owners. The coordinate omits dimensions of extent 1.
    fn element(&mut self, window: &Window<'a>, at: &[i64]) -> Option<(usize, &'a [i64])> {
        let held = window.held?;
        let mut along = at.iter().copied();
        let index: Vec<i64> = window
            .mins
            .iter()
            .zip(&window.extents)
            .map(|(min, extent)| {
                let step = if *extent == 1 { 0 } else { along.next().unwrap_or(0) };
                min.unwrap_or(0).saturating_add(step)
            })
            .collect();
        let Some(element) = position(&index, window.shape) else {
            self.out_of_bounds(window.buffer, index.into_iter().map(Some).collect());
            return None;
        };
        Some((element, held.owners(element)?))
    }

    fn shapes(&mut self, shapes: Vec<Vec<i64>>) {
        self.report.add(Fault::Shapes { op: self.op(), shapes });
    }
}

/// The extents other than 1.
fn long(extents: &[i64]) -> Vec<i64> {
    extents.iter().copied().filter(|extent| *extent != 1).collect()
}
