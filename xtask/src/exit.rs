use std::process::ExitCode;

use tilewright::diag::Diagnostic;
use tilewright::runtime::FailureKind;

/// How a verb ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked.
    Done,
    /// A result differs from what was expected.
    Differs,
    /// The kernel did something wrong while it ran.
    Fault,
    /// Something is missing on this machine, or not supported.
    Unsupported,
    /// The input is wrong.
    BadInput,
    /// Tilewright is wrong: a defect of its own.
    Defect,
}

impl Exit {
    /// Every outcome, in the order of their statuses.
    const ALL: [Exit; 6] = [Exit::Done, Exit::Differs, Exit::Fault, Exit::Unsupported, Exit::BadInput, Exit::Defect];

    /// How a command ends that found these: with a defect if one is among them, else as `otherwise` says.
    pub(crate) fn of_findings(found: &[Diagnostic], otherwise: Exit) -> Exit {
        if found.iter().any(Diagnostic::is_internal) { Exit::Defect } else { otherwise }
    }

    fn status(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Differs => 1,
            Exit::Fault => 2,
            Exit::Unsupported => 3,
            Exit::BadInput => 4,
            Exit::Defect => 5,
        }
    }

    /// How a command ended that exited with this status, if it is one of ours.
    pub(crate) fn of_status(status: i32) -> Option<Exit> {
        Exit::ALL.into_iter().find(|exit| i32::from(exit.status()) == status)
    }

    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Differs => "differs",
            Exit::Fault => "fault",
            Exit::Unsupported => "unsupported",
            Exit::BadInput => "bad_input",
            Exit::Defect => "defect",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.status())
    }
}

impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Exit {
        match kind {
            FailureKind::Fault => Exit::Fault,
            FailureKind::Unsupported => Exit::Unsupported,
            FailureKind::BadInput => Exit::BadInput,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_neither_a_fault_nor_bad_input() {
        let (mistake, defect) = (Diagnostic::error("K0218", "wrong"), Diagnostic::internal("V0305", "wrong"));
        assert_eq!(Exit::of_findings(std::slice::from_ref(&mistake), Exit::BadInput), Exit::BadInput);
        assert_eq!(Exit::of_findings(&[mistake, defect], Exit::BadInput).status(), 5);
        assert!(Exit::ALL.into_iter().enumerate().all(|(at, exit)| usize::from(exit.status()) == at));
    }
}
