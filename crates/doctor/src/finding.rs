//! What is wrong, and what can be done about it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use tenure_app::mirror::left::LeftMirror;
use tenure_service::answer::Problem;

use crate::code::Code;

/// What a check answers.
pub(crate) type Found = Result<Vec<Finding>, Problem>;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It works, but not as it should, or not for long.
    Warning,
    /// Something does not work, or is not protected.
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Finding {
    /// Its name for programs; it stays the same in later versions.
    pub code: Code,
    pub severity: Severity,
    pub what: String,
    /// What it was found by.
    pub evidence: Vec<String>,
    /// What `--fix` does about it; null if it cannot do anything.
    pub fix: Option<String>,
    /// What a person can do.
    pub advice: Option<String>,
    #[serde(skip)]
    pub(crate) repair: Option<Repair>,
}

impl Finding {
    pub(crate) fn new(code: Code, severity: Severity, what: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            what: what.into(),
            evidence: Vec::new(),
            fix: None,
            advice: None,
            repair: None,
        }
    }

    pub(crate) fn error(code: Code, what: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, what)
    }

    pub(crate) fn warning(code: Code, what: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, what)
    }

    pub(crate) fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    pub(crate) fn repaired_by(mut self, repair: Repair) -> Self {
        self.fix = Some(repair.plan());
        self.repair = Some(repair);
        self
    }
}

/// A number of things, in words.
pub(crate) fn several(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Sets modes; they only take rights away.
    Mode(Vec<(PathBuf, u32)>),
    /// Records the deaths of sessions whose processes are dead.
    RecordDeaths,
    /// Copies the log into the database.
    CutLog,
    /// Removes or marks mirrors of sessions that are over.
    SettleMirrors(Vec<LeftMirror>),
    /// Runs another command of tenure.
    Run(Vec<String>),
}

impl Repair {
    /// What it does, as an order.
    pub fn plan(&self) -> String {
        match self {
            Self::Mode(files) => match files.as_slice() {
                [(one, mode)] => format!("set the mode of {} to {mode:04o}", one.display()),
                files => format!("take the rights of others from {} files", files.len()),
            },
            Self::RecordDeaths => {
                "record the deaths, as every command does that meets these sessions".to_owned()
            }
            Self::SettleMirrors(left) => {
                format!(
                    "remove or mark {}, as at the end of a session",
                    several(left.len(), "file")
                )
            }
            Self::CutLog => "copy the log into the database".to_owned(),
            Self::Run(words) => format!("run `tenure {}`", words.join(" ")),
        }
    }

    pub fn changes_data(&self) -> bool {
        !matches!(self, Self::Mode(_))
    }
}
