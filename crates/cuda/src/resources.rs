//! Registers, spills and shared memory of each kernel, from the report of `--ptxas-options=-v`.

/// The resource usage of one kernel, as reported by ptxas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    /// The entry function's name in the PTX.
    pub kernel: String,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Bytes of spill stores per thread.
    pub spill_store_bytes: u32,
    /// Bytes of spill loads per thread.
    pub spill_load_bytes: u32,
    /// Bytes of stack per thread, including that of the functions it calls if ptxas reports it.
    pub stack_bytes: u32,
    /// Bytes of static shared memory per CTA.
    pub shared_bytes: u32,
    /// Named barriers in use, of 16.
    pub barriers: u32,
}

/// What the lines about one kernel have said so far.
#[derive(Default)]
struct Report {
    kernel: String,
    registers: Option<u32>,
    spill_store_bytes: Option<u32>,
    spill_load_bytes: Option<u32>,
    stack_bytes: Option<u32>,
    /// Left out by ptxas if there is none.
    shared_bytes: u32,
    /// Left out by some versions of ptxas if there are none.
    barriers: u32,
}

impl Report {
    /// The resource usage, if every number was reported that always is.
    fn finish(self) -> Option<Resources> {
        Some(Resources {
            kernel: self.kernel,
            registers: self.registers?,
            spill_store_bytes: self.spill_store_bytes?,
            spill_load_bytes: self.spill_load_bytes?,
            stack_bytes: self.stack_bytes?,
            shared_bytes: self.shared_bytes,
            barriers: self.barriers,
        })
    }

    fn raise_stack(&mut self, bytes: u32) {
        self.stack_bytes = self.stack_bytes.max(Some(bytes));
    }
}

/// Parses the resource usage of every entry function from an NVRTC log, in the order of the log.
///
/// Functions that are not kernels have property lines too; they are left out. So are kernels whose report is incomplete
/// or in another form: a number that is not known must not pass for 0.
pub(crate) fn parse_resources(log: &str) -> Vec<Resources> {
    let mut kernels: Vec<Report> = Vec::new();
    let mut described = "";
    for line in log.lines() {
        if let Some(name) = quoted_after(line, "Compiling entry function '") {
            kernels.push(Report { kernel: name.to_string(), ..Report::default() });
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            described = name.trim();
        } else if let Some(kernel) = kernels.last_mut() {
            if line.contains("bytes stack frame") {
                if described == kernel.kernel {
                    read_frame(line, kernel);
                }
            } else if let Some((_, usage)) = line.split_once(": Used ") {
                read_usage(usage, kernel);
            }
        }
    }
    kernels.into_iter().filter_map(Report::finish).collect()
}

/// The text between `start`, which ends in a quote, and the next quote.
fn quoted_after<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(start)?;
    rest.split('\'').next()
}

/// `0 bytes stack frame, 72 bytes spill stores, 72 bytes spill loads`, after whatever the version puts before it.
fn read_frame(line: &str, kernel: &mut Report) {
    for part in line.split(',') {
        let words: Vec<&str> = part.split_whitespace().collect();
        let [.., number, "bytes", what, kind] = words[..] else {
            continue;
        };
        let Ok(number) = number.parse() else {
            continue;
        };
        match (what, kind) {
            ("stack", "frame") => kernel.raise_stack(number),
            ("spill", "stores") => kernel.spill_store_bytes = Some(number),
            ("spill", "loads") => kernel.spill_load_bytes = Some(number),
            _ => {}
        }
    }
}

/// `64 registers, used 1 barriers, 304 bytes cumulative stack size, 1024 bytes smem, 380 bytes cmem[0]`.
fn read_usage(usage: &str, kernel: &mut Report) {
    for part in usage.split(',') {
        let part = part.trim();
        let part = part.strip_prefix("used ").unwrap_or(part);
        let Some((number, what)) = part.split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse() else {
            continue;
        };
        match what {
            "registers" => kernel.registers = Some(number),
            "barriers" => kernel.barriers = number,
            "bytes smem" => kernel.shared_bytes = number,
            "bytes cumulative stack size" => kernel.raise_stack(number),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NVRTC 13.5.37.
    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'd' for 'sm_100a'
ptxas info    : Function properties for d
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 0 barriers
ptxas info    : Compile time = 30.772 ms
ptxas info    : Function properties for _Z1hff
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_100a'
ptxas info    : Function properties for k
ptxas         .     304 bytes stack frame, 72 bytes spill stores, 68 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 312 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 45.396 ms
";

    fn unused(kernel: &str) -> Resources {
        Resources {
            kernel: kernel.to_string(),
            registers: 0,
            spill_store_bytes: 0,
            spill_load_bytes: 0,
            stack_bytes: 0,
            shared_bytes: 0,
            barriers: 0,
        }
    }

    #[test]
    fn a_report_in_another_form_is_not_a_report_of_zeros() {
        let complete = "\
ptxas info    : Compiling entry function 'k' for 'sm_100a'
ptxas info    : Function properties for k
    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 32 registers
";
        assert_eq!(parse_resources(complete).len(), 1);
        for (word, other) in [
            ("spill stores", "spilled stores"),
            ("spill loads", "loads"),
            ("32 registers", "registers: 32"),
            ("properties for k", "properties for 'k'"),
            ("stack frame", "of stack"),
            ("4 bytes", "4B"),
        ] {
            assert_eq!(parse_resources(&complete.replace(word, other)), [], "{other}");
        }
    }

    #[test]
    fn every_kernel_has_its_own_numbers() {
        let mut k = unused("k");
        k.registers = 64;
        k.barriers = 1;
        k.stack_bytes = 312;
        k.spill_store_bytes = 72;
        k.spill_load_bytes = 68;
        k.shared_bytes = 1024;
        let mut d = unused("d");
        d.registers = 16;
        assert_eq!(parse_resources(LOG), [d, k]);
    }

    #[test]
    fn the_older_form_is_read_too() {
        let log = "\
ptxas info    : Compiling entry function 'sf' for 'sm_90a'
ptxas info    : Function properties for sf
    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 32 registers, 1024 bytes smem, 380 bytes cmem[0]
";
        let mut sf = unused("sf");
        sf.registers = 32;
        sf.shared_bytes = 1024;
        sf.spill_store_bytes = 4;
        sf.spill_load_bytes = 8;
        assert_eq!(parse_resources(log), [sf]);
    }

    #[test]
    fn a_log_without_a_report_has_no_kernels() {
        assert!(parse_resources("").is_empty());
        assert!(parse_resources("k.cu(3): error: : Used 3 registers\n").is_empty());
    }
}
