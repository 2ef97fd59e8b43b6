use std::path::Path;

use tenure_app::import::import;
use tenure_core::import::Format;
use tenure_core::text;
use tenure_doctor::backup;
use tenure_service::view::{ImportView, ImportedView};

use crate::app::{App, Changes};
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Cell, Outcome, Output, table};

/// Take over what another system kept: conversations, missions, finished sessions
///
/// Without --apply nothing is written: the report shows what would be taken, what is refused (exit 6) and what is left,
/// each with the reason. Nothing here is replaced and no claim is granted, so a second import changes nothing. The other
/// system's data stays as it is. docs/coming-from.md says what changes for its users.
///
/// The format tenure is what `tenure export` wrote: all rows of another store, for one that is empty. Ids and history stay
/// the same; every epoch is raised, and open sessions get a new lease.
///
///   openclaw      its state directory, or an older sessions.json
///   claude-hooks  its sessions.json
///   spec-kitty    its directory (~/.spec-kitty)
///   pact          its pact-sessions directory (~/.claude/pact-sessions)
///   ehg           a CSV of claude_sessions, or postgres://USER@HOST/DATABASE
///   tenure        a file that `tenure export` wrote
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  tenure import openclaw ~/.openclaw
  tenure import claude-hooks sessions.json --apply
  TENURE_STORE='postgres://ann@db.example/work' tenure import tenure all.jsonl --apply
  tenure import ehg 'postgres://reader@db.example/ehg?sslmode=require' --json | jq '.import.entries[]'"
)]
pub struct Args {
    /// System: openclaw, claude-hooks, spec-kitty, pact, ehg or tenure
    #[arg(value_name = "FORMAT")]
    format: String,

    /// File, directory or URL
    #[arg(value_name = "PATH")]
    path: String,

    /// Write what is taken
    #[arg(long)]
    apply: bool,
}

impl Args {
    pub fn changes(&self) -> Changes {
        if self.apply {
            Changes::Anything
        } else {
            Changes::Nothing
        }
    }

    /// Whether it reads another database on a server.
    pub fn names_server(&self) -> bool {
        self.path.contains("://")
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let format = Format::parse(&args.format)?;
    if format == Format::Tenure {
        let report = backup::import(Path::new(&args.path), args.apply)?;
        let text = shown(&report, args);
        return Ok(Output::new("import", &report, text));
    }
    let mut context = app.open()?;
    let answer = import(&mut context, format, &args.path, args.apply)?;
    let report = &answer.value;
    let mut output = Output::new("import", report, shown(report, args)).told(&answer);
    if report.refused > 0 {
        output = output.exit(Exit::INVALID);
    }
    Ok(output)
}

fn shown(report: &ImportView, args: &Args) -> Lines {
    let rows = report.entries.iter().map(row).collect::<Vec<_>>();
    let mut text = table(&["", "entry", ""], &rows);
    text.line(format!(
        "read {}: {} taken, {} refused, {} left",
        report.read, report.taken, report.refused, report.left
    ));
    if !report.applied && report.taken > 0 {
        let path = text::shell(&args.path);
        text.line(format!(
            "nothing was written; run `tenure import {} {path} --apply` to take them",
            report.format
        ));
    }
    text
}

fn row(one: &ImportedView) -> Vec<Cell> {
    let said = one
        .became
        .as_deref()
        .or(one.why.as_deref())
        .unwrap_or_default();
    [one.verdict, &one.name, said].map(Cell::plain).into()
}
