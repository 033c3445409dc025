//! The page part of `bench`: how soon the page of a large layout is ready, and how long a hover takes to repaint.

use tilewright::viz::layout_page::{PageState, PageView, layout_page};
use tilewright_tests::browser::Browser;

use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::measuring::Measuring;
use crate::terminal::fail;

/// Layouts of 64 x 1024 elements: a fragment with copies, plain memory, and a swizzle.
const LAYOUTS: [(&str, PageView); 3] = [
    ("S[(64,16,64):(1@tx,1@reg,16@reg)] + R[2:64@tx]", PageView::Tensor),
    ("S[(64,1024):(1024,1)]", PageView::Hardware),
    ("swizzle(M=3,B=3,S=3) o S[(64,1024):(1024,1)]", PageView::Banks),
];

/// Points at cells in turn and waits for the pixels of each; reports the slowest, and when the page was drawn.
const SCRIPT: &str = "
const drawn = window.tilewright.paint();
let slowest = 0;
for (let step = 0; step < 40; step++) {
  const began = performance.now();
  window.tilewright.point(0, (step * 7) % 60, (step * 13) % 16);
  slowest = Math.max(slowest, window.tilewright.paint() - began);
}
const verdict = document.createElement('pre');
verdict.id = 'verdict';
verdict.textContent = JSON.stringify({ ready: drawn, hover: slowest });
document.body.append(verdict);
";

/// The slowest timings of all layouts. No figures if there is no Chromium.
pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let Some(browser) = Browser::find() else {
        measuring.note("no Chromium on the path: the page is not measured");
        return Ok(Vec::new());
    };
    let (mut ready, mut hover) = (0f64, 0f64);
    for (layout, view) in LAYOUTS {
        let state = PageState { shape: vec![64, 1024], view, ..PageState::new(layout) };
        let page = layout_page(&state, &[]).map_err(|error| fail(Exit::Unsupported, &error))?;
        let timings = measuring.elsewhere("the layout page", || browser.run(&page, SCRIPT, ""));
        let timings = timings.map_err(|why| fail(Exit::Unsupported, &why))?;
        let timing = |name: &str| {
            let missing = || fail(Exit::Unsupported, &format!("the page does not say its `{name}` time"));
            timings[name].as_f64().ok_or_else(missing)
        };
        ready = ready.max(timing("ready")?);
        hover = hover.max(timing("hover")?);
    }
    let figure = |name, value, bound| measuring.figure(name, "ms", Goal::Below(bound), || Ok(value));
    let ready = figure("layout page, 64 x 1024: ready and drawn", ready, 1000.0)?;
    Ok(vec![ready, figure("layout page, 64 x 1024: slowest hover", hover, 50.0)?])
}
