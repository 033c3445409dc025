//! The features of random programs, for a histogram.

use std::collections::BTreeSet;

use super::sketch::{
    Arrangement, Combine, CopySketch, Form, Kind, NestSketch, Pattern, Sketch, Source, Start, Step, Target, Term, Way,
};

/// The features of a program.
pub(crate) fn features(sketch: &Sketch) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    if sketch.threads % 32 != 0 {
        found.insert("threads: partial warp");
    }
    for fragment in &sketch.fragments {
        found.insert(if fragment.shape.len() == 1 { "fragment: one dimension" } else { "fragment: two dimensions" });
        found.insert(kind(fragment.kind));
        found.insert(match fragment.start {
            Start::Fill => "start: filled",
            Start::Load => "start: copied",
            Start::Turned => "start: transposed",
            Start::Staged => "start: through shared memory",
        });
        let is_odd = |extent: &i64| extent.count_ones() != 1;
        if fragment.shape.iter().any(is_odd) {
            found.insert("fragment: not a power of two");
        }
    }
    for of in &sketch.steps {
        step(of, &mut found);
    }
    if let Some(around) = sketch.around.filter(|around| around.first < sketch.steps.len()) {
        found.insert("enclosing loop");
        if around.from.is_some() {
            found.insert("enclosing loop: an op from some iteration on");
        }
    }
    if let Some((_, arrangement)) = sketch.laid_out {
        found.insert(match arrangement {
            Arrangement::InOrder(_) => "laid out: in order",
            Arrangement::Whole => "laid out: whole",
            Arrangement::Twice => "laid out: twice",
            Arrangement::Outside => "laid out: out of the block",
            Arrangement::OneSlot => "laid out: in one slot",
        });
    }
    found
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::F32 => "fragment: f32",
        Kind::F16 => "fragment: f16",
        Kind::I32 => "fragment: i32",
        Kind::I8 => "fragment: i8",
    }
}

fn step(step: &Step, found: &mut BTreeSet<&'static str>) {
    match step {
        Step::Nest(of) => nest(of, found),
        Step::Copy(of) => copy(of, found),
        Step::Reduce { dim, clear, .. } => {
            found.insert(if *dim == 0 { "reduction: first dimension" } else { "reduction: last dimension" });
            if !clear {
                found.insert("reduction: accumulating");
            }
        }
        Step::Fill { .. } => {
            found.insert("fill");
        }
        Step::Stage { back, .. } => {
            found.insert("round trip through shared memory");
            back.iter().for_each(|pattern| read(pattern, found));
        }
        Step::View { halves, .. } => {
            found.insert(if *halves { "view: narrower" } else { "view: same width" });
        }
    }
}

fn copy(of: &CopySketch, found: &mut BTreeSet<&'static str>) {
    found.insert(match of.way {
        Way::In => "copy: from memory",
        Way::Out => "copy: to memory",
        Way::Across => "copy: between fragments",
    });
    if of.part.cut != [0; 2] {
        found.insert("copy: partial");
    }
    if of.kind.is_some() {
        found.insert("copy: converts");
    }
    if of.tail < 0 {
        found.insert("copy: past an edge");
    }
}

fn nest(of: &NestSketch, found: &mut BTreeSet<&'static str>) {
    found.insert(match of.target {
        Target::Fragment => "nest: to a fragment",
        Target::Global => "nest: to memory",
    });
    let flags = [
        (of.cut != [0; 2], "nest: partial"),
        (of.is_swapped, "nest: loops swapped"),
        (of.extra.is_some(), "nest: additional loop"),
        (of.cond.is_some(), "nest: condition"),
        (of.cond.is_some_and(|cond| cond.by_round), "nest: condition on the enclosing loop"),
        (of.inner > 1, "nest: inner loop"),
        (of.is_named, "nest: named index"),
        (of.width.is_some(), "nest: width"),
        (of.is_laid_out, "laid out: loop"),
    ];
    found.extend(flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name));
    if of.store.iter().any(|pattern| pattern.form != Form::Same) {
        found.insert("nest: written elsewhere");
    }
    let is_pair = match of.combine {
        Combine::Move | Combine::Twice => false,
        Combine::Exp => {
            found.insert("value: exp");
            false
        }
        Combine::Choice => {
            found.insert("value: select");
            true
        }
        Combine::Sum | Combine::Difference | Combine::Product | Combine::Greatest => true,
    };
    for Term { source, patterns } in of.terms.iter().take(1 + usize::from(is_pair)) {
        match source {
            Source::Fragment(_) | Source::Global(..) => patterns.iter().for_each(|pattern| read(pattern, found)),
            Source::Variable | Source::Constant(_) => {}
        }
    }
}

fn read(pattern: &Pattern, found: &mut BTreeSet<&'static str>) {
    found.insert(match pattern.form {
        Form::Same => "index: plain",
        Form::Reversed => "index: reversed",
        Form::Shifted => "index: shifted",
        Form::Rotated => "index: rotated",
        Form::Rolling => "index: rotated by the enclosing loop",
        Form::Halved => "index: halved",
        Form::Doubled => "index: doubled",
        Form::Wrapped => "index: remainder",
        Form::Fixed => "index: constant",
        Form::Diagonal => "index: diagonal",
        Form::Inner => "index: rotated by the inner loop",
    });
    if pattern.is_turned {
        found.insert("index: other loop");
    }
}
