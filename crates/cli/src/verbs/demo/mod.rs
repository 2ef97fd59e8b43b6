//! The story of the product, played with real processes in a scratch directory.
//!
//! Every line that is printed is a result that just happened; the first one that is not what tenure
//! promises ends the demo.

pub(super) mod worker;

use std::time::Duration;

use serde_json::Value;
use tenure_host::pause;
use tenure_service::answer::{Class, Hint};

use self::worker::{Call, Worker, wrong};
use crate::app::App;
use crate::output::{CliError, Outcome, Output, put};

/// Run a demo with real processes in a scratch directory
///
/// Takes a few seconds and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure demo")]
pub struct Args {}

#[derive(Debug, clap::Args)]
pub struct WorkerArgs {}

const ITEM: &str = "issue:acme/web#42";
const SECOND_ITEM: &str = "issue:acme/web#43";

/// Longer than the lease, the lock-delay and every other timer of the demo's workers.
const LONG: Duration = Duration::from_millis(700);

pub fn run_worker(_: &WorkerArgs) -> Outcome {
    worker::run()
}

pub fn run(_: &Args, app: &App) -> Outcome {
    let scratch = tempfile::Builder::new()
        .prefix("tenure-demo-")
        .tempdir()
        .map_err(|error| no_room(&error))?;
    let home = scratch.path().join("state");
    let mut story = Story {
        told: Vec::new(),
        silent: app.style.json || app.style.quiet,
        failed: None,
    };
    let mut workers = Vec::new();
    for (name, conversation) in [("claude", "c1"), ("codex", "c2"), ("gemini", "c3")] {
        let mut worker = Worker::start(&home, name)?;
        let pid = worker.pid().to_string();
        let call = worker.call(&[
            "register",
            "--agent",
            name,
            "--pid",
            &pid,
            "--native-id",
            conversation,
        ])?;
        let handle = text(&expect(&call, 0, "registering")?["session"]["handle"]);
        story.tell(format!("{handle} registered (pid {pid})"));
        workers.push(worker);
    }
    let winner = race(&mut story, &mut workers)?;
    let mut dead = workers.remove(winner);
    let mut heir = workers.remove(0);
    let mut third = workers.remove(0);
    crash(&mut story, &mut dead, &mut heir)?;
    silence(&mut story, &heir, &mut third)?;
    takeover(&mut story, &mut heir, &mut third)?;
    let conversation = match third.name {
        "claude" => "c1",
        "codex" => "c2",
        _ => "c3",
    };
    let resumed = resume(&mut story, third, &mut heir, &home, conversation)?;
    drop((dead, heir, resumed));
    scratch
        .close()
        .map_err(|error| wrong(format!("cannot remove the scratch directory: {error}")))?;
    story.chapter("nothing is left behind");
    match story.failed {
        Some(failure) => Err(failure),
        None => Ok(Output::default().with("demo", &story.told)),
    }
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
fn expect<'a>(call: &'a Call, code: i64, what: &str) -> Result<&'a Value, CliError> {
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
    home: &std::path::Path,
    conversation: &str,
) -> Result<Worker, CliError> {
    story.chapter("a holder of two items is killed; another agent claims one; then it resumes");
    let call = holder.call(&["claim", SECOND_ITEM])?;
    expect(&call, 0, "the second claim")?;
    let name = holder.name;
    holder.kill()?;
    let call = other.call(&["claim", SECOND_ITEM])?;
    expect(&call, 0, "claiming one of the two")?;
    story.tell(format!("{} claimed {SECOND_ITEM}", other.name));
    let mut resumed = Worker::start(home, name)?;
    let pid = resumed.pid().to_string();
    let call = resumed.call(&[
        "register",
        "--agent",
        name,
        "--pid",
        &pid,
        "--native-id",
        conversation,
    ])?;
    let answer = expect(&call, 0, "resuming")?;
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
