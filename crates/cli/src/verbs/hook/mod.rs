//! `tenure hook`: an agent's event in, our answer in the agent's own format out.
//!
//! It runs at every tool call of every agent, so it reads nothing that the event does not need, and it may
//! never break the agent: whatever goes wrong (no event, a store that is locked, full or gone, our own
//! bug) costs a line on stderr and exit 0, within two seconds, one for an end ([`deadline`]). Its exit codes
//! are its own: 0, 2 only as a deliberate block or to start a turn, 64 for a wrong command line. What fails is reported once where
//! the person and the model see it, and counted ([`outage`]).

pub(super) mod deadline;
mod event;
mod saying;
mod stream;

use std::ffi::{OsStr, OsString};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use tenure_agents::{Adapter, EventAnswer, Report};
use tenure_app::hook_store::HookStore;
use tenure_app::keeper::{EventReply, SentEvent};
use tenure_app::own_process::{self, HookCaller};
use tenure_app::settings::Settings;
use tenure_app::{keeper, outage, unmanaged};
use tenure_core::agent_event::Happening;
use tenure_core::id::SessionId;
use tenure_core::ignore::Ignore;
use tenure_core::notice::{Notice, Pending};
use tenure_core::process::Ancestor;
use tenure_core::write_conflict::GuardMode;
use tenure_elsewhere::answers::hook::{Offer, end_questions};
use tenure_host::event_input;
use tenure_service::answer::{Hint, Problem};
use tenure_service::{AgentEvent, HandledEvent};

use crate::app::App;
use crate::beside;
use crate::exit::Exit;
use crate::output::{Outcome, Output, warn};
use crate::render::brief;
use crate::sink;

use deadline::{Deadline, HookStep};
use event::{Sender, whole_event};

/// Record an agent's event; run by the agent's hooks, not by hand
///
/// Reads the event from stdin and answers in the agent's own format. `tenure install` adds it to the agents'
/// settings. Exits 0; 2 to block a tool call on purpose, or with --wait to start a turn; 64 on a usage error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure hook claude < event.json
  echo '{\"event\":\"busy\",\"agent\":\"nightly\",\"session_id\":\"7f3c\"}' | tenure hook generic
  echo \"{\\\"event\\\":\\\"start\\\",\\\"pid\\\":$$}\" | tenure hook generic    from a shell

For any other program, use `generic`. \"event\" is start, fork, busy, waiting, idle, beat or end.
Optional: agent, pid, session_id, cwd, subagent_id, reason, asks, transcript_path, writes, prompt,
title. \"writes\" is a file about to be written, or a list of them. The answer has context, message,
block and env.

\"pid\" is the process that does the work; it must be an ancestor of the hook. Without it, the
session is the nearest of these ancestors: a process that is already a session; a program that
started the hook, directly or through one `sh -c` that only runs the hook; a shell that runs a
script file. Other shells (interactive, reading a pipe, sh -c 'a; b') and programs that only start
others (cron, timeout) are skipped. If none is left, the lease alone keeps the session alive.")]
pub struct Args {
    #[arg(
        value_name = "AGENT",
        value_parser = PossibleValuesParser::new(names()),
        hide_possible_values = true,
        help = format!("Agent: {}", names().join(", "))
    )]
    agent: String,

    /// What to do about a tool call that conflicts with another session: observe, warn or block
    #[arg(long, value_name = "MODE", default_value = "warn")]
    mode: String,

    /// Wait beside the agent for messages that start a turn, and print them; 2 starts it (claude)
    #[arg(long, conflicts_with = "stream")]
    wait: bool,

    /// Read an event per line until the input ends, and answer each with a line of JSON
    #[arg(long, conflicts_with = "answers")]
    stream: bool,

    /// At a question, wait for an answer of `tenure answer`, if answers.agents allows it
    #[arg(long)]
    answers: bool,
}

fn names() -> Vec<&'static str> {
    tenure_agents::names(|_| true)
}

/// What was typed besides `hook`, if that is the verb; help is clap's business.
pub fn typed(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let words = arguments.get(1..)?;
    let asks_help = |word: &OsString| word == "--help" || word == "-h";
    let mut at = 0;
    while words.get(at)?.as_encoded_bytes().starts_with(b"-") {
        at += if words[at] == "--session" { 2 } else { 1 };
    }
    let (before, after) = (&words[..at], &words[at + 1..]);
    (words[at] == "hook" && !words.iter().any(asks_help)).then(|| [before, after].concat())
}

/// Runs the hook; every way out is one that the agent survives.
pub fn run_typed(arguments: &[OsString]) -> Exit {
    let HookArgs {
        adapter,
        mode,
        streams,
        waits,
        answers,
    } = match parse(arguments) {
        Ok(typed) => typed,
        Err(what) => {
            say(&format!("error: {what}"));
            let hint = Hint::run("hook", ["--help"], "for its options and examples");
            say(&format!("hint: {}", hint.sentence()));
            return Exit::HOOK_USAGE;
        }
    };
    if waits {
        beside::follow_store();
        return Exit(tenure_elsewhere::wake::wait(adapter));
    }
    if streams {
        stream::run(adapter, mode);
        return Exit::DONE;
    }
    let time = Deadline::start(adapter, mode);
    let answered = AssertUnwindSafe(|| {
        let bytes = match event_input::read(time.event_until()) {
            Ok(bytes) => bytes,
            Err(error) => {
                say(&format!("tenure: cannot read the event: {error}"));
                Vec::new()
            }
        };
        answer(adapter, mode, &time, &bytes, answers);
    });
    let answered = std::panic::catch_unwind(answered);
    if answered.is_err() {
        time.answer_as_prepared();
    }
    Exit::DONE
}

/// Runs the hook as clap read it.
pub fn run(args: &Args, _: &App) -> Outcome {
    let mut words = vec![args.agent.as_str(), "--mode", args.mode.as_str()];
    words.extend(args.stream.then_some("--stream"));
    words.extend(args.wait.then_some("--wait"));
    words.extend(args.answers.then_some("--answers"));
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    Ok(Output::silent(run_typed(&words)))
}

/// What was typed.
struct HookArgs {
    adapter: &'static Adapter,
    mode: Option<GuardMode>,
    streams: bool,
    waits: bool,
    answers: bool,
}

fn parse(arguments: &[OsString]) -> Result<HookArgs, String> {
    let mut named: Option<&OsStr> = None;
    let mut mode = None;
    let (mut streams, mut waits, mut answers) = (false, false, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--json" | "--quiet" | "-q" | "--verbose" | "-v") => {}
            Some("--stream") => streams = true,
            Some("--wait") => waits = true,
            Some("--answers") => answers = true,
            Some("--mode") => {
                let given = words.next().and_then(|word| word.to_str());
                let read = given.and_then(GuardMode::parse);
                mode = Some(read.ok_or("--mode must be observe, warn or block")?);
            }
            Some(flag) if flag.starts_with("--mode=") => {
                let read = flag.strip_prefix("--mode=").and_then(GuardMode::parse);
                mode = Some(read.ok_or("--mode must be observe, warn or block")?);
            }
            // An event names its session.
            Some("--session") => drop(words.next()),
            Some(flag) if flag.starts_with("--session=") => {}
            Some(flag) if flag.starts_with('-') => {
                return Err(format!("hook has no option {flag}"));
            }
            _ if named.is_some() => return Err("more than one agent was given".to_owned()),
            _ => named = Some(word),
        }
    }
    let names = || names().join(", ");
    let Some(named) = named else {
        return Err(format!("no agent was given; expected one of {}", names()));
    };
    let adapter = named
        .to_str()
        .and_then(tenure_agents::adapter)
        .ok_or_else(|| {
            format!(
                "unknown agent {:?}; expected one of {}",
                named.to_string_lossy(),
                names()
            )
        })?;
    Ok(HookArgs {
        adapter,
        mode,
        streams,
        waits,
        answers,
    })
}

/// Answers an event; returns whether there was one.
fn answer(
    adapter: &'static Adapter,
    mode: Option<GuardMode>,
    time: &Deadline,
    bytes: &[u8],
    answers: bool,
) -> bool {
    let report = adapter.read(bytes);
    for problem in &report.problems {
        say(&format!("tenure: hook {}: {problem}", adapter.name));
    }
    if report.name.is_empty() && report.native_id.is_none() {
        return false;
    }
    let (report, until) = time.received(report);
    let hook = Hook {
        adapter,
        mode,
        report,
        time,
        until,
        bytes,
        streams: time.is_in_stream(),
        answers,
    };
    let outcome = compose(&hook);
    let offer = outcome.offer(&hook);
    outcome.tell_agent(&hook);
    if let Some(offer) = offer {
        time.finish();
        if let Some(decision) = offer.wait()
            && sink::out(&decision.said.to_string()).is_ok()
        {
            decision.sent();
        }
    }
    true
}

/// An event, and how long its agent waits.
struct Hook<'a> {
    adapter: &'static Adapter,
    mode: Option<GuardMode>,
    report: &'a Report,
    time: &'a Deadline,
    until: Instant,
    /// As it was read.
    bytes: &'a [u8],
    /// Whether others follow in the same process.
    streams: bool,
    /// Whether it may wait for an answer from elsewhere.
    answers: bool,
}

/// What is said to an event, and what is recorded afterwards.
#[derive(Default)]
struct HookOutcome {
    reply: EventReply,
    after: After,
}

/// What is recorded once the answer was printed.
#[derive(Default)]
enum After {
    #[default]
    Nothing,
    /// Here.
    Own(Box<Recorded>, Vec<Notice>),
    /// By the keeper.
    Keeper(Box<(HookStore, AgentEvent)>),
}

impl After {
    /// The store in which the event was recorded.
    fn store(&self) -> Option<&HookStore> {
        match self {
            After::Nothing => None,
            After::Own(recorded, _) => Some(&recorded.store),
            After::Keeper(sent) => Some(&sent.0),
        }
    }
}

impl HookOutcome {
    /// Opens what the event asks to an answer from elsewhere, unless something else is printed.
    fn offer(&self, hook: &Hook<'_>) -> Option<Offer> {
        let reply = &self.reply;
        let is_silent = reply.message.is_none() && reply.block.is_none() && reply.token.is_none();
        let session = match &self.after {
            After::Nothing => return None,
            After::Own(recorded, _) => recorded.handled.id,
            After::Keeper(_) => reply.session,
        };
        let store = self.after.store()?;
        let agent = &hook.time.process()?.process;
        let Hook {
            adapter, report, ..
        } = *hook;
        (hook.answers && is_silent && reply.lines.is_empty())
            .then(|| Offer::open(store, adapter, report, hook.bytes, agent, session?))?
    }
}

fn compose(hook: &Hook<'_>) -> HookOutcome {
    let mut said = match handle(hook) {
        Ok(RecordedBy::Own(recorded)) => {
            let name = hook.adapter.name;
            let (reply, told) = brief::render(name, &recorded.handled, &recorded.notices);
            let after = After::Own(recorded, told);
            HookOutcome { reply, after }
        }
        Ok(RecordedBy::Settled) => return HookOutcome::default(),
        Ok(RecordedBy::Keeper(reply, sent)) => HookOutcome {
            after: After::Keeper(sent),
            reply: *reply,
        },
        Err(Missed::Problem(problem, process)) => {
            let process = process.as_ref();
            let answer = missed(hook.adapter, hook.mode, hook.report, process, &problem);
            let reply = EventReply {
                lines: answer.context.into_iter().collect(),
                message: answer.message,
                block: answer.block,
                notes: vec![format!("tenure: {}", problem.message)],
                ..EventReply::default()
            };
            let after = After::Nothing;
            HookOutcome { reply, after }
        }
        // Silent, on stderr too: some agents show stderr to their user at every event.
        Err(Missed::NotOurs | Missed::Late) => HookOutcome::default(),
    };
    if let Some(token) = &said.reply.token
        && let Err(error) = own_process::export(hook.adapter, token)
    {
        let note = format!("tenure: cannot pass on TENURE_SESSION: {error}");
        said.reply.notes.push(note);
    }
    said
}

/// The answer to an event that could not be recorded; it is counted.
fn missed(
    adapter: &Adapter,
    mode: Option<GuardMode>,
    report: &Report,
    process: Option<&Ancestor>,
    problem: &Problem,
) -> EventAnswer {
    let settings = Settings::of_user().unwrap_or_default();
    let block = (settings.closes_on_error && event::is_write(report))
        .then(|| brief::sentence(&block(&problem.message)));
    if let Happening::End {
        ends_worker: true, ..
    } = report.what
    {
        spool_end(problem);
    }
    let told = outage::note(adapter.name, report, process, problem, block.is_some());
    let told = told.as_deref().map(brief::sentence);
    let mode = settings.guard_mode.or(mode).unwrap_or_default();
    let speaks = report.reaches_model && mode != GuardMode::Observe;
    EventAnswer {
        context: told.clone().filter(|_| speaks),
        message: told,
        block,
        token: None,
        foreign_to: None,
        waits: false,
    }
}

/// Keeps the end of a session for a store that is away. If that fails too, the death of its process is seen later.
fn spool_end(problem: &Problem) {
    if keeper::is_away(problem)
        && let Ok(Some(away)) = keeper::Away::look()
    {
        away.end().ignore("the event was counted as missed");
    }
}

/// An event that was recorded.
struct Recorded {
    handled: HandledEvent,
    notices: Pending,
    /// The sessions whose deaths it proved.
    buried: Vec<SessionId>,
    store: HookStore,
    dir: String,
}

/// Who recorded an event.
enum RecordedBy {
    /// Nobody: there was nothing to record, as an earlier hook found.
    Settled,
    Own(Box<Recorded>),
    Keeper(Box<EventReply>, Box<(HookStore, AgentEvent)>),
}

/// Why an event was not recorded here.
enum Missed {
    Problem(Box<Problem>, Option<Ancestor>),
    /// It is not an event of a session of this agent: another agent ran the hook, or a process that was only
    /// started in advance.
    NotOurs,
    /// The keeper records it, and what it says to it comes with the next event.
    Late,
}

impl From<Problem> for Missed {
    fn from(problem: Problem) -> Self {
        Missed::Problem(Box::new(problem), None)
    }
}

/// If the user wants writes to wait for an answer, prepares the one for a hook that times out.
fn prepare_block(hook: &Hook<'_>, settings: &Settings) {
    if settings.closes_on_error && event::is_write(hook.report) {
        let answer = EventAnswer {
            block: Some(block("the hook timed out")),
            ..EventAnswer::default()
        };
        hook.time.prepare(hook.adapter, hook.report, &answer);
    }
}

/// Who sent the event, if it is for us.
fn sender_of(hook: &Hook<'_>, whose: HookCaller) -> Result<Sender, Missed> {
    let (process, program) = match whose {
        HookCaller::Agent(found) => (Some(*found), None),
        HookCaller::Program(found) => (None, Some(found)),
        HookCaller::NotFound => (None, None),
        HookCaller::Another => return Err(Missed::NotOurs),
    };
    let spare = process
        .as_ref()
        .filter(|found| own_process::is_spare(hook.adapter, found));
    let was_spare = spare.is_some();
    let waits = |found: &Ancestor| unmanaged::waits_for_work(hook.adapter.name, found);
    if hook.report.what == Happening::Start && spare.is_some_and(waits) {
        return Err(Missed::NotOurs);
    }
    Ok(Sender {
        process,
        program,
        was_spare,
    })
}

fn handle(hook: &Hook<'_>) -> Result<RecordedBy, Missed> {
    let Hook {
        adapter,
        report,
        time,
        ..
    } = *hook;
    time.at(HookStep::Settings);
    let settings = Settings::of_user()?;
    prepare_block(hook, &settings);
    let mut store = HookStore::prepare(settings, hook.until)?;
    if hook.streams || hook.answers {
        store = store.going_on();
    }
    time.at(HookStep::Processes);
    let whose = own_process::find(adapter, store.machine(), report.pid);
    let sender = sender_of(hook, whose)?;
    let process = sender.process.clone();
    if let Some(found) = &process {
        time.found(found);
        end_questions(&store, adapter, report, &found.process);
    }
    time.at(HookStep::Store);
    let policy = store.guard(hook.mode);
    let policy_blocks = policy.mode == GuardMode::Block || policy.require_claim.is_some();
    let may_block = policy_blocks || store.closes_on_error();
    let event = whole_event(adapter, report, sender, policy, &mut store);
    if store.is_settled(&event) {
        return Ok(RecordedBy::Settled);
    }
    time.watch();
    if store.is_on_server() {
        let waits = must_be_answered(&event, may_block) || hook.answers;
        match store.send_event(adapter.name, &report.name, &event, waits) {
            SentEvent::Answered(reply) => {
                if reply.quiet > 0 {
                    store.settle(Duration::from_millis(reply.quiet));
                }
                return Ok(RecordedBy::Keeper(reply, Box::new((store, event))));
            }
            SentEvent::Late if !waits => return Err(Missed::Late),
            SentEvent::Late => {
                let problem = deadline::timed_out(HookStep::Store).problem;
                return Err(Missed::Problem(Box::new(problem), process));
            }
            SentEvent::Missed(problem) => return Err(Missed::Problem(problem, process)),
            SentEvent::NoKeeper => {
                if !hook.streams {
                    beside::follow_event(hook.bytes);
                }
                store.hurry(&event, waits);
            }
        }
    }
    let mut buried = Vec::new();
    let outcome = store.open().and_then(|mut service| {
        let handled = service.handle_event(&event);
        buried.append(&mut service.buried);
        handled.map_err(Problem::from)
    });
    match outcome {
        Ok(tenure_service::Answer { value, notices, .. }) => {
            Ok(RecordedBy::Own(Box::new(Recorded {
                handled: value,
                notices,
                buried,
                store,
                dir: event.dir,
            })))
        }
        Err(problem) if store.keep_end(&event, &problem) => {
            Ok(RecordedBy::Keeper(Box::default(), Box::new((store, event))))
        }
        Err(problem) => Err(Missed::Problem(Box::new(problem), process)),
    }
}

/// Whether the agent is held up until the event is answered: a start has a brief, an end has no later event, and a write
/// may be blocked.
fn must_be_answered(event: &AgentEvent, may_block: bool) -> bool {
    let starts = matches!(event.what, Happening::Start | Happening::Fork) || event.wants_brief;
    let ends = matches!(event.what, Happening::End { .. } | Happening::Leaves);
    let blocks = may_block && event.tool.as_ref().is_some_and(|tool| !tool.ran);
    starts || ends || blocks
}

fn block(why: &str) -> String {
    format!(
        "tenure cannot check this write ({why}), and guard.on_error is closed. Writes are allowed again once \
         tenure can write to its store. Run `tenure renew`; when it succeeds, write again."
    )
}

fn say(text: &str) {
    warn(text);
}
