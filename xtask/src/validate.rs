//! placeholder
use clap::Args;
use crate::exit::Exit;
/// Arguments.
#[derive(Args)]
pub(crate) struct Arguments {}
pub(crate) fn run(_: &Arguments) -> Exit { Exit::Done }
