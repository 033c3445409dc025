//! The chart of a timeline, as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

use tilewright_vgpu::timeline::{Actor, Busy, Engine, Lines, Operation, Timeline, Waited, WarpPlace};

use super::escaped;

/// Height of a row, and of what is drawn in it.
const ROW: f64 = 22.0;
const BAR: f64 = 15.0;
/// Height of the strip of lanes that wait for the rest of their warp.
const STRIP: f64 = 3.0;
/// Width of the names of rows.
const NAMES: f64 = 190.0;
/// The chart is about as wide as this, but a tick has at least `LEAST` and at most `MOST`.
const WIDTH: f64 = 1500.0;
const LEAST: f64 = 1.5;
const MOST: f64 = 12.0;
/// Width of a letter.
const LETTER: f64 = 6.7;
const TOP: f64 = 24.0;

/// Where everything is.
struct Chart<'a> {
    timeline: &'a Timeline,
    /// Ticks that are drawn: some more if something is unfinished.
    ticks: u64,
    scale: f64,
    /// The row of each warp.
    warps: BTreeMap<WarpPlace, f64>,
    /// The row of each operation.
    operations: Vec<f64>,
    /// The row of each mbarrier, by CTA and name.
    barriers: BTreeMap<([u32; 3], &'a str), f64>,
    /// Names of rows, and whether they are those of CTAs.
    names: Vec<(f64, String, bool)>,
    height: f64,
}

/// The arrows: for each wait that has ended, by its index.
fn arrow_id(wait: usize) -> String {
    format!("arrow{wait}")
}

pub(super) fn chart(timeline: &Timeline) -> String {
    let chart = Chart::new(timeline);
    let width = NAMES + chart.scale * chart.ticks as f64 + 20.0;
    let mut out = format!("<svg width=\"{width:.0}\" height=\"{:.0}\" role=\"img\">\n", chart.height + 10.0);
    chart.write_grid(&mut out);
    for (y, name, is_cta) in &chart.names {
        let class = if *is_cta { " class=\"cta\"" } else { "" };
        _ = writeln!(out, "<text x=\"4\" y=\"{:.1}\"{class}>{}</text>", y + BAR - 3.0, escaped(name));
    }
    timeline.busy.iter().for_each(|busy| chart.write_busy(&mut out, busy));
    for (index, wait) in timeline.waits.iter().enumerate() {
        if wait.is_for_own_warp {
            chart.write_strip(&mut out, wait);
        } else {
            chart.write_wait(&mut out, index, wait);
        }
    }
    timeline.operations.iter().enumerate().for_each(|(index, found)| chart.write_operation(&mut out, index, found));
    chart.write_phases(&mut out);
    chart.write_arrows(&mut out);
    out + "</svg>\n"
}

impl<'a> Chart<'a> {
    fn new(timeline: &'a Timeline) -> Chart<'a> {
        let is_stuck = timeline.waits.iter().any(|wait| wait.until.is_none());
        let ticks = timeline.ticks + if is_stuck { timeline.ticks / 10 + 8 } else { 0 };
        let scale = (WIDTH / ticks.max(1) as f64).clamp(LEAST, MOST);
        let mut chart = Chart {
            timeline,
            ticks,
            scale,
            warps: BTreeMap::new(),
            operations: vec![0.0; timeline.operations.len()],
            barriers: BTreeMap::new(),
            names: Vec::new(),
            height: TOP,
        };
        for (cta, warps) in &timeline.ctas {
            chart.add_cta(*cta, *warps);
        }
        chart
    }

    fn next_row(&mut self) -> f64 {
        let y = self.height;
        self.height += ROW;
        y
    }

    /// The rows of a CTA: its warps, the operations that they started, and its mbarriers.
    fn add_cta(&mut self, cta: [u32; 3], warps: u32) {
        let y = self.next_row();
        self.names.push((y, format!("CTA ({}, {}, {})", cta[0], cta[1], cta[2]), true));
        for warp in 0..warps {
            let y = self.next_row();
            self.warps.insert(WarpPlace { cta, warp }, y);
            self.names.push((y, format!("warp {warp}"), false));
        }
        for (engine, name) in [(Engine::Copies, "copies"), (Engine::Tensor, "tensor core")] {
            self.add_operations(cta, engine, name);
        }
        let own = self.timeline.phases.iter().filter(|end| end.cta == cta);
        let mut names: Vec<&str> = own.map(|end| end.name.as_str()).collect();
        // Also those of which no phase ends.
        let waits = self.timeline.waits.iter().filter(|wait| wait.at.cta == cta);
        names.extend(waits.filter_map(|wait| wait.mbarrier.as_deref()));
        // In the order of their offsets.
        names.sort_unstable_by_key(|name| (name.len(), *name));
        names.dedup();
        for name in names {
            let y = self.next_row();
            self.barriers.insert((cta, name), y);
            self.names.push((y, name.replace('`', ""), false));
        }
        self.height += ROW / 2.0;
    }

    /// Puts the operations of an engine into as few rows as they need.
    fn add_operations(&mut self, cta: [u32; 3], engine: Engine, name: &str) {
        let timeline = self.timeline;
        let mut rows: Vec<(f64, u64)> = Vec::new();
        for (index, found) in timeline.operations.iter().enumerate() {
            if found.by.cta != cta || found.engine != engine {
                continue;
            }
            let end = found.until.unwrap_or(self.ticks).max(found.from + 1);
            let free = rows.iter().position(|(_, until)| *until <= found.from);
            let row = free.unwrap_or_else(|| {
                let y = self.next_row();
                let text = if rows.is_empty() { name } else { "" };
                self.names.push((y, text.to_string(), false));
                rows.push((y, 0));
                rows.len() - 1
            });
            rows[row].1 = end;
            self.operations[index] = rows[row].0;
        }
    }

    fn x(&self, tick: u64) -> f64 {
        NAMES + self.scale * tick as f64
    }

    fn write_grid(&self, out: &mut String) {
        // About every hundred pixels, at a round number.
        let wanted = 100.0 / self.scale;
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0];
        let step = steps.into_iter().find(|step| *step >= wanted).unwrap_or(10000.0) as u64;
        for tick in (0..=self.ticks).step_by(step.max(1) as usize) {
            let x = self.x(tick);
            _ = writeln!(out, "<line class=\"grid\" x1=\"{x:.1}\" y1=\"16\" x2=\"{x:.1}\" y2=\"{:.1}\"/>", self.height);
            _ = writeln!(out, "<text class=\"tick\" x=\"{:.1}\" y=\"12\">{tick}</text>", x + 2.0);
        }
    }

    /// The arrows that someone's stretch or operation begins.
    fn arrows_from(&self, is_from: impl Fn(u64, Actor) -> bool) -> String {
        let ends = self.timeline.waits.iter().enumerate();
        let found = ends.filter(|(_, wait)| wait.until.is_some_and(|(tick, by)| is_from(tick, by)));
        found.map(|(index, _)| arrow_id(index)).collect::<Vec<String>>().join(" ")
    }

    fn write_busy(&self, out: &mut String, busy: &Busy) {
        let Some(y) = self.warps.get(&busy.at) else { return };
        let (from, until) = busy.ticks;
        let arrows = self.arrows_from(|tick, by| by == Actor::Warp(busy.at) && (from..until).contains(&tick));
        // Other hues are those of copies, products and phases.
        let lightness = 55 + 10 * (busy.at.warp % 2);
        let text = format!("warp {}, ticks {from} to {}: {}", busy.at.warp, until - 1, lines_text(busy.lines));
        _ = writeln!(
            out,
            "<rect data-arrows=\"{arrows}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" \
             style=\"fill: hsl(215 55% {lightness}%)\"><title>{}</title></rect>",
            self.x(from),
            y,
            self.scale * (until - from) as f64,
            escaped(&text)
        );
    }

    /// Lanes that wait for others of their warp, which may be busy.
    fn write_strip(&self, out: &mut String, wait: &Waited) {
        let Some(y) = self.warps.get(&wait.at) else { return };
        let until = wait.until.map_or(self.ticks, |(tick, _)| tick).max(wait.from + 1);
        let (class, text) = (class_of(wait), text_of(wait, &format!("ticks {} to {until}", wait.from)));
        _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{STRIP}\"><title>{}</title></rect>",
            self.x(wait.from),
            y + BAR,
            self.scale * (until - wait.from) as f64,
            escaped(&text)
        );
    }

    fn write_wait(&self, out: &mut String, index: usize, wait: &Waited) {
        let Some(y) = self.warps.get(&wait.at) else { return };
        let until = wait.until.map_or(self.ticks, |(tick, _)| tick).max(wait.from + 1);
        let (x, width) = (self.x(wait.from) + self.scale, self.scale * (until - wait.from) as f64 - self.scale);
        let width = width.max(1.0);
        let ended = match wait.until {
            Some((tick, by)) => format!("until tick {tick}, released by {}", self.actor_text(by)),
            None => "until the end".to_string(),
        };
        let (class, text) = (class_of(wait), text_of(wait, &format!("from tick {} {ended}", wait.from)));
        _ = writeln!(
            out,
            "<rect data-arrows=\"{}\" class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\">\
             <title>{}</title></rect>",
            arrow_id(index),
            escaped(&text)
        );
        let label = wait.mbarrier.as_ref().unwrap_or(&wait.what).replace('`', "");
        let label = label.split(", at which").next().unwrap_or_default();
        let fitting: String = label.chars().take((width / LETTER) as usize).collect();
        if fitting.len() > 3 {
            _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" pointer-events=\"none\">{}</text>",
                x + 2.0,
                y + BAR - 3.5,
                escaped(&fitting)
            );
        }
    }

    fn actor_text(&self, actor: Actor) -> String {
        match actor {
            Actor::Warp(at) => format!("warp {} of CTA {:?}", at.warp, at.cta),
            Actor::Operation(index) => match self.timeline.operations.get(index) {
                Some(found) => format!("`{}` of warp {}", found.opcode, found.by.warp),
                None => "an operation".to_string(),
            },
        }
    }

    fn write_operation(&self, out: &mut String, index: usize, found: &Operation) {
        let until = found.until.unwrap_or(self.ticks).max(found.from + 1);
        let class = match found.engine {
            Engine::Copies => "copies",
            Engine::Tensor => "tensor",
        };
        let class = if found.until.is_some() { class.to_string() } else { format!("{class} unfinished") };
        let arrows = self.arrows_from(|_, by| by == Actor::Operation(index));
        let end = found.until.map_or("the end".to_string(), |tick| format!("tick {tick}"));
        let text = format!(
            "{} of warp {}, from tick {} to {end}: {}",
            found.opcode,
            found.by.warp,
            found.from,
            lines_text(found.lines)
        );
        _ = writeln!(
            out,
            "<rect data-arrows=\"{arrows}\" class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"3\">\
             <title>{}</title></rect>",
            self.x(found.from),
            self.operations[index],
            (self.scale * (until - found.from) as f64 - 1.0).max(1.0),
            escaped(&text)
        );
    }

    fn write_phases(&self, out: &mut String) {
        for end in &self.timeline.phases {
            let Some(y) = self.barriers.get(&(end.cta, end.name.as_str())) else { continue };
            let (x, middle) = (self.x(end.tick) + self.scale / 2.0, y + BAR / 2.0);
            let text = format!(
                "phase {} of {} ends at tick {}, by {}",
                end.phase,
                end.name,
                end.tick,
                self.actor_text(end.by)
            );
            _ = writeln!(
                out,
                "<circle class=\"phase\" cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"4\"><title>{}</title></circle>",
                escaped(&text)
            );
            _ = writeln!(
                out,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 6.0,
                middle + 4.0,
                end.phase
            );
        }
    }

    /// From the row of who ended a wait to the row of who waited.
    fn write_arrows(&self, out: &mut String) {
        for (index, wait) in self.timeline.waits.iter().enumerate() {
            let (Some((tick, by)), Some(to)) = (wait.until, self.warps.get(&wait.at)) else { continue };
            let from = match by {
                // A warp whose own arrival ends its wait needs no arrow.
                Actor::Warp(at) if at == wait.at => continue,
                Actor::Warp(at) => self.warps.get(&at).copied(),
                Actor::Operation(index) => self.operations.get(index).copied(),
            };
            let Some(from) = from else { continue };
            let (x, y, end) = (self.x(tick), from + BAR / 2.0, to + BAR / 2.0);
            _ = writeln!(
                out,
                "<path id=\"{}\" class=\"arrow\" d=\"M{x:.1} {y:.1} C{:.1} {y:.1} {:.1} {end:.1} {:.1} {end:.1}\"/>",
                arrow_id(index),
                x + 14.0,
                x + 14.0,
                x + self.scale
            );
        }
    }
}

/// The class of the mark of a wait in the style sheet.
fn class_of(wait: &Waited) -> &'static str {
    if wait.until.is_some() { "wait" } else { "wait stuck" }
}

/// What waits for what, and when.
fn text_of(wait: &Waited, ticks: &str) -> String {
    let Waited { at, lanes, what, lines, .. } = wait;
    format!("warp {}, lanes {lanes:#010x} wait for {what}, {ticks}: {}", at.warp, lines_text(*lines))
}

/// Lines as text.
fn lines_text(lines: Lines) -> String {
    let range =
        |(first, last): (u32, u32)| if first == last { format!("{first}") } else { format!("{first} to {last}") };
    match lines.cuda {
        Some(cuda) => format!("CUDA lines {}, PTX lines {}", range(cuda), range(lines.ptx)),
        None => format!("PTX lines {}", range(lines.ptx)),
    }
}
