//! `layout`: draws a layout, answers questions about it, and plans the conversion to another.

mod access;
mod arguments;
mod facts;
mod failure;
mod positions;
mod subject;
mod target;
mod writing;

use serde_json::{Value, json};
use tilewright::diag::{Diagnostic, Snippet};
use tilewright::layout::hardware::{SwizzleMode, catalogue};
use tilewright::layout::{Layout, LayoutError};
use tilewright::viz::layout::{
    LayoutView, TextOptions, banks_svg, banks_text, hardware_svg, hardware_text, tensor_svg, tensor_text, to_json,
};
use tilewright::viz::layout_page::{PageState, PageView, layout_page};

use crate::exit::Exit;
use crate::terminal::{print_diagnostics, print_error, screen};

pub(crate) use arguments::Arguments;

use arguments::View;
use failure::Failure;
use subject::Subject;

pub(crate) fn run(arguments: &Arguments) -> Exit {
    let done = if arguments.layout == "list" { list(arguments.json) } else { describe(arguments) };
    match done {
        Ok(()) => Exit::Done,
        Err(Failure::Layout(error)) => {
            print_diagnostics(&[pointed(error.diagnostic(), &error, &arguments.layout)]);
            Exit::BadInput
        }
        Err(Failure::Option(found)) => {
            print_diagnostics(&[*found]);
            Exit::BadInput
        }
        Err(Failure::Request(text)) => {
            print_error(&text);
            Exit::BadInput
        }
        Err(Failure::File(text)) => {
            print_error(&text);
            Exit::Unsupported
        }
        Err(Failure::Defect(text)) => {
            print_error(&format!("this is a defect of Tilewright, please report it: {text}"));
            Exit::Defect
        }
    }
}

/// Adds a snippet that points at the wrong part of a hardware layout's name.
fn pointed(found: Diagnostic, error: &LayoutError, name: &str) -> Diagnostic {
    let LayoutError::Hardware { problem, .. } = error else { return found };
    let quoted = problem.split('`').nth(1).filter(|part| !part.is_empty());
    match quoted.and_then(|part| Some((name.find(part)?, part.len()))) {
        Some((start, length)) if !name.contains('[') => found.snippet(Snippet {
            origin: "<layout>".to_string(),
            text: name.to_string(),
            range: start..start + length,
            label: problem.clone(),
        }),
        _ => found,
    }
}

/// Lists the families of named layouts.
fn list(as_json: bool) -> Result<(), Failure> {
    if as_json {
        let entries = catalogue();
        let each = |e: &tilewright::layout::hardware::NamedExample| json!({"pattern": e.pattern, "example": e.example, "about": e.about});
        say!("{}", Value::from(entries.iter().map(each).collect::<Vec<_>>()));
        return Ok(());
    }
    for entry in catalogue() {
        say!("{:<30} {}", entry.example, entry.about);
        say!("    {}", entry.pattern);
    }
    Ok(())
}

fn describe(arguments: &Arguments) -> Result<(), Failure> {
    let mut subject = Subject::read(&arguments.layout, arguments)?;
    if let Some(mode) = &arguments.swizzle {
        subject.swizzle(mode.parse::<SwizzleMode>()?)?;
    }
    let view = LayoutView::new(&subject.layout, &subject.shape, subject.bits)?;
    let accesses = arguments.access.as_deref().map(|text| access::read(text, &subject)).transpose()?;
    let target = arguments.to.as_deref().map(|text| target::read(text, &subject, arguments)).transpose()?;
    let mut beyond = positions::beyond(&subject.layout, "this layout");
    beyond.extend(target.as_ref().map_or(Vec::new(), |target| positions::beyond(target.layout(), target::NAME)));
    print_diagnostics(&beyond);
    let kind = arguments.view.unwrap_or(if accesses.is_some() { View::Banks } else { View::Tensor });
    let instructions = accesses.as_ref().map_or(Vec::new(), access::Accesses::instructions);

    if let Some(path) = &arguments.svg {
        let drawn = match kind {
            View::Tensor => tensor_svg(&view)?,
            View::Hardware => hardware_svg(&view)?,
            View::Banks => banks_svg(&view, &instructions)?,
        };
        writing::write("--svg", path, &drawn)?;
    }
    if let Some(path) = &arguments.html {
        let conversion = target.as_ref().map(|target| target.on_page(&subject)).transpose()?;
        let state = page(arguments, &subject, target.as_ref(), kind)?;
        writing::write("--html", path, &layout_page(&state, conversion.as_slice())?)?;
    }
    if arguments.json {
        let told = to_json(&view)?
            .with("facts", facts::json(&subject.layout)?)
            .with("name", json!(subject.name))
            .with("access", accesses.as_ref().map_or(Value::Null, access::Accesses::json))
            .with("to", target.as_ref().map(target::Target::json).transpose()?.unwrap_or(Value::Null));
        say!("{told}");
        return Ok(());
    }
    if let Some(about) = &subject.about {
        say!("{about}\n");
    }
    let screen: TextOptions = screen();
    let text = match (&target, kind) {
        (Some(target), View::Tensor) => target.compared(&subject, &screen)?,
        (_, View::Tensor) => tensor_text(&view, &screen)?,
        (_, View::Hardware) => hardware_text(&view, &screen)?,
        (_, View::Banks) => banks_text(&view, &instructions, &screen)?,
    };
    say!("{}", text.trim_end());
    say!("\n{}", facts::text(&subject.layout)?);
    if let Some(accesses) = &accesses {
        say!("{}", accesses.text());
    }
    if let Some(target) = &target {
        say!("{}", target.text());
    }
    Ok(())
}

/// The page in the state that the arguments request.
fn page(
    arguments: &Arguments,
    subject: &Subject,
    target: Option<&target::Target>,
    kind: View,
) -> Result<PageState, Failure> {
    let view = match kind {
        _ if target.is_some() => PageView::Conversion,
        View::Tensor => PageView::Tensor,
        View::Hardware => PageView::Hardware,
        View::Banks => PageView::Banks,
    };
    let plain = |layout: &Layout| match layout {
        Layout::Tile(_) | Layout::Compose(_) => Ok(layout.to_string()),
        Layout::Table(_) => Err(Failure::Request("the page draws layouts in notation, not tables".to_string())),
    };
    Ok(PageState {
        shape: subject.shape.clone(),
        bits: subject.bits,
        view,
        access: arguments.access.as_deref().filter(|text| text.contains('[')).map(str::to_string),
        to: target.map(|target| plain(target.layout())).transpose()?,
        ..PageState::new(plain(&subject.layout)?)
    })
}
