//! `tenure hook`: an agent's event in, our answer in the agent's own format out.
//!
//! It runs at every tool call of every agent, so it reads nothing that the event does not need, and it may
//! never break the agent: whatever goes wrong (no event, a store that is locked, full or gone, our own
//! bug) costs a line on stderr and exit 0, within two seconds, one for an end ([`deadline`]). Its exit codes
//! are its own: 0, 2 only as a deliberate block, 64 for a wrong command line. What fails is reported once where
//! the person and the model see it, and counted ([`outage`]).

mod brief;
mod deadline;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Instant;

use clap::builder::PossibleValuesParser;
use serde_json::Value;
use tenure_agents::{Adapter, Answer, Event, Note, Report};
use tenure_app::hook_store::HookStore;
use tenure_app::own_process::{self, Whose};
use tenure_app::settings::Settings;
use tenure_app::{mirror as mirrors, outage, unmanaged};
use tenure_core::agent_event::{Asked, Happening};
use tenure_core::end::Terminal;
use tenure_core::id::AgentName;
use tenure_core::notice::{Channel, Notice, Pending};
use tenure_core::process::Ancestor;
use tenure_core::session::Doing;
use tenure_core::write_conflict::Mode;
use tenure_host::caller::RUN_VARIABLE;
use tenure_host::kernel_lock::one_spelling;
use tenure_host::{cwd, env, event_input, terminal};
use tenure_service::answer::{Hint, Problem};
use tenure_service::{AgentEvent, GuardPolicy, HandledEvent, ToolUse};

use crate::app::App;
use crate::exit::Exit;
use crate::output::{Outcome, Output, command_line, warn};
use crate::sink::{self, Unwritten};

use deadline::{Deadline, Step};

/// Record an agent's event; run by the agent's hooks, not by hand
///
/// Reads the event from stdin and answers in the agent's own format. `tenure install` adds it to the agents'
/// settings. Exits 0; 2 to block a tool call on purpose; 64 on a usage error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure hook claude < event.json
  echo '{\"event\":\"busy\",\"agent\":\"nightly\",\"session_id\":\"7f3c\"}' | tenure hook generic
  echo \"{\\\"event\\\":\\\"start\\\",\\\"pid\\\":$$}\" | tenure hook generic    from a shell

For any other program, use `generic`. \"event\" is start, fork, busy, waiting, idle, beat or end.
Optional: agent, pid, session_id, cwd, subagent_id, reason, asks, transcript_path, writes, prompt,
title. The answer has context, message, block and env.

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
    let (adapter, mode) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(what) => {
            say(&format!("error: {what}"));
            let hint = Hint::run("hook", ["--help"], "for its options and examples");
            say(&format!("hint: {}", command_line(&hint)));
            return Exit::HOOK_USAGE;
        }
    };
    let time = Deadline::start(adapter, mode);
    let answered = std::panic::catch_unwind(|| answer(adapter, mode, &time));
    if answered.is_err() {
        time.answer_as_prepared();
    }
    Exit::DONE
}

/// Runs the hook as clap read it.
pub fn run(args: &Args, _: &App) -> Outcome {
    let words = [args.agent.as_str(), "--mode", args.mode.as_str()];
    Ok(Output::silent(run_typed(&words.map(OsString::from))))
}

fn parse(arguments: &[OsString]) -> Result<(&'static Adapter, Option<Mode>), String> {
    let mut named: Option<&OsStr> = None;
    let mut mode = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--json" | "--quiet" | "-q" | "--verbose" | "-v") => {}
            Some("--mode") => {
                let given = words.next().and_then(|word| word.to_str());
                let read = given.and_then(Mode::parse);
                mode = Some(read.ok_or("--mode must be observe, warn or block")?);
            }
            Some(flag) if flag.starts_with("--mode=") => {
                let read = flag.strip_prefix("--mode=").and_then(Mode::parse);
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
                "unknown agent {}; expected one of {}",
                named.display(),
                names()
            )
        })?;
    Ok((adapter, mode))
}

fn answer(adapter: &Adapter, mode: Option<Mode>, time: &Deadline) {
    let bytes = match event_input::read(time.event_until()) {
        Ok(bytes) => bytes,
        Err(error) => {
            say(&format!("tenure: cannot read the event: {error}"));
            Vec::new()
        }
    };
    let report = adapter.read(&bytes);
    for problem in &report.problems {
        say(&format!("tenure: hook {}: {problem}", adapter.name));
    }
    if report.name.is_empty() && report.native_id.is_none() {
        return;
    }
    let (report, until) = time.received(report);
    let mut answer = Answer::default();
    let mut delivers = Vec::new();
    let mut shown = None;
    match handle(adapter, mode, report, time, until) {
        Ok(Recorded {
            handled,
            notices,
            store,
            dir,
        }) => {
            say_unclear(adapter, &handled);
            let told = brief::context(handled.brief.as_ref(), &notices, &handled.advice);
            answer.context = told.text;
            answer.block = handled.advice.block.as_deref().map(brief::sentence);
            // Beside a denial an agent may drop the rest of the answer.
            if answer.block.is_none() {
                delivers = told.notices;
            }
            answer.message = brief::message(&delivers, &handled.advice);
            if let Some(token) = &handled.token {
                if let Err(error) = own_process::export(adapter, token) {
                    say(&format!("tenure: cannot pass on TENURE_SESSION: {error}"));
                }
                answer.token = Some(token.clone());
            }
            shown = Some((store, handled, dir));
        }
        Err(Missed::Problem(problem, process)) => {
            say(&format!("tenure: {}", problem.message));
            answer = missed(adapter, mode, report, process.as_ref(), &problem);
        }
        // Silent, on stderr too: some agents show stderr to their user at every event.
        Err(Missed::NotOurs) => {}
    }
    let said = adapter.answer(&report.name, &answer);
    time.answer();
    let channel = said.as_ref().map_or(Channel::Nowhere, show);
    // After the answer: a mirror that has to wait delays the agent, but costs it no notice and no block.
    if let Some((mut store, handled, dir)) = shown {
        delivered(&mut store, &delivers, channel);
        mirror(store, &handled, &dir, until);
    }
}

/// The answer to an event that could not be recorded; it is counted.
fn missed(
    adapter: &Adapter,
    mode: Option<Mode>,
    report: &Report,
    process: Option<&Ancestor>,
    problem: &Problem,
) -> Answer {
    let settings = Settings::of_user().unwrap_or_default();
    let block = (waits_where_unclear(report) && settings.closes_on_error)
        .then(|| brief::sentence(&block(&problem.message)));
    let told = outage::note(adapter.name, report, process, problem, block.is_some());
    let told = told.as_deref().map(brief::sentence);
    let mode = settings.guard_mode.or(mode).unwrap_or_default();
    let speaks = report.reaches_model && mode != Mode::Observe;
    Answer {
        context: told.clone().filter(|_| speaks),
        message: told,
        block,
        token: None,
    }
}

/// An event that was recorded.
struct Recorded {
    handled: HandledEvent,
    notices: Pending,
    store: HookStore,
    dir: String,
}

/// Reports that a program's process is unknown, if it registers that way or nothing is recorded.
fn say_unclear(adapter: &Adapter, handled: &HandledEvent) {
    let Some(why) = &handled.unclear else {
        return;
    };
    let name = adapter.name;
    match (&handled.session, handled.registered) {
        (None, _) => say(&format!(
            "tenure: hook {name}: {why}; nothing was recorded. Set \"pid\" or \"session_id\" in the event"
        )),
        (Some(handle), Some(_)) => say(&format!(
            "tenure: hook {name}: {why}; only its lease keeps {handle} alive. Set \"pid\" in the event to the process that does the work"
        )),
        (Some(_), None) => {}
    }
}

/// Why an event was not recorded.
enum Missed {
    Problem(Box<Problem>, Option<Ancestor>),
    /// It is not an event of a session of this agent: another agent ran the hook, or a process that was only
    /// started in advance.
    NotOurs,
}

impl From<Problem> for Missed {
    fn from(problem: Problem) -> Self {
        Missed::Problem(Box::new(problem), None)
    }
}

/// Whether the agent, in a run, would lose its prompt to what its start event answers. Its prompt event is answered
/// instead.
fn starts_hide_prompts(adapter: &Adapter) -> bool {
    let hides = |event: &Event| event.notes.contains(&Note::HidesPrompt);
    adapter.events.iter().any(hides) && env::var(RUN_VARIABLE).is_some()
}

fn handle(
    adapter: &Adapter,
    mode: Option<Mode>,
    report: &Report,
    time: &Deadline,
    until: Instant,
) -> Result<Recorded, Missed> {
    time.at(Step::Settings);
    let settings = Settings::of_user()?;
    if waits_where_unclear(report) && settings.closes_on_error {
        let block = Some(block("the hook timed out"));
        let answer = Answer {
            block,
            ..Answer::default()
        };
        time.prepare(adapter, report, &answer);
    }
    let mut store = HookStore::prepare(settings, until)?;
    time.at(Step::Processes);
    let mut program = None;
    let process = match own_process::find(adapter, store.machine(), report.pid) {
        Whose::Agent(found) => Some(*found),
        Whose::Program(found) => {
            program = Some(found);
            None
        }
        Whose::NotFound => None,
        Whose::Another => return Err(Missed::NotOurs),
    };
    let spare = process
        .as_ref()
        .filter(|found| own_process::is_spare(adapter, found));
    let was_spare = spare.is_some();
    let waits = |found: &Ancestor| unmanaged::waits_for_work(adapter.name, found);
    if report.what == Happening::Start && spare.is_some_and(waits) {
        return Err(Missed::NotOurs);
    }
    if let Some(found) = &process {
        time.found(found);
    }
    time.at(Step::Store);
    let policy = store.guard(mode);
    // In the mode observe only the log reports it; the model is told nothing.
    let policy_speaks = policy.mode != Mode::Observe;
    let hides_prompt = starts_hide_prompts(adapter);
    let is_heard = report.reaches_model && !(hides_prompt && report.what == Happening::Start);
    let speaks = is_heard && policy_speaks;
    // What is blocked says so itself, where it is used.
    let wants_recap = report.recaps && policy.mode == Mode::Warn;
    let event = AgentEvent {
        program,
        reaches_model: speaks,
        speaks: policy_speaks,
        tool: tool_of(adapter, report, policy),
        ..event_of(adapter, report, process.clone())
    };
    // The start of one that was started in advance was not its own: its first prompt is.
    let prompts = event.doing == Some(Doing::Busy) && report.tool.is_none();
    let starts = matches!(event.what, Happening::Start | Happening::Fork) || (was_spare && prompts);
    if starts {
        store.read_project(&event.dir);
    }
    let is_private = report.prompt.is_some() || report.title.is_some() || report.asks.is_some();
    let keeps = is_private && store.keeps_titles(&event.dir);
    let briefs = if hides_prompt { prompts } else { starts };
    let event = AgentEvent {
        wants_brief: speaks && briefs && store.wants_brief(),
        briefs_late: hides_prompt,
        wants_recap,
        prompt: report.prompt.clone().filter(|_| keeps),
        title: report.title.clone().filter(|_| keeps),
        asks: if keeps {
            report.asks.clone()
        } else {
            report.asks_kind.clone().map(Asked::Exactly)
        },
        ..event
    };
    let outcome = store
        .open()
        .and_then(|mut service| service.handle_event(&event).map_err(Problem::from));
    match outcome {
        Ok(tenure_service::Answer { value, notices, .. }) => Ok(Recorded {
            handled: value,
            notices,
            store,
            dir: event.dir,
        }),
        Err(problem) => Err(Missed::Problem(Box::new(problem), process)),
    }
}

/// Brings the files up to date that show this session to other tools, in what is left of the time.
fn mirror(store: HookStore, handled: &HandledEvent, dir: &str, until: Instant) {
    let Some(session) = handled.id.filter(|_| handled.changed) else {
        return;
    };
    if let Some(mut context) = store.with_mirrors(dir) {
        for said in mirrors::refresh(&mut context, session, until) {
            say(&format!("warning: {said}"));
        }
    }
}

fn event_of(adapter: &Adapter, report: &Report, process: Option<Ancestor>) -> AgentEvent {
    let dir = match &report.dir {
        Some(dir) => dir.clone(),
        None => cwd::name().to_string_lossy().into_owned(),
    };
    let agent = if adapter.is_any_program {
        report.agent.clone()
    } else {
        AgentName::parse(adapter.name).ok()
    };
    let transcript = report.transcript.as_deref();
    let ends = matches!(report.what, Happening::End { .. } | Happening::Leaves);
    let ended = process.as_ref().filter(|_| ends);
    let terminal = match ended.map(|found| &found.process) {
        Some(process) if terminal::is_gone(process) => Terminal::Gone,
        Some(process) if terminal::is_quiet(process.pid) => Terminal::Quiet,
        _ => Terminal::Open,
    };
    AgentEvent {
        agent,
        process,
        program: None,
        native_id: report.native_id.clone(),
        what: report.what.clone(),
        subagent: report.subagent.clone(),
        doing: report.doing,
        asks: None,
        attended: report.attended,
        terminal,
        dir,
        transcript: transcript.map(one_spelling),
        tool: None,
        prompt: None,
        title: None,
        reaches_model: false,
        speaks: false,
        wants_brief: false,
        briefs_late: false,
        wants_recap: false,
    }
}

/// The tool call, if it can conflict with another session.
fn tool_of(adapter: &Adapter, report: &Report, policy: GuardPolicy) -> Option<ToolUse> {
    let tool = report.tool.as_ref()?;
    let dir = report.dir.as_deref().unwrap_or("/");
    let whole = |path: &String| {
        let path = Path::new(dir).join(path);
        one_spelling(&path.to_string_lossy())
    };
    let used = ToolUse {
        writes: tool.writes.iter().map(whole).collect(),
        command: tool.command.clone(),
        ran: !tool.before,
        answer_is_read: adapter.reads_before_tool,
        policy,
    };
    let runs_git = |line: &String| line.contains("git");
    let matters = !used.writes.is_empty() || used.command.as_ref().is_some_and(runs_git);
    matters.then_some(used)
}

/// Whether it is a write, which the user may want blocked when the store is unavailable.
fn waits_where_unclear(report: &Report) -> bool {
    let writes = |tool: &tenure_agents::Tool| tool.before && !tool.writes.is_empty();
    report.tool.as_ref().is_some_and(writes)
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

/// Writes the answer; what its part for the model reached.
fn show(answer: &Value) -> Channel {
    match sink::out(&answer.to_string()) {
        Ok(()) => match sink::channel(&std::io::stdout(), true, false) {
            Channel::Json => Channel::Hook,
            // Only a person reads a terminal, and /dev/null has no reader.
            elsewhere => elsewhere,
        },
        Err(Unwritten::ReaderLeft) => Channel::Nowhere,
        Err(Unwritten::Failed(error)) => {
            say(&format!("tenure: the output could not be written: {error}"));
            Channel::Nowhere
        }
    }
}

/// Keeps which notices the written answer told. If that fails, the next answer tells them again.
fn delivered(store: &mut HookStore, told: &[Notice], channel: Channel) {
    if told.is_empty() || channel == Channel::Nowhere {
        return;
    }
    let kept = store.open().and_then(|mut service| {
        let kept = service.delivered(told, channel);
        kept.map_err(Problem::from)
    });
    if let Err(problem) = kept {
        say(&format!(
            "tenure: these notices will be shown again: {}",
            problem.message
        ));
    }
}
