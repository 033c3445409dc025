use std::process::ExitCode;

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
}

impl Exit {
    /// Every outcome, in the order of their statuses.
    const ALL: [Exit; 5] = [Exit::Done, Exit::Differs, Exit::Fault, Exit::Unsupported, Exit::BadInput];

    fn status(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Differs => 1,
            Exit::Fault => 2,
            Exit::Unsupported => 3,
            Exit::BadInput => 4,
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
