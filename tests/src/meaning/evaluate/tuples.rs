//! Reductions and scans of tuples, by a function of the kernel.

use std::collections::BTreeMap;

use tilewright::ir::tile::{Claim, Combiner, Op, Parameter, ReduceBy, ScanBy, Tile, Value};

use super::super::numbers;
use super::machine::{Machine, Number, Outcome, Touch};
use super::values::converted;

/// By row, its tuples in order, each with its place in the tiles.
type Rows = BTreeMap<Vec<i64>, Vec<(usize, Vec<u64>)>>;

impl Machine<'_> {
    /// Combines tuples from the first of a row to the last.
    pub(super) fn reduce_by(&mut self, op: &Op, by: ReduceBy) -> Outcome<()> {
        let combiner = &self.kernel.combiners[by.combiner];
        let (destinations, sources) = op.operands.split_at(by.values);
        let rows = self.rows(sources, |dimension| by.dimensions.contains(dimension))?;
        let places: Vec<Vec<Vec<i64>>> = destinations.iter().map(|dst| self.tile(dst)).collect::<Outcome<_>>()?;
        for (at, row) in rows.values().enumerate() {
            let old: Vec<u64> = (destinations.iter().zip(&places))
                .map(|(dst, places)| self.get(dst.buffer, &places[at]))
                .collect::<Outcome<_>>()?;
            let mut result = (!by.clear).then_some(old);
            for (_, tuple) in row {
                result = Some(match result {
                    None => tuple.clone(),
                    Some(before) => self.combined(combiner, &before, tuple)?,
                });
            }
            for ((dst, places), bits) in destinations.iter().zip(&places).zip(result.unwrap_or_default()) {
                self.put(dst.buffer, &places[at], bits, Touch::Store(Claim::None))?;
            }
        }
        Ok(())
    }

    /// Combines each tuple with all before it.
    pub(super) fn scan_by(&mut self, op: &Op, by: ScanBy) -> Outcome<()> {
        let combiner = &self.kernel.combiners[by.combiner];
        let (destinations, sources) = op.operands[..2 * by.values].split_at(by.values);
        let carries = self.carries(op)?;
        let rows = self.rows(sources, |dimension| dimension == by.order.dimension)?;
        let places: Vec<Vec<Vec<i64>>> = destinations.iter().map(|dst| self.tile(dst)).collect::<Outcome<_>>()?;
        let dtypes = combiner.parameters.iter().map(|parameter| parameter.dtype);
        let identity: Vec<u64> =
            dtypes.zip(&combiner.identity).map(|(dtype, number)| numbers::constant(dtype, *number)).collect();
        for (number, mut row) in rows.into_values().enumerate() {
            if by.order.is_reverse {
                row.reverse();
            }
            let given: Vec<u64> = carries.iter().map(|carry| carry[number].1).collect();
            let mut result = by.order.has_carry.then_some(given);
            for (at, tuple) in row {
                let before = result.clone().unwrap_or_else(|| identity.clone());
                let next = match result {
                    None => tuple,
                    Some(before) => self.combined(combiner, &before, &tuple)?,
                };
                let kept = if by.order.is_exclusive { &before } else { &next };
                for ((dst, places), bits) in destinations.iter().zip(&places).zip(kept) {
                    self.put(dst.buffer, &places[at], *bits, Touch::Store(Claim::None))?;
                }
                result = Some(next);
            }
            for ((tile, carry), bits) in op.carries().iter().zip(&carries).zip(result.unwrap_or_default()) {
                self.put(tile.buffer, &carry[number].0, bits, Touch::Store(Claim::None))?;
            }
        }
        Ok(())
    }

    /// The tuples of elements of these tiles, by what their index is without the dimensions along which they are combined.
    fn rows(&mut self, sources: &[Tile], is_combined: impl Fn(usize) -> bool) -> Outcome<Rows> {
        let columns: Vec<Vec<u64>> = sources.iter().map(|src| self.all(src)).collect::<Outcome<_>>()?;
        let mut rows = Rows::new();
        for (at, index) in self.tile(&sources[0])?.into_iter().enumerate() {
            let kept = index.into_iter().enumerate().filter(|(dimension, _)| !is_combined(*dimension));
            let tuple = columns.iter().map(|column| column[at]).collect();
            rows.entry(kept.map(|(_, at)| at).collect()).or_default().push((at, tuple));
        }
        Ok(rows)
    }

    /// Two tuples as one.
    fn combined(&mut self, combiner: &Combiner, earlier: &[u64], later: &[u64]) -> Outcome<Vec<u64>> {
        let outside = self.names.len();
        for (parameter, both) in combiner.parameters.iter().zip(earlier.iter().zip(later)) {
            let Parameter { names: [first, second], dtype } = parameter;
            self.names.push((first.clone(), Number::Of(*dtype, *both.0)));
            self.names.push((second.clone(), Number::Of(*dtype, *both.1)));
        }
        for (name, value) in &combiner.named {
            let value = self.value(value, None)?;
            self.names.push((name.clone(), value));
        }
        let result = |(result, parameter): (&Value, &Parameter)| {
            converted(self.value(result, Some(parameter.dtype))?, parameter.dtype)
        };
        let results = combiner.results.iter().zip(&combiner.parameters).map(result).collect();
        self.names.truncate(outside);
        results
    }
}
