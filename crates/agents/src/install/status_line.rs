//! The status line of an agent, as in Claude Code's settings:
//!
//! ```json
//! {"statusLine": {"type": "command", "command": "…"}}
//! ```
//!
//! There is one such line. A command of the user's own is never replaced; ours is recognised by what it runs,
//! like a hook. It is added after everything else, so it is removed before the hooks that came earlier.

use std::ops::Range;

use serde_json::json;

use super::command::{quoted, words};
use super::hooks_file::{
    HooksFileError, HooksFormat, added, list_of_object, object, property, range, whole_file,
};
use super::splice::{Comments, spliced};

const NAME: &str = "statusLine";
const VERB: &str = "statusline";

/// Who owns the status line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusLine {
    Absent,
    Ours,
    Another,
}

impl StatusLine {
    pub fn word(self) -> &'static str {
        match self {
            StatusLine::Absent => "not_installed",
            StatusLine::Ours => "installed",
            StatusLine::Another => "other",
        }
    }
}

/// A status line in a text.
enum StatusLineState {
    Absent,
    Ours {
        /// Which property of the root it is.
        at: usize,
        command: String,
        /// Where the command is written.
        place: Range<usize>,
    },
    Another,
}

impl HooksFormat {
    /// Who owns the status line of the file; none if the agent has no status line.
    pub fn status_line(&self, text: &str) -> Result<Option<StatusLine>, HooksFileError> {
        if !self.status_line {
            return Ok(None);
        }
        Ok(Some(match self.found(&self.split_mark(text).1)? {
            StatusLineState::Absent => StatusLine::Absent,
            StatusLineState::Ours { .. } => StatusLine::Ours,
            StatusLineState::Another => StatusLine::Another,
        }))
    }

    /// The text with our status line, for this tenure. Another command stays, and a second call changes
    /// nothing.
    pub fn install_status_line(&self, text: &str, program: &str) -> Result<String, HooksFileError> {
        let (mark, body) = self.split_mark(text);
        let wanted = command(program, self.agent);
        let body = match self.found(&body)? {
            StatusLineState::Absent => self.with_line(&body, &wanted)?,
            StatusLineState::Ours { command, place, .. } if command != wanted => {
                spliced(&body, &[(place, json!(wanted).to_string())])
            }
            StatusLineState::Ours { .. } | StatusLineState::Another => body,
        };
        Ok(format!("{mark}{body}"))
    }

    /// The text without our status line; empty if nothing else was in it.
    pub(super) fn without_status_line(&self, text: &str) -> Result<String, HooksFileError> {
        if !self.status_line {
            return Ok(text.to_owned());
        }
        let (StatusLineState::Ours { at, .. }, Some(value)) =
            (self.found(text)?, self.parse(text)?)
        else {
            return Ok(text.to_owned());
        };
        let root = object(text, &value, "the file")?;
        let list = list_of_object(root);
        Ok(if list.is_made_for(text, at, Comments::Slashes) {
            spliced(text, &[(range(root), String::new())])
        } else {
            list.remove(text, at, Comments::Slashes)
        })
    }

    fn found(&self, text: &str) -> Result<StatusLineState, HooksFileError> {
        let Some(value) = self.parse(text)? else {
            return Ok(StatusLineState::Absent);
        };
        let root = object(text, &value, "the file")?;
        let Some((at, line)) = property(root, NAME) else {
            return Ok(StatusLineState::Absent);
        };
        let literal = line.value.as_object().and_then(|line| {
            let (_, command) = property(line, "command")?;
            command.value.as_string_lit()
        });
        Ok(match literal {
            Some(literal) if is_ours(&literal.value, self.agent) => StatusLineState::Ours {
                at,
                command: literal.value.to_string(),
                place: range(literal),
            },
            _ => StatusLineState::Another,
        })
    }

    fn with_line(&self, text: &str, command: &str) -> Result<String, HooksFileError> {
        let line = json!({"type": "command", "command": command});
        let Some(value) = self.parse(text)? else {
            return Ok(whole_file(text, &json!({NAME: line})));
        };
        let root = object(text, &value, "the file")?;
        let list = list_of_object(root);
        Ok(added(text, root, &list, Some(NAME), &line))
    }
}

/// The shell's command line; without tenure it prints nothing.
fn command(program: &str, agent: &str) -> String {
    let program = quoted(program);
    format!("test -x {program} || exit 0; exec {program} {VERB} {agent}")
}

/// Whether a command ends with the words `tenure statusline AGENT`, or is what [`command`] produces.
fn is_ours(line: &str, agent: &str) -> bool {
    let Some(words) = words(line) else {
        return false;
    };
    let [before @ .., program, verb, name] = words.as_slice() else {
        return false;
    };
    let is_tenure = program.rsplit('/').next() == Some("tenure");
    let guard = ["test", "-x", program, "||", "exit", "0", ";", "exec"];
    // In a pipe it would be part of the user's own command.
    let is_alone = before.is_empty() || before == guard;
    verb == VERB && name == agent && is_alone && (is_tenure || before == guard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ADAPTERS;
    use crate::install::{Edited, HookLine, Settings};

    fn claude() -> &'static HooksFormat {
        let row = ADAPTERS.iter().find(|row| row.name == "claude").unwrap();
        row.settings.as_ref().and_then(Settings::hooks).unwrap()
    }

    fn hooks() -> HookLine {
        HookLine {
            program: "/opt/tenure".into(),
            mode: tenure_core::write_conflict::GuardMode::Warn,
            answers: false,
        }
    }

    #[test]
    fn a_file_is_as_it_was_after_hooks_and_status_line_came_and_went() {
        for text in [
            "{}",
            "{ }",
            "{\n}\n",
            "{\"a\":1}",
            "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": []\n    }\n}\n",
            "{\r\n\t\"a\": 1\r\n}\r\n",
            "\u{feff}{\"a\": 1}",
            "{\"hooks\":{},\"z\":[1,2]}",
        ] {
            let with = claude().install(text, &hooks()).unwrap();
            let both = claude().install_status_line(&with, "/opt/tenure").unwrap();
            assert_eq!(
                claude().install_status_line(&both, "/opt/tenure").unwrap(),
                both,
                "a second time"
            );
            let value: serde_json::Value =
                serde_json::from_str(both.trim_start_matches('\u{feff}')).unwrap();
            assert_eq!(value["statusLine"]["type"], "command");
            assert_eq!(
                value["statusLine"]["command"],
                "test -x /opt/tenure || exit 0; exec /opt/tenure statusline claude"
            );
            assert_eq!(claude().status_line(&both).unwrap(), Some(StatusLine::Ours));
            assert_eq!(
                claude().uninstall(&both).unwrap(),
                Edited::Text(text.to_owned()),
                "through\n{both}"
            );
        }
        let both = claude().install("", &hooks()).unwrap();
        let both = claude().install_status_line(&both, "/opt/tenure").unwrap();
        assert_eq!(claude().uninstall(&both).unwrap(), Edited::Nothing);
    }

    #[test]
    fn another_tenure_is_replaced_and_another_program_never() {
        let old = "{\"statusLine\": {\"type\": \"command\", \"padding\": 0, \"command\": \"tenure statusline claude\"}}";
        let new = claude().install_status_line(old, "/new/tenure").unwrap();
        assert!(new.contains("exec /new/tenure statusline claude"), "{new}");
        assert!(new.contains("\"padding\": 0"), "{new}");
        for theirs in [
            "{\"statusLine\": {\"type\": \"command\", \"command\": \"my-line\"}}",
            "{\"statusLine\": {\"type\": \"command\", \"command\": \"tee /tmp/x | tenure statusline claude\"}}",
            "{\"statusLine\": {\"type\": \"command\", \"command\": \"tenure statusline claude | cut -c1-40\"}}",
            "{\"statusLine\": {\"type\": \"command\"}}",
            "{\"statusLine\": null}",
        ] {
            assert_eq!(
                claude().status_line(theirs).unwrap(),
                Some(StatusLine::Another),
                "{theirs}"
            );
            assert_eq!(
                claude().install_status_line(theirs, "/opt/tenure").unwrap(),
                theirs
            );
            assert_eq!(
                claude().uninstall(theirs).unwrap(),
                Edited::Text(theirs.to_owned())
            );
        }
    }

    #[test]
    fn an_agent_without_a_status_line_has_none_whatever_its_file_says() {
        for row in ADAPTERS.iter() {
            let Some(format) = row.settings.as_ref().and_then(Settings::hooks) else {
                continue;
            };
            let found = format.status_line("{}").unwrap();
            assert_eq!(found.is_some(), row.has_status_line, "{}", row.name);
        }
    }
}
