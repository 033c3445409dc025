//! Strategies of proptest that generate and shrink sketches. Simple alternatives come first.

use proptest::array::uniform2;
use proptest::bool::weighted;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::any;
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::strategy::{Just, Strategy};

use super::super::expr::ValueOp;
use super::super::program::ReduceKind;
use super::sketch::{
    Around, Arrangement, Combine, Cond, CopySketch, Extra, Form, FragmentSketch, Kind, NestSketch, Order, Part,
    Pattern, Sketch, Source, Start, Step, Target, Term, Way,
};

/// The maximum number of elements of a fragment.
const MOST_ELEMENTS: i64 = 256;
/// The maximum number of steps.
const MOST_STEPS: usize = 4;

const THREADS: &[i64] = &[32, 32, 64, 64, 128, 96, 40];
const POWERS: &[i64] = &[4, 8, 16, 32, 64];
const LONG: &[i64] = &[96, 100, 130, 256];
const KINDS: &[Kind] = &[Kind::F32, Kind::F32, Kind::F32, Kind::I32, Kind::F16, Kind::I8];
const STARTS: &[Start] =
    &[Start::Fill, Start::Fill, Start::Load, Start::Load, Start::Load, Start::Turned, Start::Staged];
const TARGETS: &[Target] = &[Target::Fragment, Target::Fragment, Target::Global];
const ORDERS: &[Order] = &[Order::Same, Order::Same, Order::Turned, Order::First, Order::Last];
const WAYS: &[Way] = &[Way::In, Way::Out, Way::Across];
const WIDTHS: &[i64] = &[1, 2, 4, 8];
const COMPARISONS: &[ValueOp] = &[ValueOp::Lt, ValueOp::Ge, ValueOp::Eq, ValueOp::Ne, ValueOp::Le, ValueOp::Gt];
const REDUCTIONS: &[ReduceKind] =
    &[ReduceKind::Sum, ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::AbsMax, ReduceKind::AbsSum];
const ARRANGEMENTS: &[Arrangement] = &[
    Arrangement::InOrder(1),
    Arrangement::InOrder(4),
    Arrangement::Whole,
    Arrangement::Twice,
    Arrangement::OneSlot,
    Arrangement::Outside,
];

/// Any sketch.
pub(crate) fn sketches() -> impl Strategy<Value = Sketch> {
    let laid_out = option::weighted(0.2, (0usize..3, select(ARRANGEMENTS)));
    let whole = (select(THREADS), vec(fragment(), 1..=3), vec(step(), 0..=MOST_STEPS), around(), laid_out);
    whole.prop_map(|(threads, fragments, steps, around, laid_out)| Sketch {
        threads,
        fragments,
        steps,
        around,
        laid_out,
    })
}

fn extent() -> impl Strategy<Value = i64> {
    prop_oneof![3 => 1i64..=8, 3 => select(POWERS), 2 => 1i64..=24, 1 => 1i64..=64]
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    let tile = |(rows, columns): (i64, i64)| vec![rows, columns.min(MOST_ELEMENTS / rows)];
    prop_oneof![
        6 => extent().prop_map(|extent| vec![extent]),
        1 => select(LONG).prop_map(|extent| vec![extent]),
        10 => (extent(), extent()).prop_map(tile),
    ]
}

fn fragment() -> impl Strategy<Value = FragmentSketch> {
    let parts = (shape(), select(KINDS), select(STARTS), any::<bool>());
    parts.prop_map(|(shape, kind, start, is_stored)| FragmentSketch { shape, kind, start, is_stored })
}

fn around() -> impl Strategy<Value = Option<Around>> {
    let from = option::weighted(0.2, 0i64..3);
    let parts = (0..MOST_STEPS, 1..=MOST_STEPS, 1i64..=4, weighted(0.3), from);
    let around =
        parts.prop_map(|(first, steps, extent, is_unrolled, from)| Around { first, steps, extent, is_unrolled, from });
    option::weighted(0.25, around)
}

fn number() -> impl Strategy<Value = usize> {
    0usize..4
}

fn step() -> impl Strategy<Value = Step> {
    let fill = (number(), part(), -2i64..3).prop_map(|(of, part, value)| Step::Fill { of, part, value });
    let reduce = (number(), 0usize..2, select(REDUCTIONS), weighted(0.7), weighted(0.2));
    let reduce = reduce.prop_map(|(src, dim, kind, clear, keeps)| Step::Reduce { src, dim, kind, clear, keeps });
    let stage = (number(), uniform2(read(0.3))).prop_map(|(of, back)| Step::Stage { of, back });
    let view = (number(), weighted(0.3), any::<bool>(), any::<bool>());
    let view = view.prop_map(|(of, halves, is_flat, writes)| Step::View { of, halves, is_flat, writes });
    prop_oneof![
        1 => fill,
        3 => copy().prop_map(Step::Copy),
        8 => nest().prop_map(Step::Nest),
        3 => reduce,
        1 => stage,
        1 => view,
    ]
}

/// A number that is usually 0.
fn rarely(most: i64) -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(0i64), 1 => 0..=most]
}

fn part() -> impl Strategy<Value = Part> {
    (uniform2(rarely(12)), uniform2(rarely(9))).prop_map(|(cut, at)| Part { cut, at })
}

fn copy() -> impl Strategy<Value = CopySketch> {
    let place = (part(), rarely(5), prop_oneof![4 => Just(0i64), 2 => 1i64..4, 1 => Just(-1i64)]);
    let told = (select(WAYS), number(), number(), place, option::weighted(0.15, select(KINDS)), weighted(0.5));
    told.prop_map(|(way, of, other, (part, offset, tail), kind, is_moving)| CopySketch {
        way,
        of,
        other,
        part,
        offset,
        tail,
        kind,
        is_moving,
    })
}

/// Forms of indices in reads, used occasionally.
const FORMS: &[Form] = &[
    Form::Fixed,
    Form::Shifted,
    Form::Reversed,
    Form::Rotated,
    Form::Halved,
    Form::Wrapped,
    Form::Doubled,
    Form::Diagonal,
    Form::Rolling,
    Form::Inner,
];
/// Forms of indices in writes with which most iterations write distinct elements.
const APART: &[Form] = &[Form::Shifted, Form::Shifted, Form::Reversed, Form::Rotated, Form::Rolling, Form::Diagonal];
/// Forms with which most iterations write the same elements.
const MEETING: &[Form] = &[Form::Fixed, Form::Halved, Form::Wrapped, Form::Doubled, Form::Inner];

fn read(turned: f64) -> impl Strategy<Value = Pattern> {
    pattern(prop_oneof![1 => Just(Form::Same), 1 => select(FORMS)], turned)
}

fn written() -> impl Strategy<Value = Pattern> {
    pattern(prop_oneof![20 => Just(Form::Same), 5 => select(APART), 1 => select(MEETING)], 0.02)
}

fn pattern(form: impl Strategy<Value = Form>, turned: f64) -> impl Strategy<Value = Pattern> {
    (form, 0i64..8, weighted(turned)).prop_map(|(form, by, is_turned)| Pattern { form, by, is_turned })
}

fn term() -> impl Strategy<Value = Term> {
    let source = prop_oneof![
        1 => (-2i64..3).prop_map(Source::Constant),
        1 => Just(Source::Variable),
        3 => (select(KINDS), select(ORDERS)).prop_map(|(kind, order)| Source::Global(kind, order)),
        8 => number().prop_map(Source::Fragment),
    ];
    (source, uniform2(read(0.2))).prop_map(|(source, patterns)| Term { source, patterns })
}

fn combine() -> impl Strategy<Value = Combine> {
    prop_oneof![
        6 => Just(Combine::Move),
        1 => Just(Combine::Twice),
        4 => Just(Combine::Sum),
        1 => Just(Combine::Difference),
        1 => Just(Combine::Product),
        2 => Just(Combine::Greatest),
        1 => Just(Combine::Choice),
        1 => Just(Combine::Exp),
    ]
}

fn cond() -> impl Strategy<Value = Cond> {
    let told = (weighted(0.3), select(COMPARISONS), 0i64..8, weighted(0.5), weighted(0.4));
    told.prop_map(|(is_turned, op, by, by_round, has_otherwise)| Cond { is_turned, op, by, by_round, has_otherwise })
}

fn nest() -> impl Strategy<Value = NestSketch> {
    let extra = (1i64..=8, any::<bool>()).prop_map(|(extent, is_first)| Extra { extent, is_first });
    let loops = (select(TARGETS), number(), uniform2(rarely(4)), weighted(0.2), option::weighted(0.1, extra));
    let store = (uniform2(written()), uniform2(term()), combine(), option::weighted(0.2, cond()));
    let inner = prop_oneof![6 => Just(1i64), 1 => 2i64..=4];
    let rest = (inner, weighted(0.15), option::weighted(0.1, select(WIDTHS)), weighted(0.04));
    (loops, store, rest).prop_map(|(loops, (store, terms, combine, cond), rest)| {
        let (target, of, cut, is_swapped, extra) = loops;
        let (inner, is_named, width, is_laid_out) = rest;
        NestSketch {
            target,
            of,
            cut,
            is_swapped,
            extra,
            store,
            terms,
            combine,
            cond,
            inner,
            is_named,
            width,
            is_laid_out,
        }
    })
}
