//! What was captured: `runs/AGENT-VERSION/NAME.jsonl` with how the program was started and ended beside it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_agents::adapter;
use tenure_agents::run::{AgentRun, Piece, Runs, Splitter};
use tenure_core::conversation::fitness::Left;
use tenure_core::run::end::{End, Ending, Exit, Start, Stop, judge};
use tenure_core::run::failure::AgentFailure;
use tenure_core::run::line::{RunLine, Tokens};
use tenure_core::run::progress::{RunProgress, Totals};
use tenure_core::time::Timestamp;

/// When the captures were made.
pub const NOW: Timestamp = Timestamp(1_794_735_000_000);

pub struct Capture {
    /// `claude-2.1.325/fresh`
    pub name: String,
    pub run: &'static AgentRun,
    pub stream: Vec<u8>,
    pub exit: Exit,
    pub stderr: String,
    pub resumed: bool,
    /// Whether the capture was ended because the agent did not end.
    pub gave_up: bool,
}

pub fn run_of(agent: &str) -> &'static AgentRun {
    let row = adapter(agent).expect("it has a row");
    row.runs.as_ref().expect("it runs unattended")
}

fn inside(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("runs were captured");
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.expect("they can be read").path())
        .collect();
    all.sort();
    all
}

fn stem(path: &Path) -> String {
    let name = path.file_name().expect("it has a name");
    name.to_string_lossy().replace(".jsonl", "")
}

/// Every stream that was captured.
pub fn all() -> Vec<Capture> {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs");
    let files = inside(&runs).into_iter().flat_map(|dir| inside(&dir));
    let streams = files.filter(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    streams.map(|file| one(&file)).collect()
}

fn one(file: &Path) -> Capture {
    let folder = stem(file.parent().expect("it is in a folder"));
    let agent = folder.rsplit_once('-').expect("AGENT-VERSION").0;
    let meta = std::fs::read(file.with_extension("meta.json")).expect("it has a description");
    let meta: Value = serde_json::from_slice(&meta).expect("it is JSON");
    let code = i32::try_from(meta["rc"].as_i64().expect("it ended")).expect("codes are small");
    let exit = if code < 0 {
        Exit::Signal(-code)
    } else {
        Exit::Code(code)
    };
    let is_resume =
        |word: &Value| matches!(word.as_str(), Some("resume" | "--resume" | "--session"));
    Capture {
        name: format!("{folder}/{}", stem(file)),
        run: run_of(agent),
        stream: std::fs::read(file).expect("it can be read"),
        exit,
        stderr: meta["stderr"].as_str().expect("a text").to_owned(),
        resumed: meta["args"]
            .as_array()
            .expect("words")
            .iter()
            .any(is_resume),
        gave_up: meta["gave_up"] == true,
    }
}

impl Capture {
    pub fn seen(&self) -> RunProgress {
        read(self.run, &self.stream, self.before())
    }

    /// What the conversation had used: two captures of one Codex thread come before these.
    fn before(&self) -> Totals {
        if !self.resumed {
            return Totals::NOTHING;
        }
        let tokens = match self.name.as_str() {
            "codex-0.166.0/a-resume" => Some(Tokens {
                input: 10,
                output: 5,
            }),
            "codex-0.166.0/d-ssefaillong-3" => Some(Tokens {
                input: 30,
                output: 15,
            }),
            _ => None,
        };
        Totals {
            tokens,
            cost_usd: None,
        }
    }

    pub fn end(&self, seen: &RunProgress, stop: Option<Stop>, before: Option<Left>) -> End {
        let stderr = own_error(self.run, self.exit, &self.stderr);
        let resumed = Start::Resumed {
            compacts: self.run.spec().compacts,
            before,
        };
        judge(&Ending {
            seen,
            exit: self.exit,
            stop,
            stderr: stderr.as_ref(),
            start: if self.resumed { resumed } else { Start::Fresh },
            parked_before: 0,
            now: NOW,
        })
    }
}

pub fn own_error(run: &dyn Runs, exit: Exit, stderr: &str) -> Option<AgentFailure> {
    match exit {
        Exit::Code(code) if code != 0 => Some(run.own_error(code, stderr)),
        _ => None,
    }
}

/// Reads a stream as a runner does.
pub fn read(run: &dyn Runs, stream: &[u8], before: Totals) -> RunProgress {
    let mut seen = RunProgress::new(before);
    let mut take = |piece: Piece<'_>| {
        let lines = match piece {
            Piece::Line(line) => run.read(line),
            Piece::TooLong(_) => vec![RunLine::Unreadable],
        };
        for line in lines {
            seen.feed(line, NOW);
        }
    };
    let mut splitter = Splitter::default();
    for chunk in stream.chunks(4096) {
        splitter.push(chunk, &mut take);
    }
    splitter.finish(&mut take);
    seen
}
