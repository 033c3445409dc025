//! How places are written: `w1 T5 r0` on lanes, a plain number in memory, `axis=value` elsewhere.

use tilewright_diag::counted;
use tilewright_layout::axis::REG;
use tilewright_layout::{Axis, LayoutError};

use crate::layout::view::{LayoutView, Place};

/// Maximum number of places named in a tooltip.
const MAX_PLACES: usize = 16;
/// Maximum number of replicas named in a legend.
const MAX_EXAMPLES: usize = 4;

/// How the axes of one view are written.
pub(crate) struct Labels {
    /// What stands in front of a position: a letter, nothing, or `axis=`; owners first.
    prefixes: Vec<String>,
    /// The same axes in a sentence: `lane`, `register`.
    words: Vec<String>,
    /// Number of owner axes.
    owners: usize,
    /// What the letters mean.
    legend: Option<String>,
}

impl Labels {
    /// The labels of a view. Two axes that would take the same letter are both written `axis=`.
    pub(crate) fn of(view: &LayoutView) -> Labels {
        let axes: Vec<&Axis> = view.owner_axes().iter().chain(view.slot_axes()).collect();
        let letters: Vec<Option<&str>> = axes.iter().map(|axis| letter(axis, view)).collect();
        let is_alone = |letter| letters.iter().filter(|other| **other == Some(letter)).count() == 1;
        let mut prefixes = Vec::with_capacity(axes.len());
        let mut meanings = Vec::new();
        for (axis, letter) in axes.iter().zip(&letters) {
            match *letter {
                Some("") => {
                    meanings.push(format!("a number is an address on {axis}, in elements"));
                    prefixes.push(String::new());
                }
                Some(letter) if is_alone(letter) => {
                    if letter != axis.name() {
                        meanings.push(format!("{letter} = {axis}"));
                    }
                    prefixes.push(letter.to_string());
                }
                _ => prefixes.push(format!("{axis}=")),
            }
        }
        let words = axes.iter().map(|axis| word(axis, view).to_string()).collect();
        let legend = if meanings.is_empty() { None } else { Some(meanings.join(", ")) };
        Labels { prefixes, words, owners: view.owner_axes().len(), legend }
    }

    /// What the letters mean; `None` if there are none.
    pub(crate) fn legend(&self) -> Option<&str> {
        self.legend.as_deref()
    }

    /// The places of one element, short: `T5 r1`, `T5,T21 r1`, or the first with how many more there are.
    pub(crate) fn cell(&self, places: &[Place]) -> String {
        let more = places.len().saturating_sub(1);
        match (self.merged(places), places) {
            (Some(text), _) => text,
            (None, []) => "()".to_string(),
            (None, [first, ..]) => format!("{} +{more}", self.place(first)),
        }
    }

    /// One place, or two that differ on one axis only.
    fn merged(&self, places: &[Place]) -> Option<String> {
        match places {
            [place] => Some(self.place(place)),
            [a, b] => {
                let (a, b) = (self.parts(a), self.parts(b));
                let differing = a.iter().zip(&b).filter(|(a, b)| a != b).count();
                let both = |(a, b): (&String, &String)| if a == b { a.clone() } else { format!("{a},{b}") };
                (differing == 1).then(|| a.iter().zip(&b).map(both).collect::<Vec<_>>().join(" "))
            }
            _ => None,
        }
    }

    /// What ` +3` in the cells stands for, explained for the first element; `None` if no cell has it.
    pub(crate) fn replicas(&self, view: &LayoutView) -> Result<Option<String>, LayoutError> {
        let first = view.cell(0)?;
        let [_, others @ ..] = &first.places[..] else { return Ok(None) };
        if self.merged(&first.places).is_some() {
            return Ok(None);
        }
        let mut examples: Vec<String> = others.iter().take(MAX_EXAMPLES).map(|place| self.place(place)).collect();
        if others.len() > MAX_EXAMPLES {
            examples.push("...".to_string());
        }
        let (more, element) = (others.len(), tuple(&first.coordinate));
        let more_places = counted(more, "more place");
        Ok(Some(format!("+{more}: at {more_places}; {element} is also at {}", examples.join(", "))))
    }

    /// All places of one element, for a tooltip.
    pub(crate) fn all(&self, places: &[Place]) -> String {
        let mut texts: Vec<String> = places.iter().take(MAX_PLACES).map(|place| self.place(place)).collect();
        if places.len() > MAX_PLACES {
            texts.push(format!("{} more", places.len() - MAX_PLACES));
        }
        texts.join("; ")
    }

    /// One place.
    pub(crate) fn place(&self, place: &Place) -> String {
        let parts = self.parts(place);
        if parts.is_empty() { "()".to_string() } else { parts.join(" ") }
    }

    /// The owner of a place.
    pub(crate) fn owner(&self, owner: &[i64]) -> String {
        written(&self.prefixes, owner)
    }

    /// The slot of a place.
    pub(crate) fn slot(&self, slot: &[i64]) -> String {
        written(&self.prefixes[self.owners..], slot)
    }

    /// What the colour of a place stands for: its owner or, if it has none, its bytes within a line.
    pub(crate) fn coloured_by(&self, view: &LayoutView, place: &Place) -> String {
        if self.owners > 0 {
            return self.owner(&place.owner);
        }
        let first = view.chunk(place) * 16;
        format!("bytes {first}-{} of a line", first + 15)
    }

    /// A box of places, from the least to the greatest position on each axis: `L0-3 C8`.
    pub(crate) fn range(&self, low: &[i64], high: &[i64]) -> String {
        let ends = low.iter().zip(high);
        let part = |(prefix, (low, high)): (&String, (&i64, &i64))| {
            if low == high { format!("{prefix}{low}") } else { format!("{prefix}{low}-{high}") }
        };
        self.prefixes.iter().zip(ends).map(part).collect::<Vec<_>>().join(" ")
    }

    /// The places of one element in a sentence: `on lane 1 register 0`.
    pub(crate) fn sentence(&self, places: &[Place]) -> String {
        let preposition = if self.owners > 0 { "on" } else { "at" };
        let one = |place: &Place| {
            let positions = place.owner.iter().chain(&place.slot);
            let parts = self.words.iter().zip(positions).map(|(word, position)| format!("{word} {position}"));
            parts.collect::<Vec<_>>().join(" ")
        };
        let mut texts: Vec<String> = places.iter().take(MAX_EXAMPLES).map(one).collect();
        if places.len() > MAX_EXAMPLES {
            texts.push(counted(places.len() - MAX_EXAMPLES, "more place"));
        }
        format!("{preposition} {}", texts.join(" and "))
    }

    fn parts(&self, place: &Place) -> Vec<String> {
        let positions = place.owner.iter().chain(&place.slot);
        self.prefixes.iter().zip(positions).map(|(prefix, position)| format!("{prefix}{position}")).collect()
    }
}

/// A coordinate or a shape: `(4,32)`.
pub(crate) fn tuple(values: &[i64]) -> String {
    format!("({})", listed(values))
}

/// A coordinate without parentheses: `4,32`.
pub(crate) fn listed(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

fn written(prefixes: &[String], positions: &[i64]) -> String {
    let parts = prefixes.iter().zip(positions).map(|(prefix, position)| format!("{prefix}{position}"));
    parts.collect::<Vec<_>>().join(" ")
}

/// In a fragment that has no `reg`, `m` counts registers.
fn is_register(axis: &Axis, view: &LayoutView) -> bool {
    axis.name() == "reg" || (axis.name() == "m" && view.is_fragment() && !view.slot_axes().contains(&REG))
}

fn letter(axis: &Axis, view: &LayoutView) -> Option<&'static str> {
    if is_register(axis, view) {
        return Some("r");
    }
    Some(match axis.name() {
        "laneid" | "tx" | "tid_in_wg" => "T",
        "warpid" | "wid_in_wg" => "w",
        "wgid" => "wg",
        "m" if view.is_linear_memory() => "",
        "m" => "m",
        "TLane" => "L",
        "TCol" => "C",
        "gpuid_x" => "x",
        "gpuid_y" => "y",
        "gpuid_z" => "z",
        _ => return None,
    })
}

fn word<'a>(axis: &'a Axis, view: &LayoutView) -> &'a str {
    if is_register(axis, view) {
        return "register";
    }
    match axis.name() {
        "laneid" => "lane",
        "tx" | "tid_in_wg" => "thread",
        "warpid" | "wid_in_wg" => "warp",
        "wgid" => "warpgroup",
        "m" => "address",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short text of the first element, and the legend.
    fn first(notation: &str) -> (String, Option<String>) {
        let layout: tilewright_layout::Layout = notation.parse().unwrap();
        let view = LayoutView::new(&layout, &[layout.size()], 32).unwrap();
        let labels = Labels::of(&view);
        (labels.cell(&view.cell(0).unwrap().places), labels.legend().map(str::to_string))
    }

    fn cell(notation: &str) -> String {
        first(notation).0
    }

    #[test]
    fn threads_and_registers_have_letters() {
        let legend = Some("w = warpid, T = laneid, r = reg".to_string());
        assert_eq!(first("S[(4,2):(1@laneid,1@reg)] + 1@warpid + 5@laneid"), ("w1 T5 r0".to_string(), legend));
    }

    #[test]
    fn memory_of_a_fragment_counts_registers() {
        let legend = Some("T = tx, r = m".to_string());
        assert_eq!(first("S[(4,2):(1@tx,1)] + 3"), ("T0 r3".to_string(), legend));
    }

    #[test]
    fn linear_memory_is_a_number() {
        let legend = Some("a number is an address on m, in elements".to_string());
        assert_eq!(first("S[4:1] + 7"), ("7".to_string(), legend));
    }

    #[test]
    fn other_axes_are_named() {
        assert_eq!(first("S[4:1@bx] + 2@P"), ("bx=0 P=2".to_string(), None));
    }

    #[test]
    fn axes_of_one_letter_are_named() {
        assert_eq!(cell("S[4:1@laneid] + 2@tx + 1@warpid"), "w1 tx=2 laneid=0");
    }

    #[test]
    fn two_places_that_differ_on_one_axis_are_listed() {
        assert_eq!(cell("S[4:1@reg] + R[2:16@laneid] + 5@laneid"), "T5,T21 r0");
    }

    #[test]
    fn more_places_are_counted() {
        assert_eq!(cell("S[4:1@TCol] + R[4:32@TLane]"), "L0 C0 +3");
        assert_eq!(cell("S[4:1@reg] + R[(2,2):(16@laneid,1@warpid)]"), "w0 T0 r0 +3");
    }

    #[test]
    fn the_legend_of_replicas_tells_those_of_the_first_element() {
        let layout: tilewright_layout::Layout = "S[4:1@TCol] + R[4:32@TLane]".parse().unwrap();
        let view = LayoutView::new(&layout, &[2, 2], 32).unwrap();
        let text = Labels::of(&view).replicas(&view).unwrap().unwrap();
        assert_eq!(text, "+3: at 3 more places; (0,0) is also at L32 C0, L64 C0, L96 C0");
    }

    #[test]
    fn a_sentence_uses_whole_words() {
        let layout: tilewright_layout::Layout = "S[(4,2):(1@laneid,1)] + R[2:4@warpid]".parse().unwrap();
        let view = LayoutView::new(&layout, &[4, 2], 32).unwrap();
        let sentence = Labels::of(&view).sentence(&view.cell(3).unwrap().places);
        assert_eq!(sentence, "on warp 0 lane 1 register 1 and warp 4 lane 1 register 1");
    }
}
