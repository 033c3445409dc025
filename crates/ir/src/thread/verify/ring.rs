//! Checks of copies by the copy engine.

use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;
use tilewright_layout::descriptor::BOX_UNIT;

use super::checker::Checker;
use crate::arena::Handle;
use crate::hw_index::HwIndex;
use crate::thread::effects::for_each_stmt;
use crate::thread::inst::{Inst, RESPONSE_BYTES};
use crate::thread::program::{Cond, Memory, MemorySpace, Stmt};
use crate::thread::ring::{RUN_UNIT, TensorCopy, TensorPart};

/// A place: its memory and its index there.
type Place = (Handle<Memory>, Expr);

impl Checker<'_> {
    /// A copy has as many coordinates as its map has dimensions, moves the bytes of its box, or whole units of a tensor in global
    /// memory, from or to a place where these may begin, and counts at a barrier in shared memory if it fills that. One elected
    /// thread issues it.
    pub(super) fn tensor_copy(&mut self, copy: &TensorCopy) {
        let TensorCopy { part, shared, bytes, .. } = copy;
        let program = self.program;
        let memory = |place: &Place| &program.memories[place.0];
        let begins_at = |place: &Place, alignment: i64, unit: i64| {
            memory(place).alignment % alignment == 0 && self.is_multiple(&place.1, unit / memory(place).dtype.bytes())
        };
        let begins = match part {
            TensorPart::Box { map, coordinates } => {
                let boxes = &program.maps[*map].boxes;
                coordinates.len() == boxes.sources.len()
                    && *bytes == boxes.box_bytes()
                    && begins_at(shared, boxes.alignment(), BOX_UNIT)
            }
            TensorPart::Run { first } => {
                let is_global = matches!(memory(first).space, MemorySpace::Global { .. });
                let dtypes = [memory(first).dtype, memory(shared).dtype];
                is_global
                    && dtypes[0] == dtypes[1]
                    && bytes % RUN_UNIT == 0
                    && begins_at(first, RUN_UNIT, RUN_UNIT)
                    && begins_at(shared, RUN_UNIT, RUN_UNIT)
            }
        };
        let tensor = part.tensor(&program.maps);
        let is_barrier = |place: &Place| memory(place).is_shared() && memory(place).dtype == DType::U64;
        let is_written = matches!(program.memories[tensor].space, MemorySpace::Global { read_only: false, .. });
        let arrives = copy.full().map_or(is_written, is_barrier);
        let title = self.title(part);
        if !(begins && memory(shared).is_shared() && arrives) {
            self.report("V0321", format!("{title} has operands that it does not accept"));
        }
        if !self.is_elected {
            self.report("V0321", format!("more than one thread starts {title}"));
        }
        if copy.reach().bringers() > program.cluster {
            self.report(
                "V0321",
                format!("{title} reaches {} CTAs of a cluster of {}", copy.reach().bringers(), program.cluster),
            );
        }
    }

    /// A copy in messages.
    fn title(&self, part: &TensorPart) -> String {
        match part {
            TensorPart::Box { map, .. } => format!("a copy by `{}`", self.program.maps[*map].name),
            TensorPart::Run { first } => format!("a copy of a run of `{}`", self.program.memories[first.0].name),
        }
    }

    /// Where bytes are announced, the copies beside it bring as many, those in loops as often as these run.
    pub(super) fn announced(&mut self, body: &[Stmt]) {
        let mut sums = Sums::default();
        self.add(body, 1, &mut sums);
        for ((memory, index), [announced, moved]) in sums.0.into_iter().filter(|(_, [one, other])| one != other) {
            let name = &self.program.memories[memory].name;
            let text = format!("`{name}[{index}]` expects {announced} bytes, and copies bring {moved}");
            self.report("V0321", text);
        }
    }

    /// What one thread copies to tensors belongs to a group that it commits afterwards.
    pub(super) fn committed(&mut self, body: &[Stmt]) {
        let mut open: Option<TensorPart> = None;
        for_each_stmt(body, &mut |stmt| match stmt {
            Stmt::TensorCopy(copy) if copy.full().is_none() => open = Some(copy.part.clone()),
            Stmt::Inst(call) if call.inst == Inst::BulkCommit => open = None,
            _ => {}
        });
        if let Some(part) = open {
            self.report("V0321", format!("{} belongs to no group", self.title(&part)));
        }
    }

    /// Adds what statements announce and move if they are executed `times` times. What is under a condition, or in a loop
    /// whose length is not known, is compared by itself.
    fn add(&mut self, body: &[Stmt], times: i64, sums: &mut Sums) {
        for stmt in body {
            match stmt {
                Stmt::Inst(call) if call.inst == Inst::BarrierExpect => {
                    if let (Some(barrier), Some(bytes)) = (call.memory.first(), constant(call.arguments.first())) {
                        sums.add(barrier, [times * bytes, 0]);
                    }
                }
                Stmt::Inst(call) if matches!(call.inst, Inst::ClaimTile | Inst::ClaimTileOfCluster) => {
                    call.memory.iter().skip(1).for_each(|barrier| sums.add(barrier, [0, times * RESPONSE_BYTES]));
                }
                Stmt::TensorCopy(copy) => {
                    let bytes = times * copy.bytes * copy.reach().bringers();
                    copy.full().into_iter().for_each(|full| sums.add(full, [0, bytes]));
                }
                Stmt::For { counter, body, .. } => match counter.values() {
                    Some(values) => self.add(body, times * values.count() as i64, sums),
                    None => self.announced(body),
                },
                Stmt::Op { body, .. } => self.add(body, times, sums),
                // One CTA announces what several bring.
                Stmt::If { cond, body } if is_of_cta(cond) => self.add(body, times, sums),
                _ => self.announced(stmt.inner()),
            }
        }
    }
}

/// Whether the CTA alone decides a condition.
fn is_of_cta(cond: &Cond) -> bool {
    let mut is_so = true;
    let mut see = |var: &Var| is_so &= matches!(HwIndex::of(var), Some(HwIndex::Block(_)));
    cond.sides().into_iter().for_each(|side| side.for_each_var(&mut see));
    is_so
}

fn constant(number: Option<&Expr>) -> Option<i64> {
    number?.as_const()
}

/// For each barrier, the bytes that are announced and those that are moved.
#[derive(Default)]
struct Sums(Vec<(Place, [i64; 2])>);

impl Sums {
    fn add(&mut self, barrier: &Place, [announced, moved]: [i64; 2]) {
        match self.0.iter_mut().find(|(known, _)| known == barrier) {
            Some((_, both)) => *both = [both[0] + announced, both[1] + moved],
            None => self.0.push((barrier.clone(), [announced, moved])),
        }
    }
}

#[cfg(test)]
mod tests {
    use tilewright_diag::Span;
    use tilewright_expr::{Expr, Var};
    use tilewright_layout::DType;
    use tilewright_layout::descriptor::{Boxes, TensorDimension};

    use crate::arena::Handle;
    use crate::counter::Counter;
    use crate::target::Target;
    use crate::thread::inst::Inst;
    use crate::thread::program::{Call, Memory, MemorySpace, Program, Stmt, Unroll};
    use crate::thread::ring::{EngineWay, Reach, TensorCopy, TensorMapRecipe, TensorPart};
    use crate::thread::verify::verify;

    use super::Place;

    fn memory(name: &str, dtype: DType, space: MemorySpace, alignment: i64) -> Memory {
        Memory::new(name, dtype, 4096, (space, alignment), Span::here())
    }

    /// The findings for a copy of 16 rows of 64 halves, of which `bytes` are announced, after a change.
    fn said(bytes: i64, is_elected: bool, change: impl FnOnce(&mut TensorCopy, Handle<Memory>)) -> Vec<String> {
        said_of(bytes, is_elected, change, Stmt::from)
    }

    /// The findings for what `copied` makes of the copy.
    fn said_of(
        bytes: i64,
        is_elected: bool,
        change: impl FnOnce(&mut TensorCopy, Handle<Memory>),
        copied: impl FnOnce(TensorCopy) -> Stmt,
    ) -> Vec<String> {
        said_in(true, |mut copy, [_, tile], barrier| {
            change(&mut copy, tile);
            let arguments = vec![Expr::constant(bytes)];
            let expect = Call { memory: vec![barrier], arguments, ..Call::plain(Inst::BarrierExpect) };
            let body = vec![Stmt::from(expect), copied(copy)];
            if is_elected { vec![Stmt::Elect { body }] } else { body }
        })
    }

    /// The findings for statements that are made of a copy from a tensor, the memories of tensor and tile, and its barrier.
    fn said_in(read_only: bool, body: impl FnOnce(TensorCopy, [Handle<Memory>; 2], Place) -> Vec<Stmt>) -> Vec<String> {
        let mut program = Program::new("k", Target::Sm100a, 64);
        let space = MemorySpace::Global { read_only, may_alias: false };
        let tensor = program.memories.push(memory("a", DType::F16, space, 32));
        let tile = program.memories.push(memory("tile", DType::F16, MemorySpace::Shared, 1024));
        let full = program.memories.push(memory("full", DType::U64, MemorySpace::Shared, 128));
        let dimensions = [TensorDimension::known(512, 64), TensorDimension::known(64, 1)];
        let layout = "swizzle(M=3,B=3,S=3) o S[(16,64):(64,1)]".parse().unwrap();
        let boxes = Boxes::of(&dimensions, &[16, 64], &layout, 16).unwrap();
        let [extents, strides] = [[512, 64], [64, 1]].map(|numbers| numbers.map(Expr::constant).to_vec());
        let map = TensorMapRecipe {
            name: "a_map".to_string(),
            tensor,
            start: 0,
            extents,
            strides,
            boxes,
            elements: DType::F16,
        };
        let map = program.maps.push(map);
        let barrier = (full, Expr::constant(2));
        let part = TensorPart::Box { map, coordinates: [0, 16].map(Expr::constant).to_vec() };
        let (shared, way) =
            ((tile, Expr::constant(0)), EngineWay::ToShared { full: barrier.clone(), reach: Reach::Own });
        program.body = body(TensorCopy { part, shared, bytes: 2048, way }, [tensor, tile], barrier);
        verify(program).map_or_else(|found| found.iter().map(ToString::to_string).collect(), |_| Vec::new())
    }

    #[test]
    fn a_right_copy_passes() {
        assert_eq!(said(2048, true, |_, _| {}), Vec::<String>::new());
    }

    #[test]
    fn announced_bytes_are_those_that_come() {
        let expected = "internal error[V0321]: `full[2]` expects 1024 bytes, and copies bring 2048";
        assert_eq!(said(1024, true, |_, _| {}), [expected]);
    }

    #[test]
    fn copies_in_a_loop_come_as_often_as_it_runs() {
        let looped = |times: i64| {
            let counter = Counter::of(Var::new("i", 0, times - 1));
            said_of(
                4 * 2048,
                true,
                |_, _| {},
                |copy| Stmt::For { counter, unroll: Unroll::Auto, body: vec![Stmt::from(copy)] },
            )
        };
        assert_eq!(looped(4), Vec::<String>::new());
        assert_eq!(looped(3), ["internal error[V0321]: `full[2]` expects 8192 bytes, and copies bring 6144"]);
    }

    #[test]
    fn one_elected_thread_copies() {
        assert_eq!(
            said(2048, false, |_, _| {}),
            ["internal error[V0321]: more than one thread starts a copy by `a_map`"]
        );
    }

    #[test]
    fn a_copy_has_the_operands_of_its_map() {
        let expected = "internal error[V0321]: a copy by `a_map` has operands that it does not accept";
        let short = said(2048, true, |copy, _| {
            let TensorPart::Box { coordinates, .. } = &mut copy.part else { return };
            coordinates.truncate(1);
        });
        let unaligned = said(2048, true, |copy, tile| copy.shared = (tile, Expr::constant(32)));
        assert_eq!([short, unaligned], [[expected], [expected]]);
        let elsewhere = said(2048, true, |copy, tile| {
            copy.way = EngineWay::ToShared { full: (tile, Expr::constant(2)), reach: Reach::Own }
        });
        assert!(elsewhere.contains(&expected.to_string()), "{elsewhere:?}");
    }

    /// The findings for the copy in the other direction, if one thread also executes `more` after it.
    fn said_of_store(read_only: bool, more: Option<Inst>) -> Vec<String> {
        said_in(read_only, |copy, _, _| {
            let copy = TensorCopy { way: EngineWay::ToTensor { combined: None }, ..copy };
            let more = more.map(|inst| Stmt::from(Call::plain(inst)));
            vec![Stmt::Elect { body: std::iter::once(Stmt::from(copy)).chain(more).collect() }]
        })
    }

    #[test]
    fn a_copy_to_a_tensor_is_committed() {
        assert_eq!(said_of_store(false, Some(Inst::BulkCommit)), Vec::<String>::new());
        let expected = "internal error[V0321]: a copy by `a_map` belongs to no group";
        assert_eq!(said_of_store(false, None), [expected]);
        assert_eq!(said_of_store(false, Some(Inst::CopyAsyncCommit)), [expected]);
    }

    /// The findings for a copy of so many bytes of `a` from an element on, to another one of the tile.
    fn said_of_run(bytes: i64, [first, to]: [i64; 2]) -> Vec<String> {
        said_in(false, |_, [tensor, tile], _| {
            let part = TensorPart::Run { first: (tensor, Expr::constant(first)) };
            let way = EngineWay::ToTensor { combined: None };
            let copy = TensorCopy { part, shared: (tile, Expr::constant(to)), bytes, way };
            vec![Stmt::Elect { body: vec![Stmt::from(copy), Stmt::from(Call::plain(Inst::BulkCommit))] }]
        })
    }

    #[test]
    fn a_run_is_whole_units_from_a_multiple_of_them_on() {
        assert_eq!(said_of_run(2048, [8, 16]), Vec::<String>::new());
        let expected = "internal error[V0321]: a copy of a run of `a` has operands that it does not accept";
        for (bytes, places) in [(2048, [4, 0]), (2048, [0, 4]), (2056, [0, 0])] {
            assert_eq!(said_of_run(bytes, places), [expected], "{bytes} {places:?}");
        }
    }

    #[test]
    fn a_copy_goes_to_a_tensor_that_the_kernel_writes() {
        let expected = "internal error[V0321]: a copy by `a_map` has operands that it does not accept";
        assert_eq!(said_of_store(true, Some(Inst::BulkCommit)), [expected]);
    }

    #[test]
    fn a_response_is_announced() {
        let said = |bytes: i64| {
            said_in(true, |_, [_, tile], barrier| {
                let arguments = vec![Expr::constant(bytes)];
                let memory = vec![barrier.clone()];
                let expect = Call { memory, arguments, ..Call::plain(Inst::BarrierExpect) };
                let memory = vec![(tile, Expr::constant(0)), barrier];
                let claim = Call { memory, ..Call::plain(Inst::ClaimTile) };
                vec![Stmt::Elect { body: vec![Stmt::from(expect), Stmt::from(claim)] }]
            })
        };
        assert_eq!(said(16), Vec::<String>::new());
        assert_eq!(said(8), ["internal error[V0321]: `full[2]` expects 8 bytes, and copies bring 16"]);
    }
}
