//! The page of a recorded launch: a row for each warp over ticks, the asynchronous operations and the phases of mbarriers below,
//! and an arrow to the end of each wait from what ended it. One self-contained HTML file that needs no network.

mod chart;

use tilewright_vgpu::timeline::Timeline;

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
         <p class=\"legend\"><span><i style=\"background: hsl(215 55% 55%)\"></i>a warp executes</span>\
         <span><i style=\"background: var(--wait)\"></i>it waits</span>\
         <span><i style=\"border: 1.5px solid var(--stuck)\"></i>it waits until the end</span>\
         <span><i style=\"background: var(--wait); height: .2em\"></i>lanes wait for the rest of their warp</span>\
         <span><i style=\"background: var(--copies)\"></i>bulk and tensor copies</span>\
         <span><i style=\"background: var(--tensor)\"></i>products and copies of tcgen05</span>\
         <span><i style=\"background: var(--phase)\"></i>a phase of an mbarrier ends</span></p>\n\
         <div class=\"scroll\">\n{}</div>\n<script>\n{JS}</script>\n</body>\n</html>\n",
        chart(timeline)
    )
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
