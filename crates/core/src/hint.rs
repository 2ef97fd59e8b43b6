//! What to do next: a command with its reason, as data.
//!
//! Each surface shows a hint in its own form. The command itself decides who may see it: a command that takes
//! something from another session, or cannot be undone, is for a person only, because models run what they
//! read.

use serde::Serialize;

use crate::text;

/// Who may see a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum For {
    Anyone,
    Person,
}

/// Commands and flags that may only be suggested to a person.
const PERSONS_VERBS: &[&str] = &[
    "takeover",
    "end",
    "uninstall",
    "restore",
    "gc",
    "token",
    "answer",
];
const PERSONS_ACTS: &[(&str, &str)] = &[
    ("conversation", "drop"),
    ("store", "copy"),
    ("store", "restore"),
];
const PERSONS_FLAGS: &[&str] = &["--abandon", "--reopen", "--allow-survivors"];

/// A command to run and its reason, or a plain step if no tenure command helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Hint {
    /// The command to run; none for a step outside tenure.
    pub verb: Option<&'static str>,
    /// Its arguments, one word each; a word in capitals is a placeholder.
    pub args: Vec<String>,
    /// The purpose, after the command ("to wait for it"); without a command, the whole step.
    pub why: String,
    #[serde(rename = "for")]
    pub audience: For,
}

impl Hint {
    /// A tenure command; `why` follows it: "to see who holds it", "for details".
    pub fn run<A: AsRef<str>>(
        verb: &'static str,
        args: impl IntoIterator<Item = A>,
        why: impl Into<String>,
    ) -> Self {
        let args: Vec<String> = args.into_iter().map(|arg| arg.as_ref().into()).collect();
        let mut flags = args.iter().take_while(|arg| *arg != "--");
        let is_persons = PERSONS_VERBS.contains(&verb)
            || PERSONS_ACTS.contains(&(verb, args.first().map_or("", String::as_str)))
            || flags.any(|arg| PERSONS_FLAGS.contains(&arg.as_str()));
        Self {
            verb: Some(verb),
            args,
            why: why.into(),
            audience: if is_persons { For::Person } else { For::Anyone },
        }
    }

    /// A tenure command without arguments.
    pub fn verb(verb: &'static str, why: impl Into<String>) -> Self {
        Self::run(verb, [""; 0], why)
    }

    /// A step that is not a tenure command.
    pub fn step(what: impl Into<String>) -> Self {
        Self {
            verb: None,
            args: Vec::new(),
            why: what.into(),
            audience: For::Anyone,
        }
    }

    /// The hint as a sentence, with the command as it is typed.
    pub fn sentence(&self) -> String {
        let Some(verb) = self.verb else {
            return self.why.clone();
        };
        let mut command = format!("tenure {verb}");
        for word in &self.args {
            command.push(' ');
            command.push_str(&text::shell(word));
        }
        format!("run `{command}` {}", self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_from_somebody_or_cannot_be_undone_is_for_a_person() {
        let persons: [(&'static str, &[&str]); 7] = [
            ("conversation", &["drop", "wp:1", "--stop"]),
            ("takeover", &["wp:1", "--reason", "REASON"]),
            ("end", &["--session", "claude-k7qd"]),
            ("claim", &["wp:1", "--reopen"]),
            ("claim", &["--any", "wp:1", "--allow-survivors"]),
            ("runs", &["stop", "r-1", "--abandon", "--reason", "REASON"]),
            ("uninstall", &[]),
        ];
        for (verb, args) in persons {
            assert_eq!(Hint::run(verb, args, "").audience, For::Person, "{verb}");
        }
        let anyones: [(&'static str, &[&str]); 5] = [
            ("conversation", &["get", "claude", "wp:drop"]),
            ("why", &["wp:1"]),
            ("claim", &["wp:1", "--wait", "10m"]),
            ("claim", &["wp:1", "--", "make", "--reopen"]),
            ("tell", &["claude-k7qd", "takeover"]),
        ];
        for (verb, args) in anyones {
            assert_eq!(Hint::run(verb, args, "").audience, For::Anyone, "{verb}");
        }
    }
}
