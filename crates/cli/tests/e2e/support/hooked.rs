//! An agent at work in a repository, which sends what it does to its hooks.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, scratch_git};

use super::answer::ask;

/// An agent whose events go through the hook.
pub struct Hooked {
    pub agent: Agent,
    pub name: &'static str,
    pub conversation: String,
    pub dir: PathBuf,
}

impl Hooked {
    /// Starts an agent that reports its start.
    pub fn start(env: &Env, name: &'static str, conversation: &str, dir: &Path) -> Hooked {
        Hooked::with(env.agent(name), name, conversation, dir)
    }

    pub fn with(agent: Agent, name: &'static str, conversation: &str, dir: &Path) -> Hooked {
        let hooked = Hooked {
            agent,
            name,
            conversation: conversation.to_owned(),
            dir: dir.to_owned(),
        };
        hooked.event(&[], "SessionStart", json!({"source": "startup"}));
        hooked
    }

    /// Sends an event; what was answered.
    #[track_caller]
    pub fn event(&self, flags: &[&str], event: &str, more: Value) -> Value {
        let mut payload = json!({
            "hook_event_name": event, "session_id": self.conversation, "cwd": self.dir,
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut payload, more) {
            all.extend(more);
        }
        let args = [&["hook", self.name], flags].concat();
        let answer = self.agent.tenure_stdin(&args, &payload.to_string()).ok();
        match answer.stdout.trim() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")),
        }
    }

    /// The events around a write of a file, with what was answered to the first.
    #[track_caller]
    pub fn write(&self, flags: &[&str], file: &Path) -> Value {
        let tool = json!({"tool_name": "Write", "tool_input": {"file_path": file}});
        let answer = self.event(flags, "PreToolUse", tool.clone());
        if denied(&answer).is_none() {
            std::fs::write(file, &self.conversation).expect("a scratch directory is writable");
            self.event(flags, "PostToolUse", tool);
        }
        answer
    }

    /// Runs git in its directory, without a word to the hook.
    #[track_caller]
    pub fn git(&self, args: &[&str]) {
        let cmd = Cmd::new("git").args(args.iter().copied()).dir(&self.dir);
        self.agent.run(cmd).ok();
    }

    #[track_caller]
    pub fn run(&self, flags: &[&str], line: &str) -> Value {
        let tool = json!({"tool_name": "Bash", "tool_input": {"command": line}});
        self.event(flags, "PreToolUse", tool)
    }

    pub fn handle(&self) -> String {
        let me = ask(&self.agent, &["whoami"]);
        me["session"]["handle"]
            .as_str()
            .expect("it is a session")
            .to_owned()
    }
}

/// What the model was told.
pub fn told(answer: &Value) -> Option<&str> {
    answer["hookSpecificOutput"]["additionalContext"].as_str()
}

/// Why a tool was denied.
pub fn denied(answer: &Value) -> Option<&str> {
    let specific = &answer["hookSpecificOutput"];
    if specific["permissionDecision"] != "deny" {
        return None;
    }
    specific["permissionDecisionReason"].as_str()
}

/// A repository with a file in it.
pub fn repository(env: &Env, name: &str) -> PathBuf {
    let repo = env.dir().join(name);
    scratch_git(&repo, Some(&format!("git@example.com:acme/{name}.git")));
    std::fs::create_dir_all(repo.join("src")).expect("it was just made");
    repo
}

/// A repository, and two Claude Codes at work in it.
pub fn pair(env: &Env) -> (PathBuf, Hooked, Hooked) {
    let repo = repository(env, "web");
    let [a, b] = ["a1", "b1"].map(|id| Hooked::start(env, "claude", id, &repo));
    (repo, a, b)
}
