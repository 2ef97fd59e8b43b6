//! An agent's report as an event of its session.

use std::path::Path;

use tenure_agents::{Adapter, Report};
use tenure_core::agent_event::Happening;
use tenure_core::end::Terminal;
use tenure_core::id::AgentName;
use tenure_core::process::Ancestor;
use tenure_host::kernel_lock::one_spelling;
use tenure_host::{cwd, terminal};
use tenure_service::{AgentEvent, GuardPolicy, ToolUse};

/// The event, as far as the agent reports it.
pub fn event_of(adapter: &Adapter, report: &Report, process: Option<Ancestor>) -> AgentEvent {
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
pub fn tool_of(adapter: &Adapter, report: &Report, policy: GuardPolicy) -> Option<ToolUse> {
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
