//! Which kernel, for what: the arguments that `run-kernel`, `emit` and `why` share.

use clap::Args;
use tilewright::compile::{Artifact, LowerOptions, Options, Stage, compile};
use tilewright::diag::{Diagnostic, nearest};
use tilewright::prelude::{DType, Target};
use tilewright::runtime::Failure;
use tilewright_kernels::{Config, KERNELS, KernelEntry, find};

use crate::defect::fail_on_kernel;
use crate::exit::Exit;
use crate::terminal::print_error;

/// A kernel and what it is built for.
#[derive(Args, Clone, Debug)]
pub(crate) struct KernelArguments {
    /// Name of the kernel; `cargo xtask list` shows all.
    pub(crate) name: String,
    /// The target to compile for.
    #[arg(long, default_value = "sm_100a")]
    pub(crate) target: String,
    /// A size of the kernel, such as rows=32; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) shape: Vec<String>,
    /// Type of an element.
    #[arg(long)]
    pub(crate) dtype: Option<String>,
    /// Use this variant for every op that has it, instead of the cheapest.
    #[arg(long)]
    pub(crate) variant: Option<String>,
}

/// A kernel that was compiled to CUDA text.
pub(crate) struct Compiled {
    pub(crate) entry: &'static KernelEntry,
    pub(crate) config: Config,
    pub(crate) artifact: Artifact,
    /// The options it was compiled with, for defect reports.
    options: Options,
}

impl Compiled {
    /// Prints why it cannot be built or run.
    pub(crate) fn failed(&self, failure: Failure) -> Exit {
        self.fail_on(failure.diagnostics, failure.kind.into())
    }

    /// Prints the warnings about it. Error: a defect is among them.
    pub(crate) fn warn(&self) -> Result<(), Exit> {
        match self.fail_on(self.artifact.warnings(), Exit::Done) {
            Exit::Done => Ok(()),
            exit => Err(exit),
        }
    }

    /// Prints findings about it, and says how the command ends.
    pub(crate) fn fail_on(&self, found: Vec<Diagnostic>, otherwise: Exit) -> Exit {
        fail_on_kernel(|| self.artifact.stage(Stage::Tile), &self.options, found, otherwise)
    }
}

impl KernelArguments {
    /// Compiles the requested kernel; reports what is wrong if that fails.
    pub(crate) fn compile(&self) -> Result<Compiled, Exit> {
        let (entry, config, target) = self.resolve().map_err(|text| {
            print_error(&text);
            Exit::BadInput
        })?;
        let options = Options { target, lower: LowerOptions { variant: self.variant.clone() } };
        let kernel = (entry.build)(&config, target);
        let artifact = compile(kernel.clone(), &options);
        let artifact = artifact
            .and_then(|artifact| artifact.for_sizes(&entry.sizes(&config)))
            .map_err(|found| fail_on_kernel(|| kernel.to_string(), &options, found, Exit::BadInput))?;
        Ok(Compiled { entry, config, artifact, options })
    }

    pub(crate) fn resolve(&self) -> Result<(&'static KernelEntry, Config, Target), String> {
        let entry = find(&self.name).ok_or_else(|| unknown_kernel(&self.name))?;
        let target: Target = self.target.parse()?;
        let dtype: Option<DType> = self.dtype.as_deref().map(str::parse).transpose()?;
        let sizes = self.shape.iter().map(|text| parse_size(text)).collect::<Result<Vec<_>, _>>()?;
        let config = entry.config(dtype, &sizes).map_err(|error| error.to_string())?;
        Ok((entry, config, target))
    }
}

fn parse_size(text: &str) -> Result<(String, i64), String> {
    let wrong = || format!("`{text}` is not a size; write it as rows=32");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = value.trim().parse().map_err(|_| wrong())?;
    Ok((name.trim().to_string(), value))
}

fn unknown_kernel(name: &str) -> String {
    let names = || KERNELS.iter().map(|entry| entry.name);
    let hint = match suggestion(name, names()) {
        hint if hint.is_empty() => format!("; the kernels are {}", names().collect::<Vec<_>>().join(", ")),
        hint => hint,
    };
    format!("there is no kernel `{name}`{hint}")
}

/// `; did you mean ...?` with the closest name, or nothing if none is close.
pub(crate) fn suggestion<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> String {
    nearest(given, names).map_or_else(String::new, |known| format!("; did you mean `{known}`?"))
}
