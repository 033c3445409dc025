//! `why`: explains why a buffer has its layout, traced back to a line that the user wrote.

use clap::Args;
use serde_json::{Value, json};
use tilewright::compile::Artifact;
use tilewright::infer::{Alternative, Link};

use crate::exit::Exit;
use crate::request::{KernelArguments, suggestion};
use crate::terminal::print_error;

/// Arguments of `why`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    kernel: KernelArguments,
    /// Name of the buffer; `emit NAME --stage tile` shows all.
    buffer: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    let compiled = match arguments.kernel.compile() {
        Ok(compiled) => compiled,
        Err(exit) => return exit,
    };
    let artifact = &compiled.artifact;
    let Some(text) = artifact.why(&arguments.buffer) else {
        print_error(&unknown_buffer(artifact, &arguments.buffer));
        return Exit::BadInput;
    };
    if let Err(exit) = compiled.warn() {
        return exit;
    }
    if arguments.json {
        say!("{}", why_json(artifact, &arguments.buffer));
    } else {
        say!("{}", text.trim_end_matches('\n'));
    }
    Exit::Done
}

fn unknown_buffer(artifact: &Artifact, name: &str) -> String {
    let names = artifact.buffer_names();
    let hint = match suggestion(name, names.iter().copied()) {
        hint if hint.is_empty() => format!("; the buffers are {}", names.join(", ")),
        hint => hint,
    };
    format!("`{}` has no buffer `{name}`{hint}", artifact.name())
}

fn why_json(artifact: &Artifact, buffer: &str) -> Value {
    let links: Vec<Value> = artifact.chain(buffer).unwrap_or_default().iter().map(link_json).collect();
    let alternatives: Vec<Value> = artifact.alternatives(buffer).iter().map(alternative_json).collect();
    json!({"kernel": artifact.name(), "buffer": buffer, "chain": links, "alternatives": alternatives})
}

fn link_json(link: &Link) -> Value {
    json!({
        "fragment": link.name, "layout": link.layout, "pass": link.reason.pass.name(), "rule": link.reason.rule,
        "op": link.reason.op, "span": link.reason.span.to_string(), "parent": link.parent, "note": link.note,
    })
}

fn alternative_json(alternative: &Alternative) -> Value {
    match &alternative.outcome {
        Ok(cost) => json!({"way": alternative.way, "cost": cost.total()}),
        Err(violation) => {
            let clash = violation.clash.as_ref().map(|clash| {
                json!({
                    "span": clash.span.to_string(), "element": clash.element, "writes": clash.writes,
                    "executing": clash.executing, "owning": clash.owning,
                })
            });
            json!({
                "way": alternative.way, "refused": violation.what, "op": violation.op,
                "span": violation.span.to_string(), "clash": clash,
            })
        }
    }
}
