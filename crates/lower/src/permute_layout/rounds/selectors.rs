//! The selectors of a lane as entries of a table.

use tilewright_expr::Expr;

use crate::permute_layout::entry::{pair, unpaired};

/// Selectors as entries of a table: two of them in one where there are three.
pub(crate) fn packed(selectors: &[i64]) -> Vec<i64> {
    match selectors {
        [first, second, third] => vec![pair(*first, *second), *third],
        others => others.to_vec(),
    }
}

/// The selectors in the entries of a lane.
pub(crate) fn unpacked(entries: &[Expr]) -> Vec<Expr> {
    match entries {
        [both, third] => {
            let [first, second] = unpaired(both);
            vec![first, second, third.clone()]
        }
        others => others.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_hold_all_selectors() {
        for selectors in [vec![0x7632, 0x5410, 0x6420], vec![0x5410], vec![]] {
            let entries: Vec<Expr> = packed(&selectors).into_iter().map(Expr::constant).collect();
            assert!(entries.iter().all(|entry| entry.as_const().is_some_and(|value| i32::try_from(value).is_ok())));
            let found: Vec<Option<i64>> = unpacked(&entries).iter().map(Expr::as_const).collect();
            assert_eq!(found, selectors.into_iter().map(Some).collect::<Vec<_>>());
        }
    }
}
