//! What `vgpu` reports.

use serde_json::{Value, json};
use tilewright::vgpu::launch_file::Difference;
use tilewright::vgpu::trace::{Trace, Traced, TracedOperand, TracedValue};
use tilewright::vgpu::{CudaLine, Fault, Note, Place, Report};

use crate::exit::Exit;
use crate::vgpu::gpu::OnGpu;

/// How the launches ended.
pub(crate) enum Ended {
    /// All of them ran, and every expectation holds.
    AsExpected,
    /// One of them faulted.
    Fault(Box<Fault>),
    /// A byte that is expected was never written.
    Unwritten {
        /// The name of the buffer.
        buffer: String,
        /// Offset of the byte.
        offset: usize,
    },
    /// An element differs.
    Differs(Difference),
}

/// A run of all launches with one seed.
pub(crate) struct Outcome {
    /// The kernel and the report of each launch that ran to its end.
    pub(crate) reports: Vec<(String, Report)>,
    /// The lines that are traced.
    pub(crate) traced: Vec<u32>,
    /// Of each launch that began, if lines are traced.
    pub(crate) traces: Vec<Trace>,
    pub(crate) ended: Ended,
    pub(crate) seed: u64,
    /// Number of schedules so far.
    pub(crate) schedules: u64,
    /// Number of expectations in the file.
    pub(crate) expectations: usize,
    pub(crate) wall_seconds: f64,
    /// What the same launches did on a GPU, if they ran on one.
    pub(crate) on_gpu: Option<OnGpu>,
}

impl Outcome {
    pub(crate) fn exit(&self, strict: bool) -> Exit {
        let mut notes = self.reports.iter().flat_map(|(_, report)| &report.notes);
        let is_noted = notes.any(is_strict);
        match &self.ended {
            Ended::Fault(_) | Ended::Unwritten { .. } => Exit::Fault,
            Ended::Differs(_) => Exit::Differs,
            Ended::AsExpected if strict && is_noted => Exit::Fault,
            Ended::AsExpected => Exit::Done,
        }
    }

    /// Whether a GPU agrees, if the launches ran on one.
    pub(crate) fn is_right_on_gpu(&self) -> bool {
        self.on_gpu.as_ref().is_none_or(OnGpu::is_right)
    }

    /// What happened, in a line for each fact.
    pub(crate) fn print(&self, exit: Exit) {
        for (number, trace) in (1..).zip(&self.traces) {
            if self.traces.len() > 1 {
                say!("launch {number}:");
            }
            if !trace.executions.is_empty() {
                say!("{}", trace.to_string().trim_end());
            }
            let is_reached = |line: &&u32| trace.executions.iter().any(|execution| execution.ptx_line == **line);
            for line in self.traced.iter().filter(|line| trace.omitted == 0 && !is_reached(line)) {
                say!("PTX line {line} is not reached");
            }
        }
        for (kernel, report) in &self.reports {
            let (threads, warps) = (report.thread_instructions, report.warp_instructions);
            say!("{kernel}: {threads} thread instructions, {warps} warp instructions");
            for note in &report.notes {
                say!("note: {} at PTX line {}, {} times", note.name, note.ptx_line, note.count);
            }
        }
        match &self.ended {
            Ended::Fault(fault) => say!("fault: {fault} (seed {})", self.seed),
            Ended::Unwritten { buffer, offset } => {
                say!("fault: uninitialized_read: byte {offset} of `{buffer}` is expected and was never written");
            }
            Ended::Differs(difference) => say!("differs: {difference} (seed {})", self.seed),
            Ended::AsExpected if exit == Exit::Fault => {
                for note in self.reports.iter().flat_map(|(_, report)| &report.notes).filter(|note| is_strict(note)) {
                    let (name, line, seed) = (&note.name, note.ptx_line, self.seed);
                    say!("fault: {name} at PTX line {line}, which --strict takes for a race (seed {seed})");
                }
            }
            Ended::AsExpected if self.schedules > 1 => {
                say!("ok: expectations that hold: {}, in {} schedules", self.expectations, self.schedules);
            }
            Ended::AsExpected => say!("ok: expectations that hold: {}", self.expectations),
        }
        if let Some(on_gpu) = &self.on_gpu {
            on_gpu.print();
        }
    }

    pub(crate) fn json(&self, exit: Exit) -> Value {
        let fault = match &self.ended {
            Ended::Fault(fault) => fault_json(fault),
            Ended::Unwritten { buffer, offset } => json!({
                "kind": "uninitialized_read",
                "message": format!("byte {offset} of `{buffer}` is expected and was never written"),
                "location": {"space": "global", "name": buffer, "offset": offset, "length": 1},
            }),
            Ended::AsExpected | Ended::Differs(_) => Value::Null,
        };
        let difference = match &self.ended {
            Ended::Differs(found) => json!({
                "buffer": found.buffer,
                "index": found.index,
                "expected": found.expected.to_string(),
                "got": found.got.to_string(),
                "differing": found.differing,
                "all": found.all,
            }),
            _ => Value::Null,
        };
        let launches: Vec<Value> = self.reports.iter().map(|(kernel, report)| launch_json(kernel, report)).collect();
        json!({
            "status": exit.name(),
            "fault": fault,
            "difference": difference,
            "seed": self.seed,
            "launches": launches,
            "traces": self.traces.iter().map(trace_json).collect::<Vec<Value>>(),
            "wall_seconds": self.wall_seconds,
            "gpu": self.on_gpu.as_ref().map(OnGpu::json),
        })
    }
}

/// Whether `--strict` takes it for a fault.
fn is_strict(note: &Note) -> bool {
    note.name == "benign_race"
}

fn trace_json(trace: &Trace) -> Value {
    let value = |value: &TracedValue| match value {
        TracedValue::Undefined => json!("undefined"),
        TracedValue::Integer(value) => json!(*value as i64),
        // JSON has no NaN and no infinities.
        TracedValue::Single(value) => json!(value.to_string()),
        TracedValue::Double(value) => json!(value.to_string()),
        TracedValue::Flag(value) => json!(value),
        TracedValue::At(name, offset) => json!({"name": name, "offset": offset}),
    };
    let values = |all: &[TracedValue]| all.iter().map(value).collect::<Vec<Value>>();
    let operand = |operand: &TracedOperand| json!({"name": operand.name, "before": values(&operand.before), "after": values(&operand.after)});
    let execution = |found: &Traced| {
        json!({
            "ptx_line": found.ptx_line,
            "ptx": found.ptx,
            "cta": found.cta,
            "warp": found.warp,
            "lanes": found.lanes,
            "has_faulted": found.has_faulted,
            "operands": found.operands.iter().map(operand).collect::<Vec<Value>>(),
        })
    };
    json!({"executions": trace.executions.iter().map(execution).collect::<Vec<Value>>(), "omitted": trace.omitted})
}

fn launch_json(kernel: &str, report: &Report) -> Value {
    let opcode = |(name, (warps, threads)): (&String, &(u64, u64))| {
        (name.clone(), json!({"warp_instructions": warps, "thread_instructions": threads}))
    };
    let accesses: Vec<Value> = report
        .accesses
        .iter()
        .map(|access| {
            json!({
                "ptx_line": access.ptx_line,
                "cuda_line": access.cuda_line,
                "space": access.space.as_str(),
                "buffer": access.buffer,
                "executions": access.executions,
                "wavefronts": access.wavefronts,
                "ideal_wavefronts": access.ideal_wavefronts,
                "sectors": access.sectors,
                "ideal_sectors": access.ideal_sectors,
                "bytes": access.bytes,
            })
        })
        .collect();
    let barrier = |count: &tilewright::vgpu::BarrierCount| json!({"id": count.id, "phases": count.phases, "arrivals": count.arrivals, "waits": count.waits});
    let note = |note: &Note| json!({"name": note.name, "ptx_line": note.ptx_line, "count": note.count});
    json!({
        "kernel": kernel,
        "counts": {
            "thread_instructions": report.thread_instructions,
            "warp_instructions": report.warp_instructions,
            "opcodes": report.opcodes.iter().map(opcode).collect::<serde_json::Map<String, Value>>(),
            "accesses": accesses,
            "bulk": {
                "copies": report.bulk.copies,
                "bytes": report.bulk.bytes,
                "sectors": report.bulk.sectors,
                "ideal_sectors": report.bulk.ideal_sectors,
            },
        },
        "barriers": report.barriers.iter().map(barrier).collect::<Vec<Value>>(),
        "notes": report.notes.iter().map(note).collect::<Vec<Value>>(),
    })
}

fn fault_json(fault: &Fault) -> Value {
    let location = fault.location.as_ref().map(|location| {
        json!({
            "space": location.space.as_str(),
            "name": location.name,
            "offset": location.offset,
            "length": location.length,
        })
    });
    let waiting: Vec<Value> = fault
        .waiting
        .iter()
        .map(|item| json!({"warp": item.warp, "lanes": item.lanes, "what": item.what, "at": place_json(&item.at)}))
        .collect();
    json!({
        "kind": fault.kind.as_str(),
        "message": fault.message,
        "at": place_json(&fault.at),
        "cta": fault.cta,
        "warp": fault.warp,
        "lanes": fault.lanes,
        "address": fault.address,
        "location": location,
        "related": fault.related.as_ref().map(place_json),
        "waiting": waiting,
    })
}

fn place_json(place: &Place) -> Value {
    let line = |line: &CudaLine| json!({"file": line.file, "line": line.line});
    json!({
        "ptx_line": place.ptx_line,
        "ptx": place.ptx,
        "cuda": place.cuda.as_ref().map(line),
        "inlined_at": place.inlined_at.as_ref().map(line),
    })
}
