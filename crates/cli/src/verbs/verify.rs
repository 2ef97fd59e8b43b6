use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_core::mission::check::Fault;
use tenure_host::file::read_plain;
use tenure_service::error::Error;
use tenure_service::mirror::compare::disagreements;
use tenure_service::mirror::content::Context;

use crate::app::{App, place};
use crate::output::{Outcome, Shown};

/// Check that this is the session it is taken for: exit 0, or 6 with every disagreement
///
/// Variables must agree with what the kernel says, the session must live, and its active mission must be in
/// order. With --session: it must be that one. With --project: it must work there. With --file: a context
/// file must be its own and not stale.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure verify
  tenure verify --project . --session claude-k7qd
  tenure verify --file ~/.claude/pact-session-context.json || exit 1")]
pub struct Args {
    /// A context file that should be this session's
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,

    /// The directory or repository that it should work in
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let project = args.project.as_deref().map(place).transpose()?;
    let mut opened = app.open()?;
    let here = opened.here();
    let answer = opened
        .service()
        .verify(&app.naming(None), &here, project.as_ref())?;
    let verified = &answer.value;
    let mut faults = verified.faults.clone();
    if let Some(path) = &args.file {
        faults.extend(of_file(path, &verified.context));
    }
    let handle = &verified.context.session.handle;
    if !faults.is_empty() {
        let what = match &args.file {
            Some(path) => format!("{} for {handle}", path.display()),
            None => handle.clone(),
        };
        let mut trouble = crate::output::Trouble::from(Error::Faulty { what, faults });
        trouble.problem.notices = answer.notices;
        return Err(trouble);
    }
    let part = json!({"session": handle, "id": verified.context.session.id, "faults": []});
    Ok(Shown::new("verified", &part, format!("{handle}: everything agrees")).told(&answer))
}

/// What disagrees in a file, which may be missing or something else than a file.
fn of_file(path: &Path, context: &Context) -> Vec<Fault> {
    let shown = path.display().to_string();
    let why = match read_plain(path) {
        Ok(Some(text)) => return disagreements(&text, &shown, context),
        Ok(None) => "it does not exist".to_owned(),
        Err(error) => error.to_string(),
    };
    vec![Fault {
        mission: None,
        subject: shown.clone(),
        field: "file",
        value: shown,
        why,
        hints: vec![tenure_core::hint::Hint::verb(
            "whoami",
            "and use its answer instead of the file",
        )],
    }]
}
