//! What to do next: a command with its reason, as data.
//!
//! Each surface shows a hint in its own form. Who may be shown it follows from the command itself: what
//! takes something from somebody, or cannot be undone, is for a person only, because models run what they
//! read.

use serde::Serialize;

/// Who may be shown a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum For {
    Anyone,
    Person,
}

/// Verbs and flags that only a person may be told to use.
const PERSONS_VERBS: &[&str] = &["takeover", "end", "uninstall", "restore", "gc", "drop"];
const PERSONS_FLAGS: &[&str] = &["--reopen", "--allow-survivors"];

/// A command to run and its reason, or a plain step where no verb of ours helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Hint {
    /// The verb to run; none for a step outside tenure.
    pub verb: Option<&'static str>,
    /// Its arguments, each as one word; a word in capitals is to be filled in.
    pub args: Vec<String>,
    /// What running it is for, after the command ("to wait for it"); without a verb, the whole step.
    pub why: String,
    #[serde(rename = "for")]
    pub audience: For,
}

impl Hint {
    /// A command of ours; `why` goes on after it: "to see who holds it", "for details".
    pub fn run<A: AsRef<str>>(
        verb: &'static str,
        args: impl IntoIterator<Item = A>,
        why: impl Into<String>,
    ) -> Self {
        let args: Vec<String> = args.into_iter().map(|arg| arg.as_ref().into()).collect();
        let mut flags = args.iter().take_while(|arg| *arg != "--");
        let is_persons =
            PERSONS_VERBS.contains(&verb) || flags.any(|arg| PERSONS_FLAGS.contains(&arg.as_str()));
        Self {
            verb: Some(verb),
            args,
            why: why.into(),
            audience: if is_persons { For::Person } else { For::Anyone },
        }
    }

    /// A verb without arguments.
    pub fn verb(verb: &'static str, why: impl Into<String>) -> Self {
        Self::run(verb, [""; 0], why)
    }

    /// A step that is no command of ours.
    pub fn step(what: impl Into<String>) -> Self {
        Self {
            verb: None,
            args: Vec::new(),
            why: what.into(),
            audience: For::Anyone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_from_somebody_or_cannot_be_undone_is_for_a_person() {
        let persons: [(&'static str, &[&str]); 5] = [
            ("takeover", &["wp:1", "--reason", "REASON"]),
            ("end", &["--session", "claude-k7qd"]),
            ("claim", &["wp:1", "--reopen"]),
            ("claim", &["--any", "wp:1", "--allow-survivors"]),
            ("uninstall", &[]),
        ];
        for (verb, args) in persons {
            assert_eq!(Hint::run(verb, args, "").audience, For::Person, "{verb}");
        }
        let anyones: [(&'static str, &[&str]); 4] = [
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
