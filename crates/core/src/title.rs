//! The title of a session's work: from a person, from the agent, or from its first prompt.
//!
//! A title is one line of at most [`MAX_LENGTH`] characters without any control or formatting characters. A
//! person's title stays until a person changes it. The agent's own replaces the first prompt, never the other
//! way round. When a session enters another conversation, only a person's title stays, because the others named
//! the previous conversation.

use crate::session::{Title, TitleBy};
use crate::text::clipped;
use crate::visible::is_shown;

/// The longest title that is made from a text, in characters.
pub const MAX_LENGTH: usize = 80;

/// A text as a title that the agent or a person chose; none if it has no visible characters.
pub fn titled(text: &str, by: TitleBy) -> Option<Title> {
    Some(Title {
        text: on_one_line(text)?,
        by,
    })
}

/// A title from a prompt. A command of the agent itself, such as `/clear`, names no work.
pub fn of_prompt(prompt: &str) -> Option<Title> {
    if is_command(prompt) {
        None
    } else {
        titled(prompt, TitleBy::Prompt)
    }
}

/// Whether a title replaces the current one.
pub fn replaces(new: &Title, present: Option<&Title>) -> bool {
    let Some(present) = present else {
        return true;
    };
    match (new.by, present.by) {
        (TitleBy::Prompt, _) | (TitleBy::Agent, TitleBy::Person) => false,
        (TitleBy::Agent | TitleBy::Person, _) => new != present,
    }
}

/// What is left of a title when the session enters another conversation.
pub fn after_rotation(title: Option<Title>) -> Option<Title> {
    title.filter(|title| title.by == TitleBy::Person)
}

/// The title for people: `own` is what the agent's own files call the work now.
pub fn shown<'a>(kept: Option<&'a Title>, own: Option<&'a Title>) -> Option<&'a Title> {
    match (kept, own) {
        (Some(kept), Some(own)) if !replaces(own, Some(kept)) => Some(kept),
        (kept, own) => own.or(kept),
    }
}

/// `/clear` and `/model opus` are commands; `/home/me/x.rs fails` is about a file.
fn is_command(prompt: &str) -> bool {
    let first = prompt.split_whitespace().next().unwrap_or_default();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    first
        .strip_prefix('/')
        .is_some_and(|name| !name.is_empty() && name.chars().all(is_of_name))
}

fn on_one_line(text: &str) -> Option<String> {
    let mut line = String::new();
    // A prompt may be a whole file; the rest is not worth reading.
    for c in text.chars().take(MAX_LENGTH * 20) {
        let is_space = c.is_whitespace() || c.is_control();
        if is_space && !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        } else if !is_space && is_shown(c) {
            line.push(c);
        }
    }
    let line = clipped(line.trim_end(), MAX_LENGTH);
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(by: TitleBy, text: &str) -> Title {
        Title {
            text: text.into(),
            by,
        }
    }

    #[test]
    fn a_prompt_becomes_one_short_line() {
        let title = |prompt: &str| of_prompt(prompt).map(|title| title.text);
        assert_eq!(
            title("  Fix the login\n\n\tof the admin page\r\n").as_deref(),
            Some("Fix the login of the admin page")
        );
        let long = title(&"wide ".repeat(100_000)).unwrap();
        assert_eq!(long.chars().count(), MAX_LENGTH);
        assert!(long.ends_with('…'), "{long}");
        assert_eq!(title(" \n\t "), None);
        assert_eq!(title("\u{1b}\u{202e}\u{200b}"), None);
    }

    #[test]
    fn f_v18_nothing_in_a_title_steers_a_terminal() {
        let hostile = "a\u{1b}[2J\u{7}b\u{202e}c\u{2066}\u{200b}\n\u{9b}d\u{2028}e";
        let title = of_prompt(hostile).unwrap().text;
        assert_eq!(title, "a [2J bc d e");
        assert_eq!(crate::text::line(&title), title);
    }

    #[test]
    fn a_command_of_the_agent_is_no_title() {
        for command in ["/clear", " /model opus", "/plugin:do-it now", "/compact\n"] {
            assert_eq!(of_prompt(command), None, "{command:?}");
        }
        for work in ["/home/me/x.rs does not compile", "/ is full", "why /clear?"] {
            assert!(of_prompt(work).is_some(), "{work:?}");
        }
    }

    #[test]
    fn a_person_names_over_the_agent_and_the_agent_over_the_prompt() {
        use TitleBy::{Agent, Person, Prompt};
        let takes = |new, present| replaces(&by(new, "new"), Some(&by(present, "old")));
        let table = [
            (Prompt, [false, false, false]),
            (Agent, [true, true, false]),
            (Person, [true, true, true]),
        ];
        for (new, expected) in table {
            let found = [Prompt, Agent, Person].map(|present| takes(new, present));
            assert_eq!(found, expected, "{new:?}");
            assert!(replaces(&by(new, "new"), None));
        }
        let same = by(Agent, "x");
        assert!(!replaces(&same, Some(&same)), "nothing would be written");
    }

    #[test]
    fn the_agents_own_files_name_it_unless_a_person_did() {
        use TitleBy::{Agent, Person, Prompt};
        let own = by(Agent, "own");
        for (kept, expected) in [(Prompt, "own"), (Agent, "own"), (Person, "kept")] {
            let kept = by(kept, "kept");
            assert_eq!(shown(Some(&kept), Some(&own)).unwrap().text, expected);
            assert_eq!(shown(Some(&kept), None), Some(&kept));
        }
        assert_eq!(shown(None, Some(&own)), Some(&own));
        assert_eq!(shown(None, None), None);
    }

    #[test]
    fn another_conversation_is_other_work() {
        let stays = |source| after_rotation(Some(by(source, "x"))).is_some();
        assert!(stays(TitleBy::Person));
        assert!(!stays(TitleBy::Agent) && !stays(TitleBy::Prompt));
    }
}
