//! `list`: the kernels, with their sizes and dtypes.

use clap::Args;
use serde_json::json;
use tilewright_kernels::KERNELS;

use crate::exit::Exit;

/// Arguments of `list`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    if arguments.json {
        let list: Vec<_> = KERNELS
            .iter()
            .map(|entry| {
                let shape: Vec<_> = entry
                    .shape
                    .iter()
                    .map(|key| json!({"name": key.name, "default": key.default, "about": key.about}))
                    .collect();
                let dtypes: Vec<&str> = entry.dtypes.iter().map(|d| d.name()).collect();
                json!({"name": entry.name, "about": entry.about, "shape": shape, "dtypes": dtypes})
            })
            .collect();
        say!("{}", json!(list));
        return Exit::Done;
    }
    for entry in KERNELS {
        say!("{}: {}", entry.name, entry.about);
        for key in entry.shape {
            say!("    --shape {}={}  {}", key.name, key.default, key.about);
        }
        let dtypes: Vec<&str> = entry.dtypes.iter().map(|d| d.name()).collect();
        say!("    --dtype {}", dtypes.join("|"));
    }
    Exit::Done
}
