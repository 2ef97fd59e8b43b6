//! The story of the product, played with real processes in a scratch directory.
//!
//! Every line that is printed is a result that just happened; the first one that is not what tenure
//! promises ends the demo.

mod alive;
pub(super) mod worker;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_host::pause;
use tenure_service::answer::{Class, Hint};

use self::worker::{CallResult, Worker, wrong};
use crate::app::App;
use crate::output::{CliError, Outcome, Output, put};

/// Run a demo with real processes in a scratch directory
///
/// Takes a few seconds and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure demo
  tenure demo --serve             # ten agents, and the dashboard that shows them")]
pub struct Args {
    /// Keep ten agents at work and open the dashboard, until Ctrl-C
    #[arg(long)]
    serve: bool,
}

#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    /// Be the server of the demo instead
    #[arg(long)]
    serve: bool,
}

const ITEM: &str = "issue:acme/web#42";
const SECOND_ITEM: &str = "issue:acme/web#43";

/// Longer than the lease and the lock-delay of the demo's workers.
const LONG: Duration = Duration::from_millis(700);

pub fn run_worker(args: &WorkerArgs) -> Outcome {
    if args.serve {
        return alive::serve();
    }
    worker::run()
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let scratch = tempfile::Builder::new()
        .prefix("tenure-demo-")
        .tempdir()
        .map_err(|error| no_room(&error))?;
    if args.serve {
        let ended = alive::run(scratch.path());
        scratch.close().map_err(|error| not_removed(&error))?;
        return ended.map(|()| Output::default());
    }
    let home = scratch.path().join("state");
    let mut story = Story {
        told: Vec::new(),
        silent: app.style.json || app.style.quiet,
        failed: None,
    };
    let mut workers = list(&mut story, &home)?;
    cut_off(&mut story, &mut workers, &home)?;
    let winner = race(&mut story, &mut workers)?;
    let mut dead = workers.remove(winner);
    let mut heir = workers.remove(0);
    let mut third = workers.remove(0);
    crash(&mut story, &mut dead, &mut heir)?;
    silence(&mut story, &heir, &mut third)?;
    takeover(&mut story, &mut heir, &mut third)?;
    let resumed = resume(&mut story, third, &mut heir, &home)?;
    drop((dead, heir, resumed));
    scratch.close().map_err(|error| not_removed(&error))?;
    story.chapter("nothing is left behind");
    match story.failed {
        Some(failure) => Err(failure),
        None => Ok(Output::default().with("demo", &story.told)),
    }
}

fn not_removed(error: &std::io::Error) -> CliError {
    wrong(format!("cannot remove the scratch directory: {error}"))
}

fn no_room(error: &std::io::Error) -> CliError {
    CliError::new(
        Class::Refused,
        "demo",
        format!("cannot create a scratch directory: {error}"),
        Hint::step("set TMPDIR to a directory that you can write to"),
    )
}

/// What was told so far.
struct Story {
    told: Vec<String>,
    silent: bool,
    /// Why a part of it could not be shown.
    failed: Option<CliError>,
}

impl Story {
    fn chapter(&mut self, title: &str) {
        self.print(&format!("\n{title}"));
    }

    fn tell(&mut self, what: String) {
        self.print(&format!("  {what}"));
        self.told.push(what);
    }

    fn print(&mut self, text: &str) {
        if !self.silent && self.failed.is_none() {
            self.failed = put(text).err();
        }
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Checks an exit code and hands out the answer.
fn expect<'a>(call: &'a CallResult, code: i64, what: &str) -> Result<&'a Value, CliError> {
    if call.code == code {
        return Ok(&call.json);
    }
    Err(wrong(format!(
        "{what} ended with exit {} instead of {code}: {}",
        call.code, call.json
    )))
}

fn check(holds: bool, what: &str, answer: &Value) -> Result<(), CliError> {
    if holds {
        Ok(())
    } else {
        Err(wrong(format!("{what} is wrong: {answer}")))
    }
}

/// A worker and its conversation.
const WORKERS: [(&str, &str); 3] = [("claude", "c1"), ("codex", "c2"), ("gemini", "c3")];

/// Starts a worker and registers it; also the answer.
fn enlist(home: &Path, name: &'static str) -> Result<(Worker, Value), CliError> {
    let known = WORKERS.iter().find(|(known, _)| *known == name);
    let (_, conversation) = known.ok_or_else(|| wrong(format!("{name} is no worker")))?;
    let mut worker = Worker::start(home, name)?;
    let pid = worker.pid().to_string();
    let words = ["register", "--agent", name, "--pid", &pid, "--native-id"];
    let call = worker.call(&[&words[..], &[conversation]].concat())?;
    let answer = expect(&call, 0, "registering")?.clone();
    Ok((worker, answer))
}

/// What each of three agents does, and who waits for a person.
fn list(story: &mut Story, home: &Path) -> Result<Vec<Worker>, CliError> {
    story.chapter("three agents run: tenure ps");
    let mut workers = Vec::new();
    for (name, _) in WORKERS {
        workers.push(enlist(home, name)?.0);
    }
    let events = [
        json!({"event": "busy", "prompt": "Fix the login"}),
        json!({"event": "waiting", "asks": "rm -r build", "title": "Update the packages"}),
        json!({"event": "idle", "title": "Write the changelog"}),
    ];
    for (worker, mut event) in workers.iter_mut().zip(events) {
        event["pid"] = json!(worker.pid());
        expect(&worker.report(&event)?, 0, "an event")?;
    }
    let rows = rows(&mut workers[0])?;
    for row in &rows {
        story.tell(shown(row));
    }
    let waits = rows.iter().filter(|row| row["activity"] == "waiting");
    check(waits.count() == 1, "who waits", &json!(rows))?;
    Ok(workers)
}

/// The one that waited is killed, and continues.
fn cut_off(story: &mut Story, workers: &mut [Worker], home: &Path) -> Result<(), CliError> {
    story.chapter("the one that waits for you is killed with kill -9, and resumed");
    workers[1].kill()?;
    let rows = rows(&mut workers[0])?;
    let gone = rows.iter().find(|row| row["resume"].is_object());
    let gone = gone.ok_or_else(|| wrong(format!("nothing was cut off: {rows:?}")))?;
    let handle = text(&gone["handle"]);
    story.tell(format!(
        "{handle} was cut off; run `{}` to continue it",
        text(&gone["resume"]["command"])
    ));
    let (worker, answer) = enlist(home, workers[1].name)?;
    check(
        answer["session"]["handle"] == handle.as_str(),
        "the session",
        &answer,
    )?;
    story.tell(format!(
        "{handle} is the same session again, in a new process"
    ));
    workers[1] = worker;
    for worker in workers {
        let event = json!({"event": "busy", "pid": worker.pid()});
        expect(&worker.report(&event)?, 0, "an event")?;
    }
    Ok(())
}

fn rows(asker: &mut Worker) -> Result<Vec<Value>, CliError> {
    let call = asker.call(&["ps"])?;
    let listed = expect(&call, 0, "ps")?;
    let rows = listed["sessions"].as_array();
    rows.cloned()
        .ok_or_else(|| wrong(format!("ps is wrong: {listed}")))
}

/// A session as its row shows it.
fn shown(row: &Value) -> String {
    let state = match (row["activity"].as_str(), row["asks"].as_str()) {
        (Some("waiting"), Some(asks)) => format!("waits for you: {asks}"),
        (Some(doing), _) => doing.to_owned(),
        (None, _) => text(&row["state"]),
    };
    format!(
        "{} ({}): {state}",
        text(&row["handle"]),
        text(&row["title"])
    )
}

fn race(story: &mut Story, workers: &mut [Worker]) -> Result<usize, CliError> {
    story.chapter("three agents claim one item at the same moment");
    for worker in workers.iter_mut() {
        worker.send(&["claim", ITEM])?;
    }
    let mut winner = None;
    for (place, worker) in workers.iter_mut().enumerate() {
        let call = worker.receive()?;
        if call.code == 0 {
            check(winner.is_none(), "the number of winners", &call.json)?;
            winner = Some(place);
            story.tell(format!(
                "{} holds {ITEM} (epoch {})",
                worker.name, call.json["claim"]["epoch"]
            ));
        } else {
            let error = &expect(&call, 3, "losing the race")?["error"];
            story.tell(format!(
                "{} is refused: {}",
                worker.name,
                text(&error["message"])
            ));
        }
    }
    story.tell("the epoch counts the holders: what an earlier one still writes is refused".into());
    winner.ok_or_else(|| wrong("no agent won the race".into()))
}

fn crash(story: &mut Story, dead: &mut Worker, heir: &mut Worker) -> Result<(), CliError> {
    story.chapter("the winner is killed with kill -9; the next claim succeeds at once");
    dead.kill()?;
    let call = heir.call(&["claim", ITEM])?;
    let claim = &expect(&call, 0, "claiming from the dead")?["claim"];
    check(claim["epoch"] == 2, "the epoch", claim)?;
    story.tell(format!("{} holds it (epoch {})", heir.name, claim["epoch"]));
    story.tell(format!(
        "proof: {}: {}",
        text(&claim["taken_from"]["handle"]),
        text(&claim["taken_from"]["proof"])
    ));
    Ok(())
}

fn silence(story: &mut Story, holder: &Worker, other: &mut Worker) -> Result<(), CliError> {
    story.chapter("the new holder is paused for longer than every timeout, but it is alive");
    holder.stop()?;
    pause::sleep(LONG);
    let call = other.call(&["claim", ITEM])?;
    let error = &expect(&call, 3, "claiming from a paused holder")?["error"];
    check(
        error["holder"]["state"] == "live",
        "the holder's state",
        error,
    )?;
    story.tell(format!(
        "{} is refused: {}",
        other.name,
        text(&error["message"])
    ));
    story.tell(format!("evidence: {}", text(&error["holder"]["why"])));
    Ok(())
}

fn takeover(story: &mut Story, loser: &mut Worker, taker: &mut Worker) -> Result<(), CliError> {
    story.chapter("the item is taken over; the reason is logged");
    let call = taker.call(&["takeover", ITEM, "--reason", "it is stuck"])?;
    let claim = &expect(&call, 0, "the takeover")?["claim"];
    check(claim["epoch"] == 3, "the epoch", claim)?;
    story.tell(format!(
        "{} holds it (epoch {})",
        taker.name, claim["epoch"]
    ));
    loser.go_on()?;
    let call = loser.call(&["guard", ITEM, "--epoch", "2"])?;
    let answer = expect(&call, 5, "the loser's guard")?;
    let notices = answer["notices"].as_array().map_or(0, Vec::len);
    check(notices == 1, "the notice", answer)?;
    story.tell(format!(
        "{} continues and checks before it writes: refused (exit 5)",
        loser.name
    ));
    story.tell(format!(
        "it is told: {}",
        text(&answer["notices"][0]["message"])
    ));
    let call = loser.call(&["whoami"])?;
    let again = expect(&call, 0, "whoami")?;
    check(
        again["notices"].as_array().is_some_and(Vec::is_empty),
        "what was told a second time",
        again,
    )
}

fn resume(
    story: &mut Story,
    mut holder: Worker,
    other: &mut Worker,
    home: &Path,
) -> Result<Worker, CliError> {
    story.chapter("a holder of two items is killed; another agent claims one; then it resumes");
    let call = holder.call(&["claim", SECOND_ITEM])?;
    expect(&call, 0, "the second claim")?;
    let name = holder.name;
    holder.kill()?;
    let call = other.call(&["claim", SECOND_ITEM])?;
    expect(&call, 0, "claiming one of the two")?;
    story.tell(format!("{} claimed {SECOND_ITEM}", other.name));
    let (resumed, answer) = enlist(home, name)?;
    let answer = &answer;
    check(
        answer["session"]["registered"] == "resumed",
        "the way it registered",
        answer,
    )?;
    check(
        answer["regranted"][0]["key"] == ITEM,
        "what it got back",
        answer,
    )?;
    let handle = text(&answer["session"]["handle"]);
    story.tell(format!(
        "{handle} is the same session again, in a new process"
    ));
    story.tell(format!(
        "it holds {} again (epoch {})",
        text(&answer["regranted"][0]["key"]),
        answer["regranted"][0]["epoch"]
    ));
    story.tell(format!("it is told: {}", text(&answer["taken"][0])));
    Ok(resumed)
}
