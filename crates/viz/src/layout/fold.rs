//! Folding: of items that do not all fit, only the first and the last ones are shown.

/// Which of `total` items are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fold {
    total: i64,
    /// How many are shown at the beginning.
    first: i64,
    /// How many are shown at the end.
    last: i64,
}

impl Fold {
    /// All of them.
    pub(crate) fn all(total: i64) -> Fold {
        Fold { total, first: total, last: 0 }
    }

    /// All of them if there are no more than `most`, else the first and the last ones, at least one of each.
    pub(crate) fn new(total: i64, most: i64) -> Fold {
        let most = most.max(2);
        if total <= most { Fold::all(total) } else { Fold { total, first: most - most / 2, last: most / 2 } }
    }

    /// How many there are.
    pub(crate) fn total(&self) -> i64 {
        self.total
    }

    /// How many are shown.
    pub(crate) fn shown(&self) -> i64 {
        self.first + self.last
    }

    /// True when some are not shown.
    pub(crate) fn is_folded(&self) -> bool {
        self.shown() < self.total
    }

    /// Those that are shown.
    pub(crate) fn indices(self) -> impl Iterator<Item = i64> {
        (0..self.first).chain(self.total - self.last..self.total)
    }

    /// True when `index` is shown.
    pub(crate) fn shows(&self, index: i64) -> bool {
        index < self.first || index >= self.total - self.last
    }

    /// True for the first index after those that are left out.
    pub(crate) fn resumes_at(&self, index: i64) -> bool {
        self.is_folded() && index == self.total - self.last
    }

    /// True for every index after those that are left out.
    pub(crate) fn is_past_gap(&self, index: i64) -> bool {
        self.is_folded() && index >= self.total - self.last
    }

    /// `54 of 64 columns`, if that many are left out; `None` if none are.
    pub(crate) fn left_out(&self, what: &str) -> Option<String> {
        self.is_folded().then(|| format!("{} of {} {what}", self.total - self.shown(), self.total))
    }
}

/// The note that says what was left out and how to see it; `None` if nothing was.
pub(crate) fn note(left_out: &[String]) -> Option<String> {
    if left_out.is_empty() {
        return None;
    }
    Some(format!("folded: {}; `--svg FILE` or `--html FILE` shows all", left_out.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_not_folded() {
        assert_eq!((Fold::new(5, 5).indices().count(), Fold::new(5, 5).left_out("rows")), (5, None));
    }

    #[test]
    fn the_first_and_the_last_stay() {
        let fold = Fold::new(10, 5);
        assert_eq!(fold.indices().collect::<Vec<_>>(), [0, 1, 2, 8, 9]);
        assert!(fold.resumes_at(8) && !fold.resumes_at(9) && fold.is_past_gap(9) && fold.shows(2) && !fold.shows(3));
        assert_eq!(fold.left_out("rows"), Some("5 of 10 rows".to_string()));
    }

    #[test]
    fn one_of_each_end_is_shown_however_small_the_room() {
        assert_eq!(Fold::new(10, -3).indices().collect::<Vec<_>>(), [0, 9]);
    }
}
