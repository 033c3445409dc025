//! A plan as compact JSON text, always the same for the same plan; the page of the layout tool steps through it.

use super::cost::Cost;
use super::renaming::Picks;
use super::shuffle::{ShuffleMode, ShuffleStep, WarpStep};
use super::staging::{SharedAccess, SharedSide, Staging};
use super::{Conversion, ConversionKind};

impl Conversion {
    /// `{"kind","cost","threads","bits","steps","picks","shared"}`, without spaces. The fields are those of the types;
    /// -1 stands for an absent lane, word, register or address, `null` for absent picks or shared memory.
    pub fn to_json_text(&self) -> String {
        let (steps, picks, shared) = match &self.kind {
            ConversionKind::Nothing => (String::new(), None, None),
            ConversionKind::Renaming(picks) => (String::new(), Some(picks_text(picks)), None),
            ConversionKind::Shuffles(shuffles) => {
                (joined(shuffles.steps.iter().map(step_text)), Some(picks_text(&shuffles.picks)), None)
            }
            ConversionKind::Staging(staging) => (String::new(), None, Some(staging_text(staging))),
        };
        let null = || "null".to_string();
        format!(
            r#"{{"kind":"{}","cost":{},"threads":{},"bits":{},"steps":[{steps}],"picks":{},"shared":{}}}"#,
            self.kind.name(),
            cost_text(&self.cost),
            self.threads,
            self.bits,
            picks.unwrap_or_else(null),
            shared.unwrap_or_else(null),
        )
    }
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

fn numbers<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    format!("[{}]", joined(values.into_iter().map(|value| value.to_string())))
}

/// A list of numbers, with -1 for absent ones.
fn optional(values: &[Option<usize>]) -> String {
    numbers(values.iter().map(|value| value.map_or(-1, |value| value as i64)))
}

fn cost_text(cost: &Cost) -> String {
    let Cost { shuffles, indices, selects, permutes, stores, loads, wavefronts, barrier } = cost;
    let moves = format!(r#""shuffles":{shuffles},"indices":{indices},"selects":{selects},"permutes":{permutes}"#);
    let memory = format!(r#""stores":{stores},"loads":{loads},"wavefronts":{wavefronts}"#);
    format!(r#"{{{moves},{memory},"barrier":"{}","total":{}}}"#, barrier.name(), cost.total())
}

fn step_text(step: &ShuffleStep) -> String {
    let mode = match step.mode {
        ShuffleMode::Butterfly { mask } => format!(r#""mode":"butterfly","mask":{mask}"#),
        ShuffleMode::Broadcast { lane } => format!(r#""mode":"broadcast","lane":{lane}"#),
        ShuffleMode::Indexed => r#""mode":"indexed""#.to_string(),
    };
    format!(r#"{{{mode},"warps":[{}]}}"#, joined(step.warps.iter().map(warp_text)))
}

fn warp_text(warp: &WarpStep) -> String {
    format!(r#"{{"source":{},"word":{}}}"#, optional(&warp.source), optional(&warp.word))
}

fn picks_text(picks: &Picks) -> String {
    let Picks { warps, registers, own, from } = picks;
    format!(r#"{{"warps":{warps},"registers":{registers},"own":{own},"from":{}}}"#, numbers(from))
}

fn staging_text(staging: &Staging) -> String {
    let Staging { layout, bytes, cell, barrier, store, load } = staging;
    let place = format!(r#""layout":"{layout}","bytes":{bytes},"cell":{cell},"barrier":"{}""#, barrier.name());
    format!(r#"{{{place},"store":{},"load":{}}}"#, side_text(store), side_text(load))
}

fn side_text(side: &SharedSide) -> String {
    format!(r#"{{"width":{},"accesses":[{}]}}"#, side.width, joined(side.accesses.iter().map(access_text)))
}

fn access_text(access: &SharedAccess) -> String {
    let (registers, addresses) = (numbers(&access.registers), optional(&access.addresses));
    let wavefronts = numbers(&access.wavefronts);
    format!(r#"{{"registers":{registers},"addresses":{addresses},"wavefronts":{wavefronts}}}"#)
}

#[cfg(test)]
mod tests {
    use super::super::find_conversion;

    fn text(a: &str, b: &str) -> String {
        find_conversion(&a.parse().unwrap(), &b.parse().unwrap(), 32).unwrap().to_json_text()
    }

    #[test]
    fn a_plan_of_nothing_is_short() {
        let cost = r#"{"shuffles":0,"indices":0,"selects":0,"permutes":0,"stores":0,"loads":0,"wavefronts":0,"#;
        let rest = r#""barrier":"none","total":0},"threads":32,"bits":32,"steps":[],"picks":null,"shared":null}"#;
        assert_eq!(text("S[32:1@laneid]", "S[32:1@tx]"), format!(r#"{{"kind":"nothing","cost":{cost}{rest}"#));
    }

    #[test]
    fn steps_picks_and_shared_memory_are_told_in_full() {
        let shuffles = text("S[2:1@laneid]", "S[2:1@reg]");
        assert!(shuffles.contains(r#""steps":[{"mode":"butterfly","mask":1,"warps":[{"source":[1,-1,"#), "{shuffles}");
        assert!(shuffles.contains(r#""picks":{"warps":1,"registers":2,"own":1,"from":[0,1,-1,"#), "{shuffles}");
        let staging = text("S[64:1@tx]", "S[(2,32):(1@tx,2@tx)]");
        let shared = r#""shared":{"layout":"S[64:1@m]","bytes":256,"cell":32,"barrier":"cta","store":{"width":4,"#;
        assert!(staging.contains(shared), "{staging}");
    }
}
