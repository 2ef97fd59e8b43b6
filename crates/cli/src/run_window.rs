//! A run as its caller sees it: one updating line and the answer for people, a line of JSON for each event for
//! programs.

use std::io::IsTerminal;

use serde_json::{Value, json};
use tenure_app::open::Context;
use tenure_core::text;
use tenure_core::time::Span;
use tenure_runs::compose::Composed;
use tenure_runs::launch::launch;
use tenure_runs::window::{Doing, EndedRun, Update, WindowEnd, follow, signals};
use tenure_service::view::RunView;

use crate::app::App;
use crate::child::{conflict_or_failure, signal_exit, unfinished};
use crate::colour::is_dumb;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output, put, warn};
use crate::sink;
use tenure_service::answer::Hint;

/// A refusal of a run; its object ends the stream on stdout.
pub fn refused(error: CliError, conflict: Exit) -> CliError {
    let mut error = conflict_or_failure(error, conflict);
    error.to_stderr = false;
    error
}

/// Runs an order and shows it to its end.
pub fn run(context: &mut Context, composed: &Composed, app: &App) -> Outcome {
    let mut launched = launch(context, &composed.order)?;
    let began = launched.begin(context).map_err(unfinished)?;
    let signals = signals()?;
    let mut screen = Screen::new(app);
    let notes = composed.notes.iter().chain(&began.notes);
    let notes: Vec<&str> = notes.map(String::as_str).collect();
    screen.started(&began.run, &notes)?;
    let mut failed = None;
    let updates = screen.updates;
    let closed = follow(
        context,
        &mut launched,
        signals,
        updates,
        &mut |shown| match screen.show(&shown) {
            Ok(is_read) => is_read,
            Err(error) => {
                failed = Some(error);
                false
            }
        },
    );
    screen.clear();
    if let Some(error) = failed {
        return Err(error);
    }
    match closed? {
        WindowEnd::Ended(ended) => screen.ended(&ended),
        WindowEnd::Signal(signal) => {
            screen.goes_on(&began.run);
            Ok(Output::silent(signal_exit(signal)))
        }
        WindowEnd::Unread => {
            screen.goes_on(&began.run);
            Ok(Output::silent(Exit::DONE))
        }
    }
}

struct Screen<'a> {
    app: &'a App,
    /// Whether one line of the terminal is written again and again.
    updates: bool,
    last: String,
}

impl<'a> Screen<'a> {
    fn new(app: &'a App) -> Self {
        let people = !app.style.json && !app.style.quiet;
        Self {
            app,
            updates: people && std::io::stderr().is_terminal() && !is_dumb(),
            last: String::new(),
        }
    }

    fn started(&mut self, run: &RunView, notes: &[&str]) -> Result<(), CliError> {
        if self.app.style.json {
            let line = json!({"v": 1, "event": "run.started", "run": run, "notes": notes});
            put(&line.to_string())?;
        } else if !self.app.style.quiet {
            let how = if run.fell_back {
                "in a fresh conversation: the agent has deleted the last one"
            } else if run.before.is_some() {
                "in its conversation"
            } else {
                "in a fresh conversation"
            };
            warn(format!(
                "run {}: {} on {} {how} ({})",
                run.id,
                run.worker(),
                run.item,
                text::name(&run.dir)
            ));
            notes.iter().for_each(|note| warn(format!("note: {note}")));
        }
        Ok(())
    }

    /// Shows something; false if no one reads it any more.
    fn show(&mut self, shown: &Update<'_>) -> Result<bool, CliError> {
        if self.app.style.json {
            return self.show_json(shown);
        }
        match shown {
            Update::Doing(doing) => self.update(doing),
            Update::FellBack(run) => {
                self.clear();
                let item = &run.item;
                self.say(&format!(
                    "{} does not have the conversation of {item} any more; started a fresh one",
                    run.agent
                ));
            }
            Update::Note(note) => {
                self.clear();
                self.say(note);
            }
            Update::Stopping => {
                self.clear();
                self.stopping();
            }
            Update::Line { .. } => {}
        }
        Ok(true)
    }

    fn show_json(&mut self, shown: &Update<'_>) -> Result<bool, CliError> {
        let line = match shown {
            Update::Line { raw, .. } => json!({"v": 1, "event": "agent", "data": agent_line(*raw)}),
            Update::FellBack(run) => json!({"v": 1, "event": "run.fell_back", "run": run}),
            Update::Note(note) => {
                self.say(note);
                return Ok(true);
            }
            Update::Stopping => {
                self.stopping();
                return Ok(true);
            }
            Update::Doing(_) => return Ok(true),
        };
        put(&line.to_string())
    }

    fn stopping(&self) {
        if !self.app.style.quiet {
            warn("stopping; press Ctrl-C again to return now");
        }
    }

    fn say(&self, note: &str) {
        if !self.app.style.quiet {
            warn(format!("note: {note}"));
        }
    }

    fn update(&mut self, doing: &Doing<'_>) {
        if !self.updates {
            return;
        }
        let what = match (doing.waiting, doing.tool) {
            (Some(wait), _) => {
                let age = wait.since.age_at(tenure_host::clock::wall());
                let whole = Span(std::time::Duration::from_secs(age.as_secs()));
                format!("waiting for its provider for {whole}: {}", wait.why)
            }
            (None, Some(tool)) => tool.to_owned(),
            (None, None) => "working".to_owned(),
        };
        let seconds = Span(std::time::Duration::from_secs(doing.elapsed.as_secs()));
        let cost = doing
            .cost
            .map_or_else(String::new, |cost| format!("  ${cost:.2}"));
        let line = text::clipped(&text::line(&what), 60);
        let line = format!("{seconds}{cost}  {line}");
        if line != self.last {
            sink::status(&line);
            self.last = line;
        }
    }

    fn clear(&mut self) {
        if self.updates && !self.last.is_empty() {
            sink::status("");
            self.last.clear();
        }
    }

    /// What to do with a run that goes on without its window.
    fn goes_on(&self, run: &RunView) {
        if !self.app.style.quiet {
            let tail = Hint::run("runs", ["tail", run.id.as_str()], "to watch it");
            warn(format!("note: run {} goes on: {}", run.id, tail.sentence()));
        }
    }

    fn ended(&self, ended: &EndedRun) -> Outcome {
        let run = &ended.run;
        let exit = match exit_of(run) {
            Exit::DONE => Exit::DONE,
            _ if ended.was_interrupted => signal_exit(rustix::process::Signal::INT.as_raw()),
            other => other,
        };
        if self.app.style.json {
            let line = json!({
                "v": 1, "event": "run.ended", "run": run, "answer": ended.answer, "notes": ended.notes,
            });
            put(&line.to_string())?;
            return Ok(Output::silent(exit));
        }
        if let Some(answer) = &ended.answer {
            put(Lines::of_file(answer).as_str())?;
        }
        ended.notes.iter().for_each(|note| self.say(note));
        if exit != Exit::DONE || self.app.verbose {
            warn(sentence(run));
            let show = Hint::run("runs", ["show", run.id.as_str()], "for details");
            warn(format!("hint: {}", show.sentence()));
        }
        Ok(Output::silent(exit))
    }
}

/// How a run ended, for people.
pub fn sentence(run: &RunView) -> String {
    let outcome = run.outcome.as_deref().unwrap_or(&run.state);
    match run.why.as_deref() {
        None | Some("") => format!("run {} {}", run.id, past(outcome)),
        // A reason may say it itself: "stopped with Ctrl-C".
        Some(why) if why.starts_with(outcome) => format!("run {} {why}", run.id),
        Some(why) => format!("run {} {}: {why}", run.id, past(outcome)),
    }
}

/// How people read an outcome in a sentence.
fn past(outcome: &str) -> &str {
    match outcome {
        "done" => "is done",
        "timeout" => "timed out",
        "refused" => "was refused",
        "stopped" => "was stopped",
        "interrupted" => "was interrupted",
        "unusable" => "cannot continue its conversation",
        "parked" => "is parked",
        other => other,
    }
}

/// 0 only for what is done; otherwise the agent's own code, unless that is 0.
fn exit_of(run: &RunView) -> Exit {
    if run.outcome.as_deref() == Some("done") {
        return Exit::DONE;
    }
    let code = run.exit_code.and_then(|code| u8::try_from(code).ok());
    Exit(code.filter(|code| *code != 0).unwrap_or(1))
}

/// A line of an agent's output as JSON; a string if it is not JSON, null if it is missing.
pub fn agent_line(line: Option<&[u8]>) -> Value {
    let Some(line) = line else {
        return Value::Null;
    };
    let as_text = || Value::String(String::from_utf8_lossy(line).into_owned());
    serde_json::from_slice(line).unwrap_or_else(|_| as_text())
}
