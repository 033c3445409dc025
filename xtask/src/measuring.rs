//! Measures one figure after another, and shows on a terminal which one.

use indicatif::ProgressBar;

use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::resources::Times;
use crate::terminal::{TICK, measuring_bar};

/// A measurement under way.
pub(crate) struct Measuring(ProgressBar);

impl Measuring {
    /// Starts a display that is shown until this is dropped.
    pub(crate) fn begin() -> Measuring {
        Measuring(measuring_bar())
    }

    /// A figure whose value `measure` returns.
    pub(crate) fn figure(
        &self,
        name: impl Into<String>,
        unit: &'static str,
        goal: Goal,
        measure: impl FnOnce() -> Result<f64, Exit>,
    ) -> Result<Figure, Exit> {
        let name = name.into();
        self.0.set_message(name.clone());
        let value = measure()?;
        self.0.inc(1);
        Ok(Figure { name, value, unit, goal, wall: None })
    }

    /// The CPU time of a compile, with its time on the wall clock beside it.
    pub(crate) fn compile(
        &self,
        name: String,
        goal: Goal,
        measure: impl FnOnce() -> Result<Times, Exit>,
    ) -> Result<Figure, Exit> {
        let mut wall = None;
        let figure = self.figure(name, "ms CPU", goal, || {
            let times = measure()?;
            wall = Some(times.wall);
            Ok(times.cpu)
        })?;
        Ok(Figure { wall, ..figure })
    }

    /// Runs a long measurement in another process, and shows that it is under way.
    pub(crate) fn elsewhere<T>(&self, what: &'static str, measure: impl FnOnce() -> T) -> T {
        self.0.set_message(what);
        self.0.enable_steady_tick(TICK);
        let found = measure();
        self.0.disable_steady_tick();
        found
    }

    /// Prints a note during the measurement.
    pub(crate) fn note(&self, text: &str) {
        self.0.suspend(|| eprintln!("note: {text}"));
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_named_while_it_is_measured_and_counted_when_it_is_done() {
        let measuring = Measuring(ProgressBar::hidden());
        let bar = measuring.0.clone();
        let figure = measuring.figure("first", "ms", Goal::Below(5.0), || {
            assert_eq!((bar.message().as_str(), bar.position()), ("first", 0));
            Ok(4.0)
        });
        assert_eq!(figure.map(|figure| (figure.name, figure.value)), Ok(("first".to_string(), 4.0)));
        assert_eq!(bar.position(), 1);
        let failed = measuring.figure("second", "ms", Goal::Base, || Err(Exit::Fault));
        assert_eq!(failed.map(|figure| figure.name), Err(Exit::Fault));
        assert_eq!(bar.position(), 1);
    }
}
