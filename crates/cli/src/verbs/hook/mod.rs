//! `tenure hook`: an agent's event in, our answer in the agent's own format out.
//!
//! It runs at every tool call of every agent, so it reads nothing that the event does not need, and it may
//! never break the agent: whatever goes wrong (no event, a store that is locked, full or gone, our own
//! bug) costs a line on stderr and exit 0, within two seconds, one for an end. Its exit codes are its own:
//! 0, 2 only as a deliberate block, 64 for a wrong command line. What fails is said once where the person
//! and the model see it, and counted ([`outage`]).

mod brief;
mod input;
mod outage;
pub mod own_process;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_agents::{Adapter, Answer, Report};
use tenure_core::id::AgentName;
use tenure_core::notice::{Channel, Notice, Pending};
use tenure_core::process::Ancestor;
use tenure_core::service::{self, AgentEvent, GuardPolicy, Happening, Heard, ToolUse};
use tenure_core::trample::Mode;

use crate::app::{HookStore, closes_on_error, current_dir, guard_mode};
use crate::exit::Exit;
use crate::mirrors;
use crate::output::{Trouble, warn};
use crate::sink::{self, Unwritten};
pub use input::read as read_event;
pub use outage::lately as outages;
pub use own_process::Whose;

/// How long an event may take in all.
const LIMIT: Duration = Duration::from_millis(1_800);
/// The same for an end, for which agents wait less.
const END_LIMIT: Duration = Duration::from_millis(900);

/// Take note of an agent's event; called by the agent, never by hand
///
/// Reads the event on stdin and answers in the agent's own format. `tenure install` makes agents call it.
/// Exit codes: 0; 2 only to block a tool on purpose; 64 for a wrong command line.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure hook claude < event.json
  echo '{\"event\":\"busy\",\"agent\":\"nightly\",\"session_id\":\"7f3c\"}' | tenure hook generic

For any program (generic): event is start, fork, busy, waiting, idle, beat or end; agent, session_id, cwd,
subagent_id, reason, transcript_path and writes are optional. The answer has context, message, block, env.")]
pub struct Args {
    /// Which agent: claude, codex, gemini, opencode or generic
    #[arg(value_name = "AGENT")]
    agent: String,

    /// What is done about a tool under another session's feet: observe, warn or block
    #[arg(long, value_name = "MODE", default_value = "warn")]
    mode: String,
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
pub fn run(arguments: &[OsString]) -> Exit {
    let began = Instant::now();
    let (adapter, mode) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(what) => {
            say(&format!("error: {what}"));
            say("hint: tenure help hook shows how it is used");
            return Exit::HOOK_USAGE;
        }
    };
    let answered = std::panic::catch_unwind(|| answer(adapter, mode, began));
    answered.unwrap_or(Exit::DONE)
}

/// Runs the hook as clap read it.
pub fn run_parsed(args: &Args) -> Exit {
    let words = [args.agent.as_str(), "--mode", args.mode.as_str()];
    run(&words.map(OsString::from))
}

fn parse(arguments: &[OsString]) -> Result<(&'static dyn Adapter, Option<Mode>), String> {
    let mut named: Option<&OsStr> = None;
    let mut mode = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--json" | "--quiet" | "-q" | "--verbose" | "-v") => {}
            Some("--mode") => {
                let given = words.next().and_then(|word| word.to_str());
                let read = given.and_then(Mode::parse);
                mode = Some(read.ok_or("--mode is observe, warn or block")?);
            }
            // An event says whose it is.
            Some("--session") => drop(words.next()),
            Some(flag) if flag.starts_with("--session=") => {}
            Some(flag) if flag.starts_with('-') => {
                return Err(format!("{flag} is not a flag of hook"));
            }
            _ if named.is_some() => return Err("one agent at a time".to_owned()),
            _ => named = Some(word),
        }
    }
    let names = || {
        let names: Vec<&str> = tenure_agents::ADAPTERS
            .iter()
            .map(|one| one.name())
            .collect();
        names.join(", ")
    };
    let Some(named) = named else {
        return Err(format!("which agent? One of {}", names()));
    };
    let adapter = named
        .to_str()
        .and_then(tenure_agents::adapter)
        .ok_or_else(|| format!("{} is not an agent; there are {}", named.display(), names()))?;
    Ok((adapter, mode))
}

fn answer(adapter: &dyn Adapter, mode: Option<Mode>, began: Instant) -> Exit {
    let bytes = match input::read(began) {
        Ok(bytes) => bytes,
        Err(error) => {
            say(&format!("tenure: cannot read the event: {error}"));
            Vec::new()
        }
    };
    let report = adapter.read(&bytes);
    for problem in &report.problems {
        say(&format!("tenure: hook {}: {problem}", adapter.name()));
    }
    if report.name.is_empty() && report.native_id.is_none() {
        return Exit::DONE;
    }
    let limit = match report.what {
        Happening::End { .. } => END_LIMIT,
        _ => LIMIT,
    };
    let mut answer = Answer::default();
    let mut delivers = Vec::new();
    match hear(adapter, mode, &report, began + limit) {
        Ok((heard, notices)) => {
            let told = brief::context(heard.brief.as_ref(), &notices, &heard.advice);
            answer.context = told.text;
            answer.block = heard.advice.block.as_deref().map(brief::sentence);
            // Beside a denial an agent may drop the rest of the answer.
            if answer.block.is_none() {
                delivers = told.notices;
            }
            if let Some(token) = heard.token {
                own_process::export(adapter, &token);
                answer.token = Some(token);
            }
        }
        Err(Missed::Trouble(trouble, process)) => {
            say(&format!("tenure: {}", trouble.message));
            let told = outage::note(adapter.name(), &report, process.as_ref(), &trouble);
            let speaks = report.reaches_model && guard_mode(mode) != Mode::Observe;
            let told = told.as_deref().map(brief::sentence);
            answer.context = told.clone().filter(|_| speaks);
            answer.message = told;
            let blocks = trouble_blocks(&report, &trouble);
            answer.block = blocks.as_deref().map(brief::sentence);
        }
        Err(Missed::NotOurs(why)) => say(&format!("tenure: {why}; nothing was recorded")),
    }
    if let Some(said) = adapter.answer(&report.name, &answer) {
        let channel = show(&said);
        delivered(&delivers, channel, began + limit);
    }
    Exit::DONE
}

/// Why an event was not taken note of.
enum Missed {
    Trouble(Box<Trouble>, Option<Ancestor>),
    NotOurs(String),
}

impl From<Trouble> for Missed {
    fn from(trouble: Trouble) -> Self {
        Missed::Trouble(Box::new(trouble), None)
    }
}

fn hear(
    adapter: &dyn Adapter,
    mode: Option<Mode>,
    report: &Report,
    until: Instant,
) -> Result<(Heard, Pending), Missed> {
    let mut store = HookStore::prepare(until)?;
    let process = match own_process::find(adapter, store.machine()) {
        Whose::Agent(found) => Some(*found),
        Whose::Nobody => None,
        Whose::Another(why) => return Err(Missed::NotOurs(why)),
    };
    let policy = store.guard(mode);
    // Whoever only observes is told by `log`; the model is told nothing.
    let policy_speaks = policy.mode != Mode::Observe;
    let speaks = report.reaches_model && policy_speaks;
    let event = AgentEvent {
        reaches_model: speaks,
        speaks: policy_speaks,
        wants_brief: speaks && store.wants_brief(),
        tool: tool_of(adapter, report, policy),
        ..event_of(adapter, report, process.clone())?
    };
    let outcome = store
        .open()
        .and_then(|mut service| service.hear(&event).map_err(Trouble::from));
    match outcome {
        Ok(service::Answer { value, notices }) => {
            mirror(store, &value, &event.dir, until);
            Ok((value, notices))
        }
        Err(trouble) => Err(Missed::Trouble(Box::new(trouble), process)),
    }
}

/// Brings the files up to date that show this session to other tools, in what is left of the time.
fn mirror(store: HookStore, heard: &Heard, dir: &str, until: Instant) {
    let Some(session) = heard.id.filter(|_| heard.changed) else {
        return;
    };
    if let Some(mut opened) = store.with_mirrors(dir) {
        let left = until.saturating_duration_since(Instant::now());
        mirrors::refresh(&mut opened, session, left);
    }
}

fn event_of(
    adapter: &dyn Adapter,
    report: &Report,
    process: Option<Ancestor>,
) -> Result<AgentEvent, Trouble> {
    let dir = match &report.dir {
        Some(dir) => dir.clone(),
        None => current_dir()?.to_string_lossy().into_owned(),
    };
    let agent = match adapter.is_any_program() {
        true => report.agent.clone(),
        false => AgentName::parse(adapter.name()).ok(),
    };
    let transcript = report.transcript.as_deref();
    Ok(AgentEvent {
        agent,
        process,
        native_id: report.native_id.clone(),
        what: report.what.clone(),
        subagent: report.subagent.clone(),
        doing: report.doing,
        dir,
        transcript: transcript.map(super::register::whole_path),
        tool: None,
        reaches_model: false,
        speaks: false,
        wants_brief: false,
    })
}

/// The tool that is about to run or ran, if it is one that can be under somebody's feet.
fn tool_of(adapter: &dyn Adapter, report: &Report, policy: GuardPolicy) -> Option<ToolUse> {
    let tool = report.tool.as_ref()?;
    let dir = report.dir.as_deref().unwrap_or("/");
    let whole = |path: &String| {
        let path = Path::new(dir).join(path);
        super::register::whole_path(&path.to_string_lossy())
    };
    let used = ToolUse {
        writes: tool.writes.iter().map(whole).collect(),
        command: tool.command.clone(),
        ran: !tool.before,
        answer_is_read: adapter.reads_before_tool(),
        policy,
    };
    let runs_git = |line: &String| line.contains("git");
    let matters = !used.writes.is_empty() || used.command.as_ref().is_some_and(runs_git);
    matters.then_some(used)
}

/// Whether a write must wait because nobody can tell whether it may go ahead, and the user wants that.
fn trouble_blocks(report: &Report, trouble: &Trouble) -> Option<String> {
    let writes = |tool: &tenure_agents::Tool| tool.before && !tool.writes.is_empty();
    let asked = report.tool.as_ref().is_some_and(writes) && closes_on_error();
    asked.then(|| {
        format!(
            "tenure cannot tell whether this file may be written ({}), and guard.on_error is closed",
            trouble.message
        )
    })
}

fn say(text: &str) {
    warn(text);
}

/// Writes the answer; what its part for the model reached.
fn show(answer: &Value) -> Channel {
    match sink::out(&answer.to_string()) {
        Ok(()) => match sink::channel(&std::io::stdout(), true, false) {
            Channel::Json => Channel::Hook,
            // Nobody but a person reads a terminal, and nobody what is thrown away.
            elsewhere => elsewhere,
        },
        Err(Unwritten::ReaderLeft) => Channel::Nowhere,
        Err(Unwritten::Failed(error)) => {
            say(&format!("tenure: the answer cannot be written: {error}"));
            Channel::Nowhere
        }
    }
}

/// Keeps which notices the written answer told. Where that fails, the next answer tells them again.
fn delivered(told: &[Notice], channel: Channel, until: Instant) {
    if told.is_empty() || channel == Channel::Nowhere {
        return;
    }
    let kept = HookStore::prepare(until).and_then(|mut store| {
        let kept = store.open()?.delivered(told, channel);
        kept.map_err(Trouble::from)
    });
    if let Err(trouble) = kept {
        say(&format!(
            "tenure: notices will be told again: {}",
            trouble.message
        ));
    }
}
