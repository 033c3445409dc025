//! Parsing, printing, looking up elements, and the normal form.

use tilewright::expr::{Expr, Var};
use tilewright::layout::axis::M;
use tilewright::layout::{Axis, TileLayout};

use crate::fuzz::brute::{Place, Places, agree, axes_of, digits, element_at, first_places, keeps_places, rows};
use crate::fuzz::generate;
use crate::fuzz::judge::{Outcome, accept, equal, error_text, judge};
use crate::fuzz::vary::{perturbed, respelled};
use crate::rng::Rng;

/// The printed text parses to the same layout, also if the axis of linear memory is omitted.
pub(crate) fn parse_print(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let mut text = layout.to_string();
    if rng.percent(50) {
        text = text.replace("@m,", ",").replace("@m)", ")").replace("@m]", "]");
    }
    if rng.percent(30) {
        text = text.replace(',', " , ").replace(':', " : ");
    }
    judge(&|| format!("parse `{text}`"), text.parse::<TileLayout>(), true, |read| equal(&read, &layout))
}

/// `L(x) = { D(x) + r + O }`, sorted, and only for elements of the layout.
pub(crate) fn apply(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let size = layout.size();
    let element = if rng.percent(10) { *rng.pick(&[-1, size, size + 7]) } else { rng.within(0..=size - 1) };
    let inside = (0..size).contains(&element);
    let axes = axes_of(&[&layout]);
    judge(&|| format!("`{layout}`.apply({element})"), layout.apply(element), inside, |coords| {
        equal(&rows(&coords, &axes), &Places::of(&layout, &axes).set(element as usize))
    })
}

/// A coordinate in a shape denotes its row-major element, and so do the digits of the grouped iters.
pub(crate) fn apply_in(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let mut shape = generate::any_shape(rng, &layout);
    let mut coordinate = digits(rng.below(layout.size() as usize), &shape);
    let legal = !rng.percent(15);
    if !legal {
        match rng.below(3) {
            0 => coordinate.push(0),
            1 => coordinate[0] = shape[0],
            _ => shape[0] += 1,
        }
    }
    let axes = axes_of(&[&layout]);
    let call = || format!("`{layout}`.apply_in({coordinate:?}, {shape:?})");
    judge(&call, layout.apply_in(&coordinate, &shape), legal, |coords| {
        let expected = Places::of(&layout, &axes).set(element_at(&coordinate, &shape));
        equal(&rows(&coords, &axes), &expected)?;
        let iters = layout.group(&shape).map_or_else(|_| layout.clone(), |grouped| grouped.layout);
        let digits = layout.digits_in(&coordinate, &shape).map_err(error_text)?;
        equal(&rows(&iters.apply_digits(&digits).map_err(error_text)?, &axes), &expected)
    })
}

/// Positions on one axis: all at once, individually, and as an expression of the element.
pub(crate) fn positions(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let axis = generate::axis_of(rng, &layout);
    let element = rng.below(layout.size() as usize);
    let var = Var::new("x", 0, layout.size() - 1);
    let call = || format!("`{layout}`.positions({axis}), element {element}");
    let check = || {
        let places = first_places(&layout, std::slice::from_ref(&axis));
        let expected: Vec<i64> = places.iter().map(|place| place[0]).collect();
        equal(&layout.positions(&axis), &expected)?;
        equal(&layout.position(element as i64, &axis), &expected[element])?;
        let expr = layout.position_expr(&Expr::var(&var), &axis);
        equal(&expr.eval(&|_| Some(element as i64)), &Ok(expected[element]))
    };
    accept(&call, check())
}

/// The normal form preserves all places, is idempotent, and does not depend on how the map was written.
pub(crate) fn canonicalize(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let other = respelled(rng, &layout);
    let call = || format!("`{layout}`.canonicalize(), also written `{other}`");
    let check = || {
        let canonical = layout.canonicalize();
        keeps_places(&canonical, &layout)?;
        equal(&canonical.canonicalize(), &canonical)?;
        keeps_places(&other, &layout)?;
        equal(&other.canonicalize(), &canonical)
    };
    accept(&call, check())
}

/// Two small layouts have the same normal form if and only if every element has the same places.
pub(crate) fn canonical_pair(rng: &mut Rng) -> Outcome {
    let one = generate::layout_of(rng, 12);
    let other = match rng.below(3) {
        0 => generate::of_size(rng, one.size()),
        1 => perturbed(rng, &one),
        _ => {
            let other = respelled(rng, &one);
            perturbed(rng, &other)
        }
    };
    let axes = axes_of(&[&one, &other]);
    let alike = Places::of(&one, &axes) == Places::of(&other, &axes);
    let call = || format!("`{one}`.canonicalize() == `{other}`.canonicalize()");
    accept(&call, equal(&(one.canonicalize() == other.canonicalize()), &alike))
}

/// Renaming an axis moves its positions to the other axis; the result is an ordinary layout.
pub(crate) fn renamed(rng: &mut Rng) -> Outcome {
    let layout = generate::layout(rng);
    let (from, to) = (generate::axis_of(rng, &layout), generate::axis_of(rng, &layout));
    let got = layout.renamed(&from, &to).map_err(error_text)?;
    let mut axes = axes_of(&[&layout, &got]);
    axes.extend([from.clone(), to.clone()]);
    axes.sort();
    axes.dedup();
    let column = |wanted: &Axis| axes.iter().position(|axis| axis == wanted).unwrap_or(0);
    let (source, target) = (column(&from), column(&to));
    let move_over = |place: &[i64]| {
        let mut moved = place.to_vec();
        moved[source] = 0;
        moved[target] += place[source];
        moved
    };
    let call = || format!("`{layout}`.renamed({from}, {to})");
    let check = || {
        agree(&Places::of(&got, &axes), &Places::of(&layout, &axes).mapped(move_over))?;
        equal(&got.to_string().parse::<TileLayout>(), &Ok(got.clone()))
    };
    accept(&call, check())
}

/// A layout is trivial if element `x` is at position `x` of a single memory axis and no replicas are written.
pub(crate) fn is_trivial(rng: &mut Rng) -> Outcome {
    let mut layout = generate::layout(rng);
    if rng.percent(50) {
        let (shape, axis) = (generate::factors(rng, layout.size()), generate::axis(rng));
        let dense = TileLayout::row_major(&shape).and_then(|dense| dense.renamed(&M, &axis)).map_err(error_text)?;
        layout = respelled(rng, &dense);
    }
    let axes = axes_of(&[&layout]);
    let places = Places::of(&layout, &axes);
    let counts_on = |column: usize| {
        let expected = |element: usize, at: usize| if at == column { element as i64 } else { 0 };
        let counts = |(element, place): (usize, &Place)| (0..axes.len()).all(|at| place[at] == expected(element, at));
        axes[column].is_memory() && places.base.iter().enumerate().all(counts)
    };
    let at_origin = layout.size() == 1 && places.base[0].iter().all(|position| *position == 0);
    let trivial = layout.replica().is_empty() && (at_origin || (0..axes.len()).any(counts_on));
    let call = || format!("`{layout}`.is_trivial()");
    accept(&call, equal(&layout.is_trivial(), &trivial))
}
