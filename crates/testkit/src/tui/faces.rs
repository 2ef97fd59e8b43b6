//! How each agent's screen differs. Texts are as shown on it, without white space.

use std::path::Path;

use serde_json::{Value, json};

use super::doing::Doing;
use super::window::Key;
use crate::real::Real;

pub(super) struct Face {
    /// Its arguments.
    pub(super) args: &'static [&'static str],
    /// Changes its existing settings so that it asks before it runs a command.
    pub(super) prepare: fn(&Path),
    /// A question before the first prompt, and the keys that answer it.
    pub(super) first: &'static [&'static str],
    pub(super) first_keys: &'static [Key],
    /// What it shows at its prompt, while it works, and while it asks.
    pub(super) idle: &'static [&'static str],
    pub(super) busy: &'static [&'static str],
    pub(super) asks: &'static [&'static str],
    /// What it shows when it expects Escape once more.
    pub(super) again: &'static [&'static str],
    pub(super) no: Answers,
    pub(super) compact: &'static str,
    pub(super) clear: &'static str,
    pub(super) exit: &'static str,
    pub(super) asking: fn(&str) -> String,
    /// A step that starts a subagent.
    pub(super) subagent: Option<fn(&str) -> String>,
    /// What it shows while a subagent works: some agents still accept prompts.
    pub(super) with_subagent: Doing,
    pub(super) background: Option<fn(&str) -> String>,
}

/// How to answer a question with no.
pub(super) enum Answers {
    /// By the number in front of it.
    Numbered,
    Keys(&'static [Key]),
}

pub(super) fn of(kind: Real) -> &'static Face {
    match kind {
        Real::Claude | Real::ClaudeOld => &CLAUDE,
        Real::Codex => &CODEX,
        Real::Gemini => &GEMINI,
        Real::Opencode => &OPENCODE,
        Real::Qwen => &QWEN,
    }
}

const CLAUDE: Face = Face {
    args: &[],
    prepare: |home| {
        change(&home.join(".claude.json"), |state| {
            state["hasSeenAutoDefaultNudge"] = json!(true);
        });
        change(&home.join(".claude/settings.json"), |settings| {
            settings["permissions"] =
                json!({"defaultMode": "default", "allow": ["Read", "Agent", "Task"]});
        });
    },
    first: &["Makeautomodeyourdefault"],
    first_keys: &[Key::Down, Key::Enter],
    idle: &["manualmodeon", "?forshortcuts"],
    busy: &["esctointerrupt", "●main"],
    asks: &["Doyouwanttoproceed?", "Esctocancel"],
    again: &[],
    no: Answers::Numbered,
    compact: "/compact",
    clear: "/clear",
    exit: "/exit",
    asking: shell,
    subagent: Some(|prompt| {
        let input =
            json!({"description": "mock", "prompt": prompt, "subagent_type": "general-purpose"});
        format!("MOCK:tool Agent {input}")
    }),
    with_subagent: Doing::Busy,
    background: Some(|command| {
        let input = json!({"command": command, "description": "mock", "run_in_background": true});
        format!("MOCK:tool Bash {input}")
    }),
};

const CODEX: Face = Face {
    args: &[],
    prepare: |_| (),
    first: &["Trustallandcontinue"],
    first_keys: &[Key::Down, Key::Enter],
    // It shows a prompt before it has asked about its hooks; the model's name appears after that.
    idle: &["mock-modeldefault"],
    busy: &["esctointerrupt"],
    asks: &["Wouldyouliketorunthefollowingcommand?"],
    again: &[],
    no: Answers::Keys(&[Key::Plain('n')]),
    compact: "/compact",
    clear: "/clear",
    exit: "/quit",
    asking: |command| {
        let input = json!({
            "cmd": command, "sandbox_permissions": "require_escalated", "justification": "mock",
            "yield_time_ms": 30_000,
        });
        format!("MOCK:tool exec_command {input}")
    },
    subagent: Some(|prompt| {
        format!(
            "MOCK:tool multi_agent_v1.spawn_agent {}",
            json!({"message": prompt})
        )
    }),
    with_subagent: Doing::Idle,
    background: Some(|command| {
        format!(
            "MOCK:tool exec_command {}",
            json!({"cmd": command, "yield_time_ms": 250})
        )
    }),
};

const GEMINI: Face = Face {
    args: &["-m", "gemini-2.5-flash"],
    prepare: |_| (),
    first: &[],
    first_keys: &[],
    idle: &["Typeyourmessage", "/model"],
    busy: &["esctocancel"],
    asks: &["Allowexecutionof", "Waitingforuserconfirmation"],
    again: &[],
    no: Answers::Numbered,
    compact: "/compress",
    clear: "/clear",
    exit: "/quit",
    asking: shell,
    subagent: Some(|prompt| {
        format!(
            "MOCK:tool invoke_agent {}",
            json!({"agent_name": "generalist", "prompt": prompt})
        )
    }),
    with_subagent: Doing::Busy,
    background: Some(|command| {
        let input = json!({"command": command, "description": "mock", "is_background": true});
        format!("MOCK:tool run_shell_command {input}")
    }),
};

const OPENCODE: Face = Face {
    args: &[],
    prepare: |home| {
        change(&home.join(".config/opencode/opencode.json"), |settings| {
            settings["permission"] = json!({"bash": "ask", "edit": "allow"});
        });
    },
    first: &[],
    first_keys: &[],
    idle: &["ctrl+pcommands"],
    busy: &["escinterrupt", "escagaintointerrupt"],
    asks: &["Permissionrequired"],
    again: &["escagaintointerrupt"],
    no: Answers::Keys(&[Key::Right, Key::Right, Key::Enter]),
    compact: "/compact",
    clear: "/new",
    exit: "/exit",
    asking: shell,
    subagent: Some(|prompt| {
        let input = json!({"description": "mock", "prompt": prompt, "subagent_type": "general"});
        format!("MOCK:tool task {input}")
    }),
    with_subagent: Doing::Busy,
    background: None,
};

const QWEN: Face = Face {
    args: &["--approval-mode", "default"],
    prepare: |_| (),
    first: &[],
    first_keys: &[],
    idle: &["Askpermissions"],
    busy: &["esctocancel"],
    asks: &[
        "Allowexecutionof",
        "Doyouwanttoproceed?",
        "Waitingforuserconfirmation",
    ],
    again: &[],
    no: Answers::Numbered,
    compact: "/compress",
    clear: "/clear",
    exit: "/quit",
    asking: shell,
    subagent: Some(|prompt| {
        let input = json!({"description": "mock", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": false});
        format!("MOCK:tool agent {input}")
    }),
    with_subagent: Doing::Busy,
    background: Some(|command| {
        let input = json!({"command": command, "description": "mock", "is_background": true});
        format!("MOCK:tool run_shell_command {input}")
    }),
};

fn shell(command: &str) -> String {
    format!("MOCK:bash {command}")
}

/// Edits an existing settings file.
fn change(path: &Path, edit: impl FnOnce(&mut Value)) {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut settings: Value = serde_json::from_str(&text).expect("settings are JSON");
    edit(&mut settings);
    let text = serde_json::to_string_pretty(&settings).expect("a value can be written as JSON");
    std::fs::write(path, text + "\n").expect("the home is writable");
}
