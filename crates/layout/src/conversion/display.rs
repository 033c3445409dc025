//! A plan as text: a summary, and as much of the rest as fits on a screen.

use std::fmt;

use super::renaming::Picks;
use super::shuffle::{ShuffleMode, ShuffleStep, Shuffles, WarpStep};
use super::staging::{SharedSide, Staging};
use super::{Conversion, ConversionKind};

/// The maximum number of steps, and of items in a line, that are shown.
const SHOWN: usize = 8;
/// The maximum number of items shown where two lists share a line.
const SHOWN_OF_TWO: usize = 4;

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.cost)?;
        match &self.kind {
            ConversionKind::Nothing => Ok(()),
            ConversionKind::Renaming(picks) => write_renaming(f, picks),
            ConversionKind::Shuffles(shuffles) => write_shuffles(f, shuffles),
            ConversionKind::Staging(staging) => write_staging(f, staging, self.bits),
        }
    }
}

/// The first items of a list, with dots if there are more.
fn first_of(items: impl Iterator<Item = String>, most: usize, separator: &str) -> String {
    let mut shown: Vec<String> = items.take(most + 1).collect();
    if shown.len() > most {
        shown[most] = "...".to_string();
    }
    shown.join(separator)
}

fn write_renaming(f: &mut fmt::Formatter<'_>, picks: &Picks) -> fmt::Result {
    let moves = (0..picks.registers).filter_map(|register| Some(format!("r{register} <- r{}", picks.at(0, register)?)));
    write!(f, "\n  thread 0: {}", first_of(moves, SHOWN, ", "))
}

fn write_shuffles(f: &mut fmt::Formatter<'_>, shuffles: &Shuffles) -> fmt::Result {
    for (number, step) in shuffles.steps.iter().enumerate().take(SHOWN) {
        write!(f, "\n  step {number}: {}", step_line(step))?;
    }
    match shuffles.steps.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, "\n  ... and {more} more"),
    }
}

fn step_line(step: &ShuffleStep) -> String {
    let Some(warp) = step.warp(0) else { return String::new() };
    let of_warp = if step.warps.len() > 1 { ", in warp 0" } else { "" };
    let read = match step.mode {
        ShuffleMode::Butterfly { mask } => format!("butterfly {mask}"),
        ShuffleMode::Broadcast { lane } => format!("all read lane {lane}"),
        ShuffleMode::Indexed => format!("indexed, lane<-source {}", sources(warp)),
    };
    format!("{read}{of_warp}; {}", words(warp))
}

fn sources(warp: &WarpStep) -> String {
    let pairs = warp.source.iter().enumerate();
    let named = pairs.filter_map(|(lane, source)| source.map(|source| format!("{lane}<-{source}")));
    first_of(named, SHOWN_OF_TWO, " ")
}

/// `word 1 from lanes 0-15, word 0 from lanes 16-31`
fn words(warp: &WarpStep) -> String {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (lane, word) in warp.word.iter().enumerate() {
        let Some(word) = *word else { continue };
        match runs.last_mut() {
            Some((sent, _, last)) if *sent == word && *last + 1 == lane => *last = lane,
            _ => runs.push((word, lane, lane)),
        }
    }
    let more = if runs.len() > SHOWN_OF_TWO { ", ..." } else { "" };
    let run = |(word, first, last): &(usize, usize, usize)| {
        if first == last {
            format!("word {word} from lane {first}")
        } else {
            format!("word {word} from lanes {first}-{last}")
        }
    };
    let shown: Vec<String> = runs.iter().take(SHOWN_OF_TWO).map(run).collect();
    format!("{}{more}", shown.join(", "))
}

fn write_staging(f: &mut fmt::Formatter<'_>, staging: &Staging, bits: usize) -> fmt::Result {
    let cells = if staging.cell > bits { ", each element in its own byte" } else { "" };
    write!(f, "\n  shared memory: {}, {} bytes{cells}", staging.layout, staging.bytes)?;
    write!(f, "\n  stores: {}", side_line(&staging.store))?;
    write!(f, "\n  loads: {}", side_line(&staging.load))
}

fn side_line(side: &SharedSide) -> String {
    let wavefronts: u32 = side.accesses.iter().filter_map(|access| access.wavefronts.first()).sum();
    let registers = side.accesses.iter().filter_map(|access| access.registers.first());
    let registers = first_of(registers.map(usize::to_string), SHOWN, " ");
    let (count, width) = (side.accesses.len(), side.width);
    format!("{count} x {width} bytes per lane, wavefronts in warp 0: {wavefronts}; first registers {registers}")
}

#[cfg(test)]
mod tests {
    use super::super::find_conversions;

    fn shown(a: &str, b: &str, bits: i64) -> Vec<String> {
        let plans = find_conversions(&a.parse().unwrap(), &b.parse().unwrap(), bits).unwrap();
        plans.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_butterfly_names_its_mask_and_what_is_sent() {
        let plans = shown("S[(2,16,2):(16@laneid,1@laneid,1@reg)]", "S[(2,16,2):(1@reg,1@laneid,16@laneid)]", 32);
        assert_eq!(
            plans,
            [
                "shuffles: cost 22 a warp (1 shuffle, 3 selects)\n  \
                 step 0: butterfly 16; word 1 from lanes 0-15, word 0 from lanes 16-31",
                "staging: cost 102 a warp (1 store, 2 loads, 4 wavefronts, warp barrier)\n  \
                 shared memory: S[64:1@m], 256 bytes\n  \
                 stores: 1 x 8 bytes per lane, wavefronts in warp 0: 2; first registers 0\n  \
                 loads: 2 x 4 bytes per lane, wavefronts in warp 0: 2; first registers 0 1",
            ]
        );
    }

    #[test]
    fn a_renaming_names_the_registers() {
        let plans = shown("S[(32,4):(1@laneid,1@reg)]", "S[(32,2,2):(1@laneid,1@reg,2@reg)]", 32);
        assert_eq!(plans[0], "renaming: cost 0 a warp\n  thread 0: r0 <- r0, r1 <- r2, r2 <- r1, r3 <- r3");
    }

    #[test]
    fn every_plan_fits_a_screen() {
        for bits in [1, 4, 8, 16, 32, 64] {
            for plan in shown("S[(32,32):(1@laneid,1@reg)]", "S[(32,32):(1@reg,1@laneid)]", bits) {
                assert!(plan.lines().count() <= 24 && plan.lines().all(|line| line.len() <= 160), "{plan}");
            }
        }
    }
}
