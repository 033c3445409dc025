//! The page of a recorded launch: a row for each warp over ticks, the asynchronous operations and the phases of mbarriers below,
//! and an arrow to the end of each wait from what ended it. One self-contained HTML file that needs no network.

mod chart;

use tilewright_vgpu::timeline::{Engine, Timeline};

use chart::chart;

const CSS: &str = include_str!("../assets/timeline.css");
const JS: &str = include_str!("../assets/timeline.js");

/// The page of a timeline. `fault` is how the launch ended, if not well.
pub fn timeline_page(title: &str, timeline: &Timeline, fault: Option<&str>) -> String {
    let title = escaped(title);
    let fault = fault.map_or(String::new(), fault_text);
    let cut = if timeline.is_cut { "<p>The launch has more CTAs or ticks than are shown.</p>\n" } else { "" };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>\n{CSS}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{fault}\
         <p>In a tick, every warp that can run executes one instruction. This is an order that can happen, not the time that a \
         device needs. Point at a part to read its lines and to see which arrows belong to it.</p>\n{cut}\
         <p class=\"legend\">{}</p>\n\
         <div class=\"scroll\">\n{}</div>\n<script>\n{JS}</script>\n</body>\n</html>\n",
        legend(timeline),
        chart(timeline)
    )
}

/// What the colours mean; only those of engines that did something are named.
fn legend(timeline: &Timeline) -> String {
    let has = |engine: Engine| timeline.operations.iter().any(|found| found.engine == engine);
    let entries = [
        ("background: hsl(215 55% 55%)", "a warp executes", true),
        ("background: var(--wait)", "it waits", true),
        ("border: 1.5px solid var(--stuck)", "it waits until the end", true),
        ("background: var(--wait); height: .2em", "lanes wait for the rest of their warp", true),
        ("background: var(--copies)", "bulk and tensor copies", has(Engine::Copies)),
        ("background: var(--tensor)", "products and copies of tcgen05", has(Engine::Tensor)),
        ("background: var(--phase)", "a phase of an mbarrier ends", !timeline.phases.is_empty()),
    ];
    let entry = |(style, text, _): (&str, &str, bool)| format!("<span><i style=\"{style}\"></i>{text}</span>");
    entries.into_iter().filter(|(.., is_shown)| *is_shown).map(entry).collect()
}

/// How the launch ended: the first line, and the others on demand.
fn fault_text(fault: &str) -> String {
    match fault.split_once('\n') {
        None => format!("<p class=\"fault\">{}</p>\n", escaped(fault)),
        Some((first, rest)) => {
            let (first, rest) = (escaped(first), escaped(rest));
            format!("<details class=\"fault\" open><summary>{first}</summary>{rest}</details>\n")
        }
    }
}

/// Text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
