//! Golden programs as tile kernels, built with the user-facing builder.

use std::collections::BTreeMap;

use tilewright::dsl::{self, IntoLayout, KernelBuilder};
use tilewright::expr::Var;
use tilewright::ir::Kernel;
use tilewright::ir::tile::{self, Coord};
use tilewright::layout::DType::F32;
use tilewright::layout::axis::{REG, TX};
use tilewright::layout::{self, LayoutError, TableLayout};

use super::assignment::Placement;
use super::case::Case;
use super::kernel_elements::{Names, Part, Translator, constant, dtype};
use super::program::{
    Buffer, Element, Gemm, Layout, Loop, LoopKind, Op, Parallel, Program, Reduce, ReduceKind, Scope, WarpPolicy,
};

/// The tile kernel of a golden program; fragments have layouts if the program specifies them. The error says what
/// cannot be built.
pub fn kernel_of(case: &Case) -> Result<Kernel, String> {
    let mut outcome = Ok(());
    let kernel = dsl::kernel(&case.name, |k| outcome = build(k, &case.program));
    outcome.map(|()| kernel).map_err(|why| format!("{}: {why}", case.name))
}

fn build(k: &mut KernelBuilder, program: &Program) -> Result<(), String> {
    let mut names = Names::new();
    let translator = declare(k, program, &mut names)?;
    let [x, y, z] = [0usize, 1, 2].map(|dimension| program.grid.get(dimension).copied().unwrap_or(1));
    if program.grid.len() > 3 {
        return Err(format!("the grid has {} dimensions", program.grid.len()));
    }
    k.threads(program.threads);
    for (name, block) in ["bx", "by", "bz"].into_iter().zip(k.grid([x, y, z])) {
        names.bind(name, Coord::At(block.resolved()));
    }
    translator.ops(k, &program.body, &names)?;
    translator.outcome()
}

fn declare<'a>(k: &mut KernelBuilder, program: &'a Program, names: &mut Names) -> Result<Translator<'a>, String> {
    let mut written = Written::new();
    add_written(&program.body, &mut written);
    let mut translator = Translator::new(program);
    for told in program.params.iter().chain(&program.buffers) {
        let (name, dtype) = (names.free(&told.name), dtype(&told.dtype)?);
        let shaped = Shaped::new(told, program.layouts.get(&told.name))?;
        let buffer = match (&told.alias_of, told.scope) {
            (Some(viewed), _) => k.view_as(&name, translator.find(viewed)?.buffer, dtype, shaped),
            (None, Scope::Global) => match written.get(told.name.as_str()) {
                Some(true) => k.output(&name, dtype, shaped),
                // What is only added to begins at 0.
                Some(false) => k.accumulator(&name, dtype, shaped),
                None => k.input(&name, dtype, shaped),
            },
            (None, Scope::Shared) => k.shared(&name, dtype, shaped),
            (None, Scope::Fragment) => k.fragment(&name, dtype, shaped),
            (None, Scope::Local) => return Err(format!("`{}` is private to each thread", told.name)),
        };
        translator.declared(buffer, dtype, told);
    }
    Ok(translator)
}

/// The buffers that are written, with whether that is by more than additions.
type Written<'a> = BTreeMap<&'a str, bool>;

/// Adds the buffers that operations write.
fn add_written<'a>(ops: &'a [Op], written: &mut Written<'a>) {
    for op in ops {
        match op {
            Op::Parallel(nest) => add_stored(&nest.body, written),
            Op::Scalar(body) => add_stored(body, written),
            Op::Loop(around) => add_written(&around.body, written),
            Op::If { then, otherwise, .. } => {
                add_written(then, written);
                add_written(otherwise, written);
            }
            Op::AtomicAdd { dst, .. } => {
                written.entry(&dst.buffer).or_insert(false);
            }
            Op::Copy { dst, .. } | Op::Fill { dst, .. } => {
                written.insert(&dst.buffer, true);
            }
            Op::Reduce(Reduce { dst: name, .. }) | Op::Gemm(Gemm { c: name, .. }) => {
                written.insert(name, true);
            }
        }
    }
}

/// Adds the buffers that statements write.
fn add_stored<'a>(body: &'a [Element], written: &mut Written<'a>) {
    for element in body {
        match element {
            Element::AtomicAdd(store) => {
                written.entry(&store.buffer).or_insert(false);
            }
            Element::Store(store) => {
                written.insert(&store.buffer, true);
            }
            Element::Let { .. } => {}
            Element::If { then, otherwise, .. } => {
                add_stored(then, written);
                add_stored(otherwise, written);
            }
            Element::For { body, .. } => add_stored(body, written),
        }
    }
}

/// A shape with an optional layout.
struct Shaped {
    shape: Vec<i64>,
    table: Option<TableLayout>,
}

impl Shaped {
    fn new(told: &Buffer, layout: Option<&Layout>) -> Result<Shaped, String> {
        let table = layout.map(|layout| table(layout, &told.shape)).transpose();
        Ok(Shaped { shape: told.shape.clone(), table: table.map_err(|why| format!("`{}`: {why}", told.name))? })
    }
}

impl IntoLayout for Shaped {
    fn into_layout(self) -> Result<(Vec<i64>, layout::Layout), LayoutError> {
        match self.table {
            Some(table) => Ok((self.shape, layout::Layout::Table(table))),
            None => self.shape.into_layout(),
        }
    }

    fn is_shape(&self) -> bool {
        self.table.is_none()
    }
}

/// The thread and slot of every copy of every element or iteration.
fn table(layout: &Layout, shape: &[i64]) -> Result<TableLayout, String> {
    if layout.shape != shape {
        return Err(format!("a layout of shape {:?} for shape {shape:?}", layout.shape));
    }
    let owners = Placement::of_layout(layout)?.owners;
    let places = |owners: &Vec<(i64, i64)>| -> Vec<layout::Coord> {
        owners.iter().map(|(thread, slot)| BTreeMap::from([(TX, *thread), (REG, *slot)])).collect()
    };
    let elements: Vec<Vec<layout::Coord>> = owners.iter().map(places).collect();
    TableLayout::new(&elements).map_err(|error| error.to_string())
}

impl Translator<'_> {
    fn ops(&self, k: &mut KernelBuilder, ops: &[Op], names: &Names) -> Result<(), String> {
        ops.iter().try_for_each(|op| self.op(k, op, names))
    }

    fn op(&self, k: &mut KernelBuilder, op: &Op, names: &Names) -> Result<(), String> {
        match op {
            Op::Parallel(nest) => self.parallel(k, nest, names)?,
            Op::Loop(around) => self.repeat(k, around, names),
            Op::If { cond, then, otherwise } => {
                let branch = |k: &mut KernelBuilder, ops: &[Op]| self.note(self.ops(k, ops, names));
                k.if_else(self.value(cond, names)?, |k| branch(k, then), |k| branch(k, otherwise));
            }
            Op::Scalar(body) => k.each_thread(|e| self.note(self.elements_of_all_threads(e, body, names))),
            Op::Copy { src, dst, coalesced_width } => {
                let [dst, src] = [self.part(dst, names)?, self.part(src, names)?];
                self.copy(k, [&dst, &src], *coalesced_width, names)?;
            }
            Op::Fill { dst, value } => {
                k.fill(self.part(dst, names)?.region(), constant(*value));
            }
            Op::Reduce(reduce) => self.reduce(k, reduce)?,
            Op::Gemm(gemm) => self.gemm(k, gemm)?,
            Op::AtomicAdd { dst, src } => {
                k.atomic_add(self.part(dst, names)?.region(), self.part(src, names)?.region());
            }
        }
        Ok(())
    }

    fn parallel(&self, k: &mut KernelBuilder, nest: &Parallel, names: &Names) -> Result<(), String> {
        let layout = nest.loop_layout.as_ref().map(|name| self.loop_layout(name, &nest.extents)).transpose()?;
        let mut names = names.clone();
        let vars = nest.vars.iter().zip(&nest.extents).map(|(name, extent)| names.variable(name, *extent)).collect();
        let mut added = k.parallel_over(vars, |e| self.note(self.elements(e, &nest.body, &names)));
        if let Some(layout) = layout {
            added = added.layout(layout);
        }
        if let Some(width) = nest.coalesced_width {
            added.vector(width);
        }
        Ok(())
    }

    fn repeat(&self, k: &mut KernelBuilder, around: &Loop, names: &Names) {
        let mut names = names.clone();
        let name = names.free(&around.var);
        let body = |k: &mut KernelBuilder, at: dsl::Expr| {
            names.bind(&around.var, Coord::At(at.resolved()));
            self.note(self.ops(k, &around.body, &names));
        };
        match around.kind {
            LoopKind::Serial => k.serial(&name, 0..around.extent, body),
            LoopKind::Pipelined => k.pipelined(&name, 0..around.extent, around.num_stages.unwrap_or(1).max(1), body),
            LoopKind::Unroll => k.unroll(&name, 0..around.extent, body),
        }
    }

    fn reduce(&self, k: &mut KernelBuilder, reduce: &Reduce) -> Result<(), String> {
        let kind = match reduce.kind {
            ReduceKind::Sum => tile::ReduceKind::Sum,
            ReduceKind::Max => tile::ReduceKind::Max,
            ReduceKind::Min => tile::ReduceKind::Min,
            ReduceKind::AbsMax => tile::ReduceKind::AbsMax,
            ReduceKind::AbsSum => tile::ReduceKind::AbsSum,
        };
        let added = k.reduce(kind, self.buffer(&reduce.dst)?, self.buffer(&reduce.src)?, reduce.dim);
        if !reduce.clear {
            added.accumulate();
        }
        Ok(())
    }

    fn gemm(&self, k: &mut KernelBuilder, gemm: &Gemm) -> Result<(), String> {
        let policy = match gemm.policy {
            WarpPolicy::Square => tile::WarpPolicy::Square,
            WarpPolicy::FullRow => tile::WarpPolicy::FullRow,
            WarpPolicy::FullCol => tile::WarpPolicy::FullCol,
        };
        let Gemm { transpose_a, transpose_b, clear_accum: clear, .. } = *gemm;
        let tf32 = self.find(&gemm.a)?.dtype == F32;
        let [c, a, b] = [self.buffer(&gemm.c)?, self.buffer(&gemm.a)?, self.buffer(&gemm.b)?];
        k.gemm(c, a, b).with(tile::Gemm { transpose_a, transpose_b, policy, clear, tf32, ..tile::Gemm::PLAIN });
        Ok(())
    }

    /// A copy; element by element if it converts, extends past an edge of a tensor, or specifies an access width.
    fn copy(
        &self,
        k: &mut KernelBuilder,
        [dst, src]: [&Part<'_>; 2],
        width: Option<i64>,
        names: &Names,
    ) -> Result<(), String> {
        let converts = dst.of.told.dtype != src.of.told.dtype;
        let by_elements = converts || width.is_some() || dst.hangs_over() || src.hangs_over();
        if by_elements && dst.moving() == src.moving() {
            self.copy_elements(k, [dst, src], width, names);
        } else {
            k.copy(dst.region(), src.region());
        }
        Ok(())
    }

    fn copy_elements(&self, k: &mut KernelBuilder, [dst, src]: [&Part<'_>; 2], width: Option<i64>, names: &Names) {
        let (mut names, mut extents) = (names.clone(), dst.moving());
        if extents.is_empty() {
            extents.push(1);
        }
        let var = |(place, extent): (usize, &i64)| names.variable(&format!("i{place}"), *extent);
        let vars: Vec<Var> = extents.iter().enumerate().map(var).collect();
        let value = self.converted(src.of.buffer.at(src.element(&vars)).resolved(), dst.of.dtype);
        let index = dst.element(&vars);
        let added = k.parallel_over(vars, |e| {
            e.store(dst.of.buffer, index, value);
        });
        if let Some(width) = width {
            added.vector(width);
        }
    }

    fn loop_layout(&self, name: &str, extents: &[i64]) -> Result<TableLayout, String> {
        let layout = self.program.loop_layouts.get(name).ok_or_else(|| format!("unknown loop layout `{name}`"))?;
        table(layout, extents).map_err(|why| format!("`{name}`: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use std::path::Path;

    use tilewright::ir::Target;
    use tilewright::ir::tile::verify;

    use super::super::{Class, read_case, read_folder};
    use super::*;

    /// The programs that the verifier refuses, with the error code.
    const REFUSED: [(&str, &[&str]); 3] = [
        // Several iterations store to the same element.
        ("K0237", &["iss_1374_group_accumulate", "rej_mod_write_checked", "seed_strict_b0_write_race"]),
        // Operands have different extents.
        ("K0219", &["rej_copy_shape"]),
        // A layout uses threads outside of the block.
        ("K0227", &["snd_annot_threads_overflow_f16"]),
    ];

    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tilelang"))
    }

    fn cases() -> Vec<Case> {
        read_folder(folder()).unwrap()
    }

    fn file(name: &str) -> String {
        std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap()
    }

    fn kernel(name: &str) -> Kernel {
        kernel_of(&read_case(&file(name)).unwrap()).unwrap()
    }

    #[track_caller]
    fn assert_lines(kernel: &Kernel, lines: &[&str]) {
        let text = kernel.to_string();
        for line in lines {
            assert!(text.lines().any(|known| known.trim_start().starts_with(line)), "`{line}` is not in\n{text}");
        }
    }

    #[test]
    fn every_program_builds() {
        let wrong: Vec<String> = cases().iter().filter_map(|case| kernel_of(case).err()).collect();
        assert!(wrong.is_empty(), "{} do not build:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn the_verifier_refuses_races_and_wrong_shapes() {
        let listed = |(code, names): &(&'static str, &[&str])| -> Vec<(&'static str, String)> {
            names.iter().map(|name| (*code, name.to_string())).collect()
        };
        let expected: BTreeSet<(&str, String)> = REFUSED.iter().flat_map(listed).collect();
        let (mut refused, mut surprises) = (BTreeSet::new(), Vec::new());
        for case in cases() {
            let found = verify(kernel_of(&case).unwrap(), Target::Sm90a).err().unwrap_or_default();
            for diagnostic in found {
                let entry = (diagnostic.code, case.name.clone());
                if !expected.contains(&entry) {
                    surprises.push(format!("{}: {diagnostic}", case.name));
                }
                refused.insert(entry);
            }
        }
        assert!(surprises.is_empty(), "{} surprises:\n{}", surprises.len(), surprises.join("\n"));
        assert_eq!(refused, expected);
    }

    #[test]
    fn what_the_verdicts_call_racy_is_refused_as_a_race() {
        let racy = cases().into_iter().filter(|case| case.verdict.class == Class::AcceptsRacy);
        assert_eq!(racy.map(|case| case.name).collect::<Vec<_>>(), REFUSED[0].1);
    }

    #[test]
    fn copies_that_convert_or_hang_over_an_edge_go_by_elements() {
        let converted = ["parallel i0 in 0..32, i1 in 0..64", "a[i0, i1] = f32(A[i0, i1])", "cta copy(B, a)"];
        assert_lines(&kernel("cp_cast_on_copy"), &converted);
        let masked = ["a[i0, i1] = A[bx*64 + i0, i1]", "B[bx*64 + i0, i1] = a[i0, i1]"];
        assert_lines(&kernel("np2_copy_oob_rows"), &masked);
    }

    #[test]
    fn numbers_with_a_name_stand_where_the_name_is() {
        assert_lines(&kernel("seed_plan_then_buffer"), &["B[grp*2 + r] = f[grp*2 + r, 0]"]);
    }

    #[test]
    fn what_data_names_is_taken_to_be_unique() {
        assert_lines(&kernel("rej_data_dependent"), &["B[ix[i]] = a[i] unique"]);
    }

    #[test]
    fn layouts_that_a_program_asks_for_are_tables() {
        let kernel = kernel("an_loop_layout_vs_fragment");
        assert_lines(&kernel, &["fragment a: f32(8,8) = table(64 -> ", "parallel i in 0..8, j in 0..8 = table(64 -> "]);
    }

    #[test]
    fn names_that_are_taken_are_changed() {
        let text = file("sp_half_cols_2d").replace("\"i\"", "\"tid\"").replace("\"j\"", "\"a\"");
        let kernel = kernel_of(&read_case(&text).unwrap()).unwrap();
        assert_lines(&kernel, &["parallel tid_ in 0..8, a_ in 0..4", "B[tid_, a_] = a[tid_, a_]"]);
        assert!(verify(kernel, Target::Sm90a).is_ok());
    }

    #[test]
    fn errors_name_the_case_and_the_buffer() {
        let mut case = read_case(&file("maint_fp8_copy_64x128_t64_io_aware")).unwrap();
        case.program.buffers[0].scope = Scope::Local;
        let why = kernel_of(&case).unwrap_err();
        assert_eq!(why, "maint_fp8_copy_64x128_t64_io_aware: `frag` is private to each thread");
    }
}
