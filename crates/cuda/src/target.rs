//! Target names such as `sm_90`, `sm_100a`, `sm_100f`, and which GPU can run their machine code.

/// A parsed target name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// The number in the name: 100 for `sm_100a`.
    pub(crate) architecture: u32,
    /// True with the suffix `a`: the code runs on exactly this architecture.
    exact: bool,
}

impl Target {
    /// Reads `sm_` + two or three digits + optionally `a` or `f`.
    ///
    /// `compute_NN` names are not targets here: they yield PTX only, and no cubin.
    pub(crate) fn parse(text: &str) -> Option<Target> {
        let rest = text.strip_prefix("sm_")?;
        let digits = rest.strip_suffix(['a', 'f']).unwrap_or(rest);
        let plausible = matches!(digits.len(), 2 | 3) && digits.bytes().all(|b| b.is_ascii_digit());
        let architecture = digits.parse::<u32>().ok().filter(|_| plausible)?;
        Some(Target { architecture, exact: rest.ends_with('a') })
    }

    fn runs_on(self, compute_capability: (u32, u32)) -> bool {
        let wanted = (self.architecture / 10, self.architecture % 10);
        if self.exact {
            return compute_capability == wanted;
        }
        compute_capability.0 == wanted.0 && compute_capability.1 >= wanted.1
    }
}

/// Whether the driver of a GPU of this compute capability, given as (major, minor), can compile PTX for `target`: any older
/// architecture, or with the suffix `a` or `f` one whose cubin it runs (CUDA programming guide, "PTX Compatibility").
pub fn can_compile(target: &str, compute_capability: (u32, u32)) -> bool {
    Target::parse(target).is_some_and(|parsed| {
        let is_plain = target.ends_with(|last: char| last.is_ascii_digit());
        let have = compute_capability.0 * 10 + compute_capability.1;
        if is_plain { parsed.architecture <= have } else { parsed.runs_on(compute_capability) }
    })
}

/// Whether a GPU of this compute capability, given as (major, minor), runs a cubin compiled for `target`.
///
/// `sm_90a` runs on 9.0 only and `sm_100a` on 10.0 only; a plain `sm_NN` and a family target `sm_NNf` run on the same
/// major version from their own minor version on (CUDA programming guide, "Compute Capability and Streaming
/// Multiprocessor Versions"). A name that is not a target runs nowhere.
pub fn can_run(target: &str, compute_capability: (u32, u32)) -> bool {
    Target::parse(target).is_some_and(|target| target.runs_on(compute_capability))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_for_an_older_architecture_is_compiled() {
        assert!(can_compile("sm_80", (9, 0)));
        assert!(can_compile("sm_90a", (9, 0)));
        assert!(!can_compile("sm_90a", (10, 0)));
        assert!(!can_compile("sm_100", (9, 0)));
        assert!(!can_compile("cpu", (9, 0)));
    }

    #[test]
    fn architecture_specific_code_runs_on_that_architecture_only() {
        assert!(can_run("sm_100a", (10, 0)));
        assert!(!can_run("sm_100a", (10, 3)));
        assert!(can_run("sm_90a", (9, 0)));
        assert!(!can_run("sm_90a", (10, 0)));
    }

    #[test]
    fn plain_and_family_code_run_on_later_minors_of_the_same_major() {
        assert!(can_run("sm_80", (8, 6)));
        assert!(!can_run("sm_86", (8, 0)));
        assert!(!can_run("sm_80", (9, 0)));
        assert!(can_run("sm_100f", (10, 3)));
        assert!(!can_run("sm_100f", (12, 0)));
    }

    #[test]
    fn what_is_not_a_target_runs_nowhere() {
        for name in ["", "sm_", "sm_a", "sm_1", "sm_1000", "sm_+90", "sm_90x", "sm_90aa", "compute_90"] {
            assert_eq!(Target::parse(name), None, "{name}");
            assert!(!can_run(name, (9, 0)), "{name}");
        }
    }
}
