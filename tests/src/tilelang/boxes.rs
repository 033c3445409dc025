//! Boxes of coordinates, row-major.

/// The number of coordinates.
pub(crate) fn size(shape: &[i64]) -> i64 {
    shape.iter().fold(1, |size: i64, extent| size.saturating_mul((*extent).max(0)))
}

/// All coordinates, row-major.
pub(crate) fn points(shape: &[i64]) -> impl Iterator<Item = Vec<i64>> {
    (0..size(shape)).map(|flat| point(flat, shape))
}

/// The coordinate at a row-major position, which must be in the box.
pub(crate) fn point(flat: i64, shape: &[i64]) -> Vec<i64> {
    let mut rest = flat;
    let mut coordinate = vec![0; shape.len()];
    for (at, extent) in coordinate.iter_mut().zip(shape).rev() {
        let extent = (*extent).max(1);
        *at = rest % extent;
        rest /= extent;
    }
    coordinate
}

/// The row-major position of a coordinate; `None` outside of the box.
pub(crate) fn position(coordinate: &[i64], shape: &[i64]) -> Option<usize> {
    if coordinate.len() != shape.len() {
        return None;
    }
    let step = |flat: i64, (at, extent): (&i64, &i64)| {
        (0..*extent).contains(at).then(|| flat.checked_mul(*extent)?.checked_add(*at)).flatten()
    };
    coordinate.iter().zip(shape).try_fold(0, step).and_then(|flat| usize::try_from(flat).ok())
}
