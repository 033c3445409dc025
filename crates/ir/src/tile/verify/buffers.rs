use indexmap::IndexMap;
use tilewright_diag::{Diagnostic, Span, counted, nearest};
use tilewright_expr::Var;
use tilewright_layout::axis::{
    AxisKind, HARDWARE, LANEID, M, REG, TCOL, TID_IN_WG, TLANE, TX, WARPID, WGID, WID_IN_WG,
};
use tilewright_layout::{Axis, Iter, Layout, TileLayout};

use super::identifiers::{check_name, taken_help};
use super::{loaded, sizes};
use crate::arena::Handle;
use crate::target::Target;
use crate::tile::buffer::{Buffer, Direction, Space};
use crate::tile::kernel::Kernel;
use crate::tile::print::{element_index, index_title};
use crate::tile::role::{KernelsByRole, WARPS_OF_A_WARPGROUP};

/// Threads in a warp.
const THREADS_OF_A_WARP: i64 = 32;

pub(super) fn check(kernels: &KernelsByRole<'_>, target: Target, found: &mut Vec<Diagnostic>) {
    let kernel = kernels.whole();
    let mut names: IndexMap<&str, Span> = IndexMap::new();
    for (handle, buffer) in kernel.buffers.iter() {
        check_name(&buffer.name, buffer.span, "a buffer", found);
        if let Some(first) = names.get(buffer.name.as_str()) {
            found.push(
                Diagnostic::error("K0204", format!("the name `{}` is taken", buffer.name))
                    .label(buffer.span, "this buffer")
                    .label(*first, "first used here")
                    .help(taken_help("the buffer", &buffer.name, *first == buffer.span)),
            );
        }
        names.entry(buffer.name.as_str()).or_insert(buffer.span);
        check_sizes(kernel, buffer, found);
        check_layout(kernels.seen_by_user_of(kernel.storage(handle)), buffer, found);
        check_view(kernel, handle, found);
        loaded::check_view(kernel, handle, found);
    }
    check_parameters(kernel, found);
    check_caching(kernel, found);
    check_shared(kernel, target, found);
}

fn check_layout(kernel: &Kernel, buffer: &Buffer, found: &mut Vec<Diagnostic>) {
    let elements: i64 = buffer.shape.iter().fold(1, |product, extent| product.saturating_mul(*extent));
    if buffer.space == Space::Fragment && elements > MAX_FRAGMENT_ELEMENTS {
        found.push(too_large(buffer, elements));
        return;
    }
    let Some(layout) = &buffer.layout else {
        check_open(buffer, found);
        return;
    };
    if buffer.shape.iter().any(|e| *e < 1) || elements != layout.size() {
        let (shape, places) = (&buffer.shape, layout.size());
        let message = format!("`{}` has shape {shape:?}, but its layout has size {places}", buffer.name);
        let finding = Diagnostic::error("K0205", message).label(buffer.span, buffer.laid_out());
        found.push(match buffer.shape.iter().any(|extent| *extent < 1) {
            true => finding.help("every extent is at least 1"),
            false => finding
                .help(format!("the shape has {elements} elements: give a layout of this size, or change the shape")),
        });
        return;
    }
    let wrong = layout.axes().into_iter().find(|axis| !has_axis(buffer.space, axis));
    if let Some(axis) = wrong {
        let (place, legal) = match buffer.space {
            Space::Global(_) => ("global memory", "`m`"),
            Space::Shared => ("shared memory", "`m`"),
            Space::Tensor => ("tensor memory", "`TLane` and `TCol`"),
            Space::Fragment => {
                ("registers", "thread axes such as `laneid`, `warpid`, `tx`, and `m` or `reg` for the register")
            }
        };
        let finding = Diagnostic::error(
            "K0206",
            format!("`{}` is in {place}, but its layout uses the axis `{axis}`", buffer.name),
        )
        .label(buffer.span, buffer.laid_out())
        .help(format!("the axes of {place} are {legal}"));
        found.push(match meant(buffer.space, &axis) {
            Some(name) => finding.help(format!("did you mean `{name}`?")),
            None => finding,
        });
        return;
    }
    check_positions(buffer, layout, found);
    check_threads(kernel, buffer, layout, found);
}

/// Whether something is wrong with the layout of a buffer.
pub(super) fn is_reported(kernel: &Kernel, buffer: &Buffer) -> bool {
    let mut found = Vec::new();
    check_layout(kernel, buffer, &mut found);
    !found.is_empty()
}

/// Checks that the sizes in a shape and its strides are those of the kernel.
fn check_sizes(kernel: &Kernel, buffer: &Buffer, found: &mut Vec<Diagnostic>) {
    let Some(shape) = &buffer.dynamic_shape else { return };
    let mut exprs = shape.extents.iter().chain(&shape.strides);
    let is_loaded = |var: &Var| kernel.loaded.iter().any(|loaded| loaded.var == *var);
    found.extend(exprs.find_map(|expr| sizes::unknown(kernel, expr, buffer.span, &is_loaded)));
}

/// Whether layouts of a memory space may use an axis.
fn has_axis(space: Space, axis: &Axis) -> bool {
    match space {
        Space::Global(_) | Space::Shared => *axis == M,
        Space::Fragment => axis.is_thread() || *axis == REG,
        Space::Tensor => [TLANE, TCOL].contains(axis),
    }
}

/// The axis of this memory space that was probably meant by a name that is not one of a hardware axis.
fn meant(space: Space, axis: &Axis) -> Option<&'static str> {
    let known = HARDWARE.iter().filter(|known| has_axis(space, known)).map(Axis::name);
    if axis.kind() == AxisKind::Free { nearest(axis.name(), known) } else { None }
}

/// The most elements of a fragment: as many as bytes in the registers of an SM (PTX ISA, "Register State Space"; 65,536
/// registers by the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
const MAX_FRAGMENT_ELEMENTS: i64 = 1 << 18;

/// The error for a fragment that no SM can hold.
fn too_large(buffer: &Buffer, elements: i64) -> Diagnostic {
    let message = format!("the fragment `{}` has {elements} elements", buffer.name);
    Diagnostic::error("K0205", message).label(buffer.span, "declared here").help(format!(
        "a fragment has up to {MAX_FRAGMENT_ELEMENTS} elements, as many as an SM's registers have bytes; keep a part of \
         it at a time, or keep it in memory"
    ))
}

/// Checks a buffer without a layout, which only a fragment may leave to inference.
fn check_open(buffer: &Buffer, found: &mut Vec<Diagnostic>) {
    if buffer.space != Space::Fragment {
        let message = format!("`{}` has no layout", buffer.name);
        let help = "only the layout of a fragment is inferred; write a shape for row-major";
        found.push(Diagnostic::error("K0232", message).label(buffer.span, "declared here").help(help));
    } else if buffer.shape.iter().any(|extent| *extent < 1) {
        let message = format!("`{}` has shape {:?}", buffer.name, buffer.shape);
        let help = "every extent is at least 1";
        found.push(Diagnostic::error("K0205", message).label(buffer.span, "declared here").help(help));
    }
}

/// Checks that the threads named by a fragment's layout exist, and that the layout covers every thread axis.
fn check_threads(kernel: &Kernel, buffer: &Buffer, layout: &Layout, found: &mut Vec<Diagnostic>) {
    if buffer.space == Space::Fragment {
        let unnamed = layout.unnamed_thread_axes(kernel.threads);
        if !unnamed.is_empty() {
            found.push(unnamed_axes(buffer, layout, &unnamed));
            return;
        }
    }
    for axis in layout.axes().into_iter().filter(|axis| axis.is_thread()) {
        let Some(most) = positions_on(kernel, &axis) else {
            let message = format!("the number of positions on the thread axis `{axis}` is unknown");
            found.push(Diagnostic::internal("K0227", message).label(buffer.span, buffer.laid_out()));
            continue;
        };
        let reach = layout.span_on(&axis);
        if reach > most {
            let role = kernel.seen_by.map(|role| &kernel.roles[role]);
            let team = role.map_or("the kernel".to_string(), |role| format!("the role `{}`", role.name));
            let message = format!("`{}` names {reach} positions on `{axis}`, but {team} has {most}", buffer.name);
            let more = if role.is_some() { "the role more warps" } else { "the kernel more threads" };
            found.push(
                Diagnostic::error("K0227", message)
                    .label(buffer.span, buffer.laid_out())
                    .help(format!("give each thread more registers, or {more}")),
            );
        }
    }
}

/// The number of positions that the threads of a CTA have on a thread axis; `None` if it is not a thread axis.
fn positions_on(kernel: &Kernel, axis: &Axis) -> Option<i64> {
    let (threads, warps) = (kernel.threads, kernel.warps());
    let known = [
        (TX, threads),
        (LANEID, threads.min(THREADS_OF_A_WARP)),
        (WARPID, warps),
        (WID_IN_WG, warps.min(WARPS_OF_A_WARPGROUP)),
        (TID_IN_WG, threads.min(WARPS_OF_A_WARPGROUP * THREADS_OF_A_WARP)),
        (WGID, (warps + WARPS_OF_A_WARPGROUP - 1) / WARPS_OF_A_WARPGROUP),
    ];
    known.iter().find(|(known, _)| known == axis).map(|(_, positions)| *positions)
}

/// The error for a layout that does not say whether the other threads hold equal copies or nothing.
fn unnamed_axes(buffer: &Buffer, layout: &Layout, unnamed: &[(Axis, i64)]) -> Diagnostic {
    let axes: Vec<String> = unnamed.iter().map(|(axis, count)| format!("`{axis}` (extent {count})")).collect();
    let message = format!("the layout of `{}` does not mention {}", buffer.name, axes.join(" or "));
    let finding = Diagnostic::error("K0247", message).label(buffer.span, buffer.laid_out());
    let Layout::Tile(tile) = layout else {
        return finding.help("give coordinates on it in every row of the table");
    };
    let with = |extents: &dyn Fn(i64) -> i64| {
        let more = unnamed.iter().map(|(axis, count)| Iter { extent: extents(*count), stride: 1, axis: axis.clone() });
        let replica = tile.replica().iter().cloned().chain(more).collect();
        TileLayout::new(tile.shard().to_vec(), replica, tile.offset().clone()).map(|layout| layout.to_string())
    };
    let mut finding = finding;
    for (which, layout) in [("equal copies everywhere", with(&|count| count)), ("only coordinate 0", with(&|_| 1))] {
        if let Ok(layout) = layout {
            finding = finding.help(format!("{which}: {layout}"));
        }
    }
    if let [(axis, count)] = unnamed
        && *axis == WARPID
    {
        finding = finding.help(format!(
            "for a fragment per warp: add a leading dimension `{count}:1@warpid`, with `.sub((warp, ..))` in warp ops"
        ));
    }
    finding
}

/// Checks that positions are not negative and that different elements do not share one.
fn check_positions(buffer: &Buffer, layout: &Layout, found: &mut Vec<Diagnostic>) {
    if let Some(axis) = layout.axes().into_iter().find(|axis| layout.least_on(axis) < 0) {
        let message = format!("the layout of `{}` reaches below 0 on `{axis}`", buffer.name);
        let help = match layout {
            Layout::Table(_) => "list positions from 0 on".to_string(),
            Layout::Tile(_) | Layout::Compose(_) => format!("add an offset on `{axis}`"),
        };
        found.push(Diagnostic::error("K0207", message).label(buffer.span, format!("laid out as {layout}")).help(help));
    }
    let is_written = !matches!(buffer.space, Space::Global(Direction::Input) | Space::Fragment);
    if is_written && let Some(replicated) = replicated(buffer, layout) {
        found.push(
            Diagnostic::error("K0226", format!("{replicated} has several positions in memory"))
                .label(buffer.span, format!("laid out as {layout}"))
                .help("only inputs and fragments may have replicas; ops write a single position"),
        );
    }
    if matches!(buffer.space, Space::Global(Direction::Input)) {
        // Its elements may share positions: nothing writes them.
        return;
    }
    match layout.collision() {
        Ok(None) => {}
        Ok(Some(pair)) => found.push(shared_position(buffer, layout, pair)),
        Err(why) => {
            let message = format!("it cannot be decided whether two elements of `{}` share a position", buffer.name);
            found.push(
                Diagnostic::error("K0208", message)
                    .label(buffer.span, format!("laid out as {layout}"))
                    .note(why.to_string())
                    .help("use strides of which each is a multiple of the next smaller one"),
            );
        }
    }
}

/// The error for two elements that share a position.
fn shared_position(buffer: &Buffer, layout: &Layout, (one, other): (i64, i64)) -> Diagnostic {
    let elements = [one, other].map(|element| index_title(&element_index(&buffer.shape, element)));
    let place = common_place(layout, one, other).unwrap_or_else(|| "the same position".to_string());
    Diagnostic::error("K0208", format!("two elements of `{}` share a position", buffer.name))
        .label(buffer.span, format!("laid out as {layout}"))
        .note(format!("elements {} and {} are both at {place}", elements[0], elements[1]))
        .help("only in an input may elements share a position")
}

/// Which elements have several positions, if any do: all if the layout has replicas, or the first such element of a
/// table.
fn replicated(buffer: &Buffer, layout: &Layout) -> Option<String> {
    let has_replicas = match layout {
        Layout::Tile(tile) => !tile.replica().is_empty(),
        Layout::Compose(compose) => !compose.tile().replica().is_empty(),
        Layout::Table(table) => {
            let element = index_title(&element_index(&buffer.shape, table.replicated()?));
            return Some(format!("element {element} of `{}`", buffer.name));
        }
    };
    has_replicas.then(|| format!("every element of `{}`", buffer.name))
}

/// A position that two elements share: `3` in memory, `1@laneid, 0@reg` in registers. `None` if their positions are too
/// many to list, or have no axis.
fn common_place(layout: &Layout, one: i64, other: i64) -> Option<String> {
    let (here, there) = (layout.apply(one).ok()?, layout.apply(other).ok()?);
    let place = here.iter().find(|place| !place.is_empty() && there.binary_search(place).is_ok())?;
    let title = |(axis, position): (&Axis, &i64)| {
        if *axis == M { position.to_string() } else { format!("{position}@{axis}") }
    };
    Some(place.iter().map(title).collect::<Vec<_>>().join(", "))
}

fn check_view(kernel: &Kernel, handle: Handle<Buffer>, found: &mut Vec<Diagnostic>) {
    let buffer = &kernel.buffers[handle];
    let Some(parent) = buffer.view_of else { return };
    let owner = &kernel.buffers[parent];
    if buffer.space == Space::Fragment && buffer.layout.is_none() {
        check_fragment_view(buffer, owner, found);
        return;
    }
    let is_shared = buffer.space == Space::Shared;
    if buffer.space == Space::Fragment || (!is_shared && buffer.dtype != owner.dtype) {
        let (message, help) = match buffer.space {
            Space::Fragment => {
                (format!("`{}` is a view of a fragment, but has a layout", buffer.name), "view it with only a shape")
            }
            Space::Global(_) | Space::Shared | Space::Tensor => (
                format!("`{}` views a parameter as another dtype", buffer.name),
                "declare the parameter with that dtype",
            ),
        };
        found.push(
            Diagnostic::error("K0225", message)
                .label(buffer.span, "viewed here")
                .label(owner.span, "declared here")
                .help(help),
        );
        return;
    }
    let bytes = |b: &Buffer| b.span_elements() * b.dtype.bytes();
    if bytes(buffer) > bytes(owner) {
        let message = format!(
            "the view `{}` needs {}, but `{}` has {}",
            buffer.name,
            counted(bytes(buffer), "byte"),
            owner.name,
            bytes(owner)
        );
        found.push(
            Diagnostic::error("K0209", message)
                .label(buffer.span, buffer.laid_out())
                .label(owner.span, owner.laid_out())
                .help("a view has at most the bytes of its buffer: make the view smaller, or the buffer larger"),
        );
    }
}

/// Checks that a view of a fragment has as many bytes as the fragment.
fn check_fragment_view(buffer: &Buffer, owner: &Buffer, found: &mut Vec<Diagnostic>) {
    let bytes = |b: &Buffer| b.shape.iter().fold(b.dtype.bytes(), |product, extent| product.saturating_mul(*extent));
    if bytes(buffer) != bytes(owner) {
        let has = counted(bytes(buffer), "byte");
        let message = format!("view `{}` has {has}, but `{}` has {}", buffer.name, owner.name, bytes(owner));
        found.push(
            Diagnostic::error("K0209", message)
                .label(buffer.span, "viewed here")
                .label(owner.span, "declared here")
                .help("a view must have as many bytes as its fragment"),
        );
    }
}

/// Bytes of parameters that a launch can pass (CUDA C++ Programming Guide, "Function Parameters").
const MOST_PARAMETER_BYTES: usize = 32_764;

/// Checks that a launch can pass all tensors and sizes.
fn check_parameters(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let tensors = kernel
        .buffers
        .iter()
        .filter(|(_, buffer)| matches!(buffer.space, Space::Global(_)) && buffer.view_of.is_none());
    let (mut bytes, mut last) = (4 * kernel.sizes.len(), kernel.sizes.last().map(|size| size.span));
    for (_, tensor) in tensors {
        bytes += 8;
        last = Some(tensor.span);
    }
    if let Some(last) = last.filter(|_| bytes > MOST_PARAMETER_BYTES) {
        let message = format!("{bytes} bytes of parameters, but a kernel has up to {MOST_PARAMETER_BYTES}");
        found.push(Diagnostic::error("K0271", message).label(last, "the last one").help(
            "a tensor takes 8 bytes and a size 4; pass tensors of one shape as one tensor with one more dimension",
        ));
    }
}

/// Checks that buffers for whose accesses the user says how they are cached are tensors.
fn check_caching(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    for (handle, caching) in &kernel.caching {
        let buffer = &kernel.buffers[*handle];
        if !matches!(buffer.space, Space::Global(_)) {
            let message = format!("`{}` is {}, but it is not in global memory", buffer.name, caching.name());
            let finding = Diagnostic::error("K0280", message).label(buffer.span, "this buffer");
            found.push(finding.help(format!("leave out .{}(): only global memory is cached", caching.method())));
        }
    }
}

/// Checks that all shared buffers together fit in the shared memory of a CTA.
fn check_shared(kernel: &Kernel, target: Target, found: &mut Vec<Diagnostic>) {
    for buffer in kernel.alone.iter().map(|handle| &kernel.buffers[*handle]).filter(|b| b.space != Space::Shared) {
        let message = format!("`{}` is set apart, but it is not in shared memory", buffer.name);
        let finding = Diagnostic::error("K0279", message).label(buffer.span, "this buffer");
        found.push(finding.help("leave out .alone(): only shared buffers have storage in common"));
    }
    let owners = kernel.buffers.iter().filter(|(_, b)| b.space == Space::Shared && b.view_of.is_none());
    let mut largest: Option<(Handle<Buffer>, [i64; 2])> = None;
    for (handle, buffer) in owners {
        let bytes = buffer.span_elements().saturating_mul(buffer.dtype.bytes());
        let stages = kernel.stages_of(handle);
        if largest.is_none_or(|(_, [stages_of_most, most])| {
            bytes.saturating_mul(stages) > most.saturating_mul(stages_of_most)
        }) {
            largest = Some((handle, [stages, bytes]));
        }
    }
    let Some((handle, [stages, bytes])) = largest else { return };
    let (buffer, total) = (&kernel.buffers[handle], kernel.shared_storage(target).bytes);
    if total > target.shared_bytes() {
        let message = format!("{total} bytes of shared memory, but a CTA of {target} has {}", target.shared_bytes());
        let bytes = counted(bytes, "byte");
        let size = if stages > 1 { format!("{stages} stages of {bytes}") } else { bytes };
        found.push(
            Diagnostic::error("K0210", message)
                .label(buffer.span, format!("`{}` is the largest, with {size}", buffer.name))
                .help(fitting_stages(kernel, handle, total - target.shared_bytes())),
        );
    }
}

/// What lets shared memory suffice that lacks so many bytes: fewer stages of the ring of the largest buffer, if there is one.
fn fitting_stages(kernel: &Kernel, largest: Handle<Buffer>, missing: i64) -> String {
    let ring = kernel.ring_of(largest).map(|ring| &kernel.rings[ring]);
    let fitting = ring.map(|ring| {
        let buffers = ring.buffers.iter().filter(|buffer| kernel.buffers[**buffer].space == Space::Shared);
        let stage: i64 = buffers.map(|buffer| kernel.stage_bytes(*buffer)).fold(0, i64::saturating_add);
        (&ring.name, ring.stages - (missing + stage - 1).div_euclid(stage.max(1)))
    });
    match fitting {
        Some((ring, stages)) if stages > 0 => {
            format!("use smaller tiles, or give `{ring}` {} or fewer", counted(stages, "stage"))
        }
        Some(_) | None => "use smaller tiles or fewer stages".to_string(),
    }
}
