//! Properties against brute force: every operation is an equation on `apply`.

use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;
use tilewright_expr::{Expr, Var};
use tilewright_layout::axis::{LANEID, M};
use tilewright_layout::{Axis, Iter, Layout, TableLayout, TileLayout, refine_together};

fn iter() -> impl Strategy<Value = Iter> {
    let axis = prop_oneof![3 => Just(M), 1 => Just(LANEID), 1 => Just(Axis::named("mine"))];
    (1i64..6, -3i64..20, axis).prop_map(|(extent, stride, axis)| Iter { extent, stride, axis })
}

fn layout() -> impl Strategy<Value = TileLayout> {
    let replica = prop::collection::vec(iter(), 0..2);
    let offset = prop::collection::vec((prop_oneof![Just(M), Just(LANEID)], -9i64..40), 0..2);
    (prop::collection::vec(iter(), 1..5), replica, offset)
        .prop_map(|(shard, replica, offset)| TileLayout::new(shard, replica, offset).expect("small numbers"))
}

/// The set of places of every element, in order, without positions that are 0.
fn places(layout: &TileLayout) -> Vec<Vec<Vec<(String, i64)>>> {
    (0..layout.size())
        .map(|flat| {
            let mut set: Vec<Vec<(String, i64)>> = layout
                .apply(flat)
                .expect("inside")
                .into_iter()
                .map(|place| place.into_iter().filter(|(_, v)| *v != 0).map(|(a, v)| (a.to_string(), v)).collect())
                .collect();
            set.sort();
            set.dedup();
            set
        })
        .collect()
}

/// A shape of the layout's size, made from its extents.
fn shape_of(layout: &TileLayout, merge: bool) -> Vec<i64> {
    let extents: Vec<i64> = layout.shard().iter().map(|iter| iter.extent).collect();
    if merge { vec![extents.iter().product()] } else { extents }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn parse_of_print_is_the_same_layout(layout in layout()) {
        prop_assert_eq!(layout.to_string().parse::<TileLayout>(), Ok(layout));
    }

    #[test]
    fn canonical_form_keeps_every_place_and_is_stable(layout in layout()) {
        let canonical = layout.canonicalize();
        prop_assert_eq!(places(&layout), places(&canonical));
        prop_assert_eq!(canonical.canonicalize(), canonical);
    }

    #[test]
    fn grouping_keeps_every_place(layout in layout(), merge: bool) {
        let shape = shape_of(&layout, merge);
        let grouped = layout.group(&shape).expect("its own extents group");
        prop_assert_eq!(places(&layout), places(&grouped.layout));
        for (dimension, extent) in shape.iter().enumerate() {
            prop_assert_eq!(grouped.dimension(dimension).iter().map(|iter| iter.extent).product::<i64>(), *extent);
        }
    }

    #[test]
    fn injectivity_is_what_enumeration_says(layout in layout()) {
        let all: Vec<_> = places(&layout).into_iter().flatten().collect();
        let distinct: BTreeSet<_> = all.iter().cloned().collect();
        prop_assert_eq!(layout.is_injective(), Ok(all.len() == distinct.len()));
    }

    #[test]
    fn the_elements_of_a_collision_share_a_place(layout in layout()) {
        if let Some((one, other)) = layout.collision().expect("small") {
            let all = places(&layout);
            prop_assert!(one < other);
            prop_assert!(all[one as usize].iter().any(|place| all[other as usize].contains(place)));
        }
    }

    #[test]
    fn spans_are_one_more_than_the_farthest_place(layout in layout()) {
        for axis in layout.axes() {
            let all = (0..layout.size()).flat_map(|flat| layout.apply(flat).expect("inside"));
            let farthest = all.map(|place| place[&axis]).max().unwrap_or(0);
            prop_assert_eq!(layout.span_on(&axis), farthest + 1);
        }
    }

    /// A slice has the places of its region, and is refused only where no mixed-radix layout has them.
    #[test]
    fn a_slice_has_the_places_of_its_region(layout in layout(), cut in (0i64..40, 1i64..40)) {
        let size = layout.size();
        let begin = cut.0 % size;
        let region: Range<i64> = begin..(begin + cut.1).min(size);
        let sliced = layout.slice(&[size], std::slice::from_ref(&region));
        let expected = &places(&layout)[region.start as usize..region.end as usize];
        match sliced {
            Ok(sliced) => prop_assert_eq!(places(&sliced), expected.to_vec()),
            Err(error) => {
                prop_assert_eq!(error.code(), "L0109");
                prop_assert!(!one_stride_describes(&layout, &region), "{} {:?}", layout, region);
            }
        }
    }

    #[test]
    fn a_placed_tile_is_the_slice_at_every_start(layout in layout(), extent in 1i64..9, at in 0i64..9) {
        let memory = layout.shard_only().renamed(&LANEID, &M).and_then(|l| l.renamed(&Axis::named("mine"), &M)).expect("small");
        let size = memory.size();
        let (extent, last) = (extent.min(size), (size - extent.min(size)).min(8));
        let start = Var::new("start", 0, last);
        if let Ok(placed) = Layout::Tile(memory.clone()).place(&[size], &[Expr::var(&start)], &[extent]) {
            let value = at.min(last);
            let from = placed.start.eval(&|_| Some(value)).expect("a start");
            let seen: Vec<i64> = placed.positions().iter().map(|p| p + from).collect();
            prop_assert_eq!(seen, memory.positions(&M)[value as usize..(value + extent) as usize].to_vec());
        }
    }

    /// Every row of the table repeats the first one, shifted, except for the last element, which may be elsewhere.
    #[test]
    fn a_placed_tile_of_a_table_is_the_slice_at_every_start(
        row in prop::collection::vec(-20i64..20, 4),
        step in -30i64..30,
        bend in 0i64..2,
        rows in 1i64..4,
        columns in 1i64..5,
    ) {
        let mut positions: Vec<i64> = (0..12usize).map(|x| row[x % 4] + x as i64 / 4 * step).collect();
        positions[11] += bend;
        let table = Layout::Table(TableLayout::of_positions(&M, &positions).expect("small"));
        let start = Expr::var(&Var::new("start", 0, 3 - rows));
        let placed = table.place(&[3, 4], &[start, Expr::constant(0)], &[rows, columns]);
        prop_assert_eq!(placed.is_ok(), bend == 0 || columns < 4 || rows == 3);
        if let Ok(placed) = placed {
            for value in 0..=3 - rows {
                let from = placed.start.eval(&|_| Some(value)).expect("a start");
                let seen: Vec<i64> = placed.positions().iter().map(|p| p + from).collect();
                let element = |x: i64| (value + x / columns) * 4 + x % columns;
                let expected: Vec<i64> = (0..rows * columns).map(|x| positions[element(x) as usize]).collect();
                prop_assert_eq!(seen, expected);
            }
        }
    }

    #[test]
    fn the_index_expression_is_the_position(layout in layout()) {
        let element = Var::new("element", 0, layout.size() - 1);
        for axis in layout.axes() {
            let expr = layout.position_expr(&Expr::var(&element), &axis);
            for flat in 0..layout.size() {
                prop_assert_eq!(expr.eval(&|_| Some(flat)), Ok(layout.position(flat, &axis)));
            }
        }
    }

    #[test]
    fn layouts_refined_together_have_one_extent_each_and_keep_their_places(a in layout(), stride in 1i64..9) {
        let b = TileLayout::new(vec![Iter::memory(a.size(), stride)], Vec::new(), []).expect("one iter");
        let both = refine_together(&[&a, &b]).expect("one iter nests with all");
        let extents = |l: &TileLayout| l.shard().iter().map(|iter| iter.extent).collect::<Vec<_>>();
        prop_assert_eq!(extents(&both[0]), extents(&both[1]));
        prop_assert_eq!(places(&both[0]), places(&a));
        prop_assert_eq!(places(&both[1]), places(&b));
    }
}

/// Whether the region is a plain arithmetic sequence on one axis, which is always affine.
fn one_stride_describes(layout: &TileLayout, region: &Range<i64>) -> bool {
    let axes: Vec<Axis> = layout.axes().into_iter().collect();
    let steps = |axis: &Axis| {
        let positions: Vec<i64> = region.clone().map(|flat| layout.position(flat, axis)).collect();
        positions.windows(2).map(|pair| pair[1] - pair[0]).collect::<BTreeSet<_>>()
    };
    let moving = axes.iter().filter(|axis| steps(axis) != BTreeSet::from([0])).count();
    moving <= 1 && axes.iter().all(|axis| steps(axis).len() <= 1)
}
