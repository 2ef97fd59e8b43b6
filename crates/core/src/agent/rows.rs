//! The rows: how each agent looks, where it keeps its conversations, and what it does not report.

use super::command_lines;
use super::{AgentSpec, DaemonSpec, Mark, Traces, TranscriptLayout};
use crate::session::Doing;
use crate::start;

/// The defaults: an agent without any special features.
const PLAIN: AgentSpec = AgentSpec {
    name: "",
    executables: &[],
    version_folders: &[],
    scripts: &[],
    titles: &[],
    fork_arguments: &[],
    id_variable: None,
    hosts: false,
    host_arguments: &[],
    helpers: &[],
    other_verbs: &[],
    spares: &[],
    daemon: None,
    transcripts: None,
    subagents: None,
    silent_ends: &[],
    command_line: start::PLAIN,
    resumes: false,
    unclear_ends: &[],
    ends_alike: false,
    announces: false,
    traces: None,
};

/// The agents that are recognised.
pub const AGENTS: &[AgentSpec] = &[
    AgentSpec {
        name: "claude",
        executables: &["claude", "claude.exe"],
        version_folders: &["claude/versions"],
        scripts: &["/@anthropic-ai/claude-code/cli.js"],
        fork_arguments: &["--fork-session"],
        id_variable: Some("CLAUDE_CODE_SESSION_ID"),
        helpers: &[&["--bg-pty-host"]],
        other_verbs: &[
            "agents",
            "attach",
            "auth",
            "auto-mode",
            "daemon",
            "doctor",
            "gateway",
            "import",
            "install",
            "kill",
            "logs",
            "mcp",
            "plugin",
            "plugins",
            "purge",
            "respawn",
            "rm",
            "setup-token",
            "stop",
            "update",
            "upgrade",
        ],
        spares: &["--bg-spare"],
        transcripts: Some(TranscriptLayout {
            variable: Some("CLAUDE_CONFIG_DIR"),
            home: ".claude",
            folder: "projects",
            depth: 2,
            name: "ID",
            new_file: Some("DIR/ID"),
            empty_is_absent: true,
        }),
        subagents: Some(Mark::Begins("agent-")),
        // Esc, a prompt that is answered with no, and the end of /compact; its registry reports them.
        silent_ends: &[Doing::Busy, Doing::Waiting],
        command_line: command_lines::CLAUDE,
        resumes: true,
        unclear_ends: &["other"],
        ..PLAIN
    },
    AgentSpec {
        name: "codex",
        executables: &["codex"],
        scripts: &["/@openai/codex/bin/codex.js"],
        fork_arguments: &["fork"],
        id_variable: Some("CODEX_THREAD_ID"),
        host_arguments: &["app-server"],
        helpers: &[
            &["codex-linux-sandbox"],
            &["app-server", "daemon"],
            &["app-server", "proxy"],
        ],
        daemon: Some(DaemonSpec {
            flag: "--managed-daemon",
            variable: "CODEX_HOME",
            home: ".codex",
            socket: "app-server-control/app-server-control.sock",
            state: "thread/read",
            method: "mcpServerStatus/list",
            server: "codex_tui",
        }),
        transcripts: Some(TranscriptLayout {
            variable: Some("CODEX_HOME"),
            home: ".codex",
            folder: "sessions",
            depth: 4,
            name: "rollout-TIME-ID",
            new_file: None,
            empty_is_absent: false,
        }),
        // A failed turn, and an answered prompt; its transcript reports the first.
        silent_ends: &[Doing::Busy, Doing::Waiting],
        command_line: command_lines::CODEX,
        resumes: true,
        traces: Some(Traces {
            folder: "tmp/arg0-linux",
            lock: ".lock",
            link: "apply_patch",
            daemon: "packages/app-server-daemon",
        }),
        ..PLAIN
    },
    AgentSpec {
        name: "gemini",
        executables: &["gemini"],
        scripts: &[
            "/@google/gemini-cli/bundle/gemini.js",
            "/@google/gemini-cli/dist/index.js",
        ],
        id_variable: Some("GEMINI_SESSION_ID"),
        transcripts: Some(TranscriptLayout {
            variable: None,
            home: ".gemini",
            folder: "tmp",
            depth: 3,
            name: "session-TIME-ID8",
            new_file: None,
            empty_is_absent: true,
        }),
        // A cancelled tool, and an answered prompt; its transcript reports the first.
        silent_ends: &[Doing::Busy, Doing::Waiting],
        command_line: command_lines::GEMINI,
        resumes: true,
        ends_alike: true,
        ..PLAIN
    },
    AgentSpec {
        name: "opencode",
        executables: &["opencode", "opencode.exe"],
        command_line: command_lines::OPENCODE,
        resumes: true,
        ends_alike: true,
        announces: true,
        ..PLAIN
    },
    AgentSpec {
        name: "qwen",
        executables: &["qwen"],
        scripts: &[
            "/@qwen-code/qwen-code/cli.js",
            "/@qwen-code/qwen-code/cli-entry.js",
        ],
        id_variable: Some("QWEN_CODE_SESSION_ID"),
        host_arguments: &["--acp", "--experimental-acp"],
        transcripts: Some(TranscriptLayout {
            variable: Some("QWEN_HOME"),
            home: ".qwen",
            folder: "projects",
            depth: 3,
            name: "ID",
            new_file: Some("DIR/chats/ID"),
            empty_is_absent: false,
        }),
        silent_ends: &[Doing::Busy, Doing::Waiting],
        command_line: command_lines::QWEN,
        resumes: true,
        ends_alike: true,
        ..PLAIN
    },
    AgentSpec {
        name: "openclaw",
        executables: &["openclaw", "openclaw-gateway"],
        scripts: &["/openclaw/openclaw.mjs"],
        titles: &["openclaw-gateway"],
        hosts: true,
        subagents: Some(Mark::Contains(":subagent:")),
        resumes: true,
        ..PLAIN
    },
    // Without our hooks: it is known because it runs a project's Claude Code hooks.
    AgentSpec {
        name: "copilot",
        executables: &["copilot"],
        scripts: &[
            "/@github/copilot/index.js",
            "/@github/copilot/npm-loader.js",
        ],
        id_variable: Some("COPILOT_AGENT_SESSION_ID"),
        host_arguments: &["--acp"],
        ..PLAIN
    },
];

#[cfg(test)]
mod tests {
    use crate::agent::{hosts, recognise};
    use crate::process::ProcessAppearance;

    fn looks(exe: &str, argv: &[&str]) -> ProcessAppearance {
        ProcessAppearance {
            exe: exe.into(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            comm: String::new(),
        }
    }

    #[test]
    fn a_gateway_is_known_by_the_title_that_replaced_its_arguments() {
        let gateway = looks("/opt/node/bin/node", &["openclaw-gateway", "", ""]);
        let spec = recognise(&gateway).unwrap();
        assert_eq!(spec.name, "openclaw");
        assert!(hosts(spec, &gateway));
        for (exe, argv) in [
            (
                "/opt/node/bin/node",
                &["openclaw-gateway", "/x/other.js"][..],
            ),
            ("/usr/bin/vim", &["openclaw-gateway"]),
        ] {
            assert!(recognise(&looks(exe, argv)).is_none(), "{exe} {argv:?}");
        }
    }
}
