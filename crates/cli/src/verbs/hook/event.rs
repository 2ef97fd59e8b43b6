//! An agent's report as an event of its session.

use std::path::{Path, PathBuf};

use tenure_agents::{Adapter, EventSpec, Note, Report, Tool};
use tenure_app::hook_store::HookStore;
use tenure_app::own_process;
use tenure_app::witness::titles;
use tenure_core::agent_event::{Happening, QuestionText};
use tenure_core::end::Terminal;
use tenure_core::git_move::{GitMove, git_move};
use tenure_core::id::AgentName;
use tenure_core::process::Ancestor;
use tenure_core::program::Program;
use tenure_core::session::Doing;
use tenure_core::shell_line::{ShellCommand, commands};
use tenure_core::shell_write::shell_writes;
use tenure_core::write_conflict::GuardMode;
use tenure_host::caller::RUN_VARIABLE;
use tenure_host::kernel_lock::one_spelling;
use tenure_host::{cwd, env, terminal};
use tenure_service::{Address, AgentEvent, GuardPolicy, ToolUse};

/// Who sent an event.
pub struct Sender {
    pub process: Option<Ancestor>,
    pub program: Option<Program>,
    /// Whether it was started in advance, before anyone asked for it.
    pub was_spare: bool,
}

/// Whether the agent, in a run, would lose its prompt to what its start event answers. Its prompt event is answered
/// instead.
fn starts_hide_prompts(adapter: &Adapter) -> bool {
    let hides = |event: &EventSpec| event.notes.contains(&Note::HidesPrompt);
    adapter.events.iter().any(hides) && env::var(RUN_VARIABLE).is_some()
}

/// Whether what is answered reaches the model. In the mode observe only the log reports it; the model is told nothing.
fn speaks(adapter: &Adapter, report: &Report, policy: &GuardPolicy) -> bool {
    let is_hidden = report.what == Happening::Start && starts_hide_prompts(adapter);
    report.reaches_model && !is_hidden && policy.mode != GuardMode::Observe
}

/// The event with what the user's settings let it have and ask for.
pub fn whole_event(
    adapter: &Adapter,
    report: &Report,
    sender: Sender,
    policy: GuardPolicy,
    store: &mut HookStore,
) -> AgentEvent {
    let speaks = speaks(adapter, report, &policy);
    let hides_prompt = starts_hide_prompts(adapter);
    let event = AgentEvent {
        program: sender.program,
        reaches_model: speaks,
        speaks: policy.mode != GuardMode::Observe,
        briefs_late: hides_prompt,
        // What is blocked says so itself, where it is used.
        wants_recap: report.recaps && policy.mode == GuardMode::Warn,
        tool: tool_of(adapter, report, policy),
        ..event_of(adapter, report, sender.process)
    };
    // The start of one that was started in advance was not its own: its first prompt is.
    let prompts = event.doing == Some(Doing::Busy) && report.tool.is_none();
    let starts =
        matches!(event.what, Happening::Start | Happening::Fork) || (sender.was_spare && prompts);
    if starts {
        store.read_project(&event.dir);
    }
    let title = report
        .title
        .clone()
        .or_else(|| current_title(adapter, report, &event));
    let is_private =
        report.prompt.is_some() || title.is_some() || report.asks.is_some() || report.why.is_some();
    let keeps = is_private && store.keeps_titles(&event.dir);
    let briefs = if hides_prompt { prompts } else { starts };
    AgentEvent {
        wants_brief: speaks && briefs && store.wants_brief(),
        prompt: report.prompt.clone().filter(|_| keeps),
        title: title.filter(|_| keeps),
        asks: if keeps {
            report.asks.clone()
        } else {
            report.asks_kind.clone().map(QuestionText::Exactly)
        },
        why: if keeps {
            report.why.clone()
        } else {
            report.why_kind.clone()
        },
        ..event
    }
}

/// What the agent calls its conversation, at the events between which it may have changed: not at every tool.
fn current_title(adapter: &Adapter, report: &Report, event: &AgentEvent) -> Option<String> {
    if report.tool.is_some() || report.subagent.is_some() {
        return None;
    }
    let process = &event.process.as_ref()?.process;
    let transcript = event.transcript.as_deref();
    titles::current(adapter, process, event.native_id.as_ref()?, transcript)
}

/// The event, as far as the agent reports it.
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
        why: None,
        until: report.until,
        asks_model: report.asks_model,
        attended: report.attended,
        woken_by: report.woken_by.clone(),
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
        address: report.item.clone().map(|item| Address {
            item,
            user: own_process::user(),
        }),
    }
}

/// The tool call, if it can conflict with another session.
fn tool_of(adapter: &Adapter, report: &Report, policy: GuardPolicy) -> Option<ToolUse> {
    let tool = report.tool.as_ref()?;
    let dir = Path::new(report.dir.as_deref().unwrap_or("/"));
    let whole = |path: PathBuf| one_spelling(&path.to_string_lossy());
    let mut writes: Vec<String> = Vec::new();
    writes.extend(tool.writes.iter().map(|path| whole(dir.join(path))));
    let runs_in = dir.join(tool.dir.as_deref().unwrap_or_default());
    let commands = commands_of(tool);
    for write in shell_writes(&commands) {
        let mut path = runs_in.join(&write.path);
        if let Some(name) = write.name_below.filter(|_| path.is_dir()) {
            path.push(name);
        }
        let is_dir = path.is_dir();
        let mut path = whole(path);
        if is_dir && !path.ends_with('/') {
            path.push('/');
        }
        writes.push(path);
    }
    let moves = git_move(&commands).map(|moves| GitMove {
        dir: Some(whole(runs_in.join(moves.dir.unwrap_or_default()))),
        ..moves
    });
    let matters = !writes.is_empty() || moves.is_some();
    matters.then_some(ToolUse {
        writes,
        moves,
        ran: !tool.before,
        answer_is_read: adapter.reads_before_tool,
        policy,
    })
}

/// Whether it is a write that has not happened yet.
pub fn is_write(report: &Report) -> bool {
    let writes = |tool: &Tool| {
        tool.before && (!tool.writes.is_empty() || !shell_writes(&commands_of(tool)).is_empty())
    };
    report.tool.as_ref().is_some_and(writes)
}

fn commands_of(tool: &Tool) -> Vec<ShellCommand> {
    tool.command.as_deref().map(commands).unwrap_or_default()
}
