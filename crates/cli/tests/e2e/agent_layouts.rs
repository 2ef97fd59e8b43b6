//! Agents as their installers lay them on the disk: each is seen for what it is, inside another session too.

use serde_json::Value;
use tenure_testkit::Agent;

use crate::support::answer::{ask, asked_by_nobody, assert_is, refused, register, text};
use crate::support::person::seeing;

/// A program on the disk, its arguments, and the agent that it is.
type Layout = (&'static str, &'static [&'static str], &'static str);

const LAYOUTS: &[Layout] = &[
    ("share/claude/versions/2.1.325", &[], "claude"),
    ("codex-x86_64-unknown-linux-musl", &[], "codex"),
    ("nix/bin/.claude-wrapped", &[], "claude"),
    ("node-22", &["/x/@openai/codex/bin/codex.js"], "codex"),
];

/// What `ps` lists as unmanaged under this pid; other tests' agents are there too.
fn unmanaged(listed: &Value, agent: &Agent) -> Option<String> {
    let all = listed["unmanaged"].as_array().expect("a list");
    let one = all.iter().find(|one| one["pid"] == agent.pid())?;
    Some(text(one, "/agent").to_owned())
}

#[test]
fn an_agent_inside_another_session_is_not_that_session_however_it_is_installed() {
    let env = seeing();
    let outer = env.agent("claude");
    let outer_id = text(&register(&outer, &[]), "/session/id").to_owned();
    ask(&outer, &["claim", "wp:1"]);
    for (program, args, name) in LAYOUTS {
        let inner = outer.nest_with(program, args);
        refused(&inner, 4, &["whoami"]);
        refused(&inner, 4, &["guard", "wp:1"]);
        let listed = asked_by_nobody(&env, &["ps"]);
        assert_eq!(
            unmanaged(&listed, &inner).as_deref(),
            Some(*name),
            "{program}"
        );
        let born = register(&inner, &[]);
        assert_is(&born, inner.pid());
        assert_eq!(text(&born, "/session/agent"), *name, "{program}");
        assert_ne!(text(&born, "/session/id"), outer_id, "{program}");
    }
}

#[test]
fn an_agent_in_a_persons_shell_registers_itself_and_not_the_shell() {
    let env = seeing();
    let shell = env.agent_at_terminal("bash");
    for (program, args, name) in LAYOUTS {
        let inner = shell.nest_with(program, args);
        let born = register(&inner, &[]);
        assert_is(&born, inner.pid());
        assert_eq!(text(&born, "/session/agent"), *name, "{program}");
    }
}

#[test]
fn a_tool_in_a_folder_with_an_agents_name_is_part_of_its_session() {
    let env = seeing();
    let outer = env.agent("claude");
    let outer_id = text(&register(&outer, &[]), "/session/id").to_owned();
    for program in [
        "codex/bin/rg",
        "codex/0.166.0",
        "share/claude/versions/backup",
        "myclaude/versions/2.1.325",
    ] {
        let tool = outer.nest(program);
        assert_eq!(
            text(&ask(&tool, &["whoami"]), "/session/id"),
            outer_id,
            "{program}"
        );
        let listed = asked_by_nobody(&env, &["ps"]);
        assert_eq!(unmanaged(&listed, &tool), None, "{program}");
    }
}
