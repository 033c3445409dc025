//! Checks the names that `emit` treats as reserved against an NVRTC: it rejects each of them or defines something else
//! with that name, and accepts the name with an underscore appended.

use std::collections::BTreeSet;

use tilewright::cuda::{CudaError, LogLine, Nvrtc, Request, Severity};
use tilewright::emit::reserved::{Place, listed};

/// Names that are not reserved, though they look like it.
const PLAIN: [&str; 9] = ["x", "row", "y2", "index", "time", "signal", "char8_t", "requires", "linux"];

/// Names that C++ reserves because of how they begin.
const OF_THE_LANGUAGE: [&str; 5] = ["__syncthreads", "__shared__", "__LINE__", "__x", "_Bool"];

/// The vector types that generated text uses, and their numbers of components.
const VECTORS: [(&str, usize); 9] = [
    ("int2", 2),
    ("int4", 4),
    ("uint2", 2),
    ("uint4", 4),
    ("float2", 2),
    ("float4", 4),
    ("double2", 2),
    ("longlong2", 2),
    ("ulonglong2", 2),
];

/// Probes in one text: NVRTC stops at its hundredth error.
const TOGETHER: usize = 50;

/// The number of names checked, and what is wrong with the list.
pub(super) fn check(nvrtc: &Nvrtc, target: &str) -> Result<(usize, Vec<String>), String> {
    let trial = Trial { nvrtc, target };
    let (inside, outside): (Vec<&str>, Vec<&str>) = (listed(Place::Inside).collect(), listed(Place::Outside).collect());
    let mut wrong = Vec::new();
    for name in &inside {
        if trial.complaints(&parameter(0, name))?.is_empty() {
            wrong.push(format!("`{name}` is listed, but can be a parameter"));
        }
    }
    for names in outside.chunks(TOGETHER) {
        for name in trial.unknown(names)? {
            if trial.is_a_kernel(name)? && trial.complaints(&table(0, name))?.is_empty() {
                wrong.push(format!("`{name}` is listed, but can be a kernel and a table"));
            }
        }
    }
    let reserved = inside.iter().chain(&outside).chain(&OF_THE_LANGUAGE);
    let mut renamed: Vec<String> = reserved.map(|name| format!("{name}_")).collect();
    renamed.extend(PLAIN.map(str::to_string));
    let renamed: Vec<&str> = renamed.iter().map(String::as_str).collect();
    for names in renamed.chunks(TOGETHER) {
        wrong.extend(trial.first_complaint(entry, names)?);
        wrong.extend(trial.first_complaint(table, names)?);
        wrong.extend(trial.first_complaint(parameter, names)?);
    }
    for names in outside.chunks(TOGETHER) {
        wrong.extend(trial.first_complaint(parameter, names)?);
    }
    Ok((inside.len() + outside.len(), wrong))
}

/// A kernel of this name.
fn entry(_: usize, name: &str) -> String {
    format!("extern \"C\" __global__ void {name}(float* to, const int* from) {{ to[0] = from[0]; }}")
}

/// A table of this name.
fn table(number: usize, name: &str) -> String {
    let kernel = format!("extern \"C\" __global__ void probe_{number}(int* to) {{ to[0] = {name}[to[1]]; }}");
    format!("__device__ alignas(16) const int {name}[4] = {{1, 2, 3, 4}}; {kernel}")
}

/// A kernel with a parameter of this name, which uses the CUDA types and variables that generated kernels use.
/// Functions are not included: generated text calls them from outside the kernel if a name hides them.
fn parameter(number: usize, name: &str) -> String {
    let vectors = VECTORS.map(|(vector, parts)| {
        let zeros = vec!["0"; parts].join(", ");
        format!("{{ {vector} v = make_{vector}({zeros}); reinterpret_cast<{vector}&>(to[4]) = v; }}")
    });
    let indices = "threadIdx.x + blockIdx.x + blockDim.x + gridDim.x + warpSize";
    let body = format!("to[0] = {name}[0]; to[1] = (float)({indices}); {}", vectors.join(" "));
    format!("extern \"C\" __global__ void probe_{number}(float* to, const float* {name}) {{ {body} }}")
}

/// A use of something that already has this name.
fn known(number: usize, name: &str) -> String {
    format!("namespace probe_{number} {{ using ::{name}; }}")
}

/// One line for each name.
fn lines(probe: fn(usize, &str) -> String, names: &[&str]) -> String {
    names.iter().enumerate().map(|(number, name)| probe(number, name) + "\n").collect()
}

/// The line of a message. Without one, it is about no name.
fn number_of_line(message: &LogLine) -> Result<usize, String> {
    let number = message.line.ok_or_else(|| format!("NVRTC says, without a line: {}", message.text))?;
    Ok(number as usize)
}

/// Compiles texts to check names.
struct Trial<'a> {
    nvrtc: &'a Nvrtc,
    target: &'a str,
}

impl Trial<'_> {
    /// Errors and warnings, and the PTX if there are no errors.
    fn compiled(&self, source: &str) -> Result<(Vec<LogLine>, String), String> {
        let request = Request { source, name: "/tilewright/names.cu", target: self.target, options: &[] };
        let (mut log, ptx) = match self.nvrtc.compile(&request) {
            Ok(compiled) => (compiled.log, compiled.ptx),
            Err(CudaError::Compile { log, .. }) => (log, String::new()),
            Err(error) => return Err(error.to_string()),
        };
        log.retain(|line| matches!(line.severity, Severity::Error | Severity::Warning));
        Ok((log, ptx))
    }

    /// Errors and warnings.
    fn complaints(&self, source: &str) -> Result<Vec<LogLine>, String> {
        Ok(self.compiled(source)?.0)
    }

    /// Whether a kernel can have this name, and is launched by it: a macro would change the name.
    fn is_a_kernel(&self, name: &str) -> Result<bool, String> {
        let (complaints, ptx) = self.compiled(&entry(0, name))?;
        Ok(complaints.is_empty() && ptx.contains(&format!(".entry {name}(")))
    }

    /// The names for which CUDA declares nothing that can be referred to.
    fn unknown<'n>(&self, names: &[&'n str]) -> Result<Vec<&'n str>, String> {
        let complaints = self.complaints(&lines(known, names))?;
        let refused: Result<BTreeSet<usize>, String> = complaints.iter().map(number_of_line).collect();
        let refused = refused?;
        let numbered = (1..).zip(names);
        Ok(numbered.filter(|(line, _)| refused.contains(line)).map(|(_, name)| *name).collect())
    }

    /// What NVRTC reports about names that it should accept.
    fn first_complaint(&self, probe: fn(usize, &str) -> String, names: &[&str]) -> Result<Option<String>, String> {
        let complaints = self.complaints(&lines(probe, names))?;
        let Some(first) = complaints.first() else { return Ok(None) };
        let name = first.line.and_then(|line| names.get((line as usize).checked_sub(1)?)).unwrap_or(&"a name");
        Ok(Some(format!("{name} is not listed, but NVRTC says: {}", first.text)))
    }
}
