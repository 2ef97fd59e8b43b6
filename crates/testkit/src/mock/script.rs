//! What the prompt asks the model to do, and how much of it is done: a pure function of the
//! conversation.
//!
//! Agents add text of their own around and after the prompt, in tags. It is removed first, so that
//! a hook that repeats a prompt to the model does not add steps.

use std::time::Duration;

use serde_json::Value;

use super::failure::Failing;

/// Tags that an agent adds to the user's text.
const TAGS: &[&str] = &[
    "system-reminder",
    "environment_context",
    "user_instructions",
    "session_context",
    "hook_context",
];

/// What is around such text where it is not a tag.
const MARKS: &[(&str, &str)] = &[(
    "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>",
    "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>",
)];

/// One entry of a conversation that did not come from the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Text in the user's name.
    Said(String),
    Answered(String),
}

/// What to wait for before acting.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(super) enum Delay {
    Sleep(Duration),
    Hold(String),
    /// Without keep-alives.
    Hang(String),
}

#[derive(Debug, PartialEq, Clone)]
pub(super) enum MockAct {
    Say(String),
    Shell(String),
    Tool { name: String, input: Value },
    Refuse(u16),
    Fail(Failing),
}

/// What the model does, and after which delays.
#[derive(Debug, PartialEq, Clone)]
pub(super) struct MockAnswer {
    pub(super) delays: Vec<Delay>,
    pub(super) act: MockAct,
}

enum ScriptStep {
    Wait(Delay),
    Do(MockAct),
}

/// The answer to a conversation.
pub(super) fn answer(messages: &[Message]) -> MockAnswer {
    let prompts = messages.iter().enumerate().rev();
    let prompt = prompts.into_iter().find_map(|(at, one)| match one {
        Message::Said(text) => {
            let text = without_tags(text);
            (!text.trim().is_empty()).then_some((at, text))
        }
        Message::Answered(_) => None,
    });
    let (at, prompt) = prompt.unwrap_or_default();
    let answers: Vec<&str> = messages[at..]
        .iter()
        .filter_map(|one| match one {
            Message::Answered(text) => Some(text.as_str()),
            Message::Said(_) => None,
        })
        .collect();
    let lines = prompt.lines().flat_map(|line| line.split(" ;; "));
    let mut steps = lines.filter_map(step);
    // Each tool result belongs to an earlier act.
    let mut acts_done = 0;
    while acts_done < answers.len() {
        match steps.next() {
            Some(ScriptStep::Do(_)) => acts_done += 1,
            Some(ScriptStep::Wait(_)) => {}
            None => break,
        }
    }
    let mut delays = Vec::new();
    for step in steps {
        match step {
            ScriptStep::Wait(delay) => delays.push(delay),
            ScriptStep::Do(act) => return MockAnswer { delays, act },
        }
    }
    let text = match answers.last() {
        Some(last) => format!(
            "MOCK-TOOL-DONE {}",
            last.chars().take(400).collect::<String>()
        ),
        None if !delays.is_empty() => "MOCK-SLEPT".to_owned(),
        None => "MOCK-OK".to_owned(),
    };
    MockAnswer {
        delays,
        act: MockAct::Say(text),
    }
}

/// The step in a line, if there is one. A malformed directive is answered with an error, so that
/// the test shows it.
fn step(line: &str) -> Option<ScriptStep> {
    let (word, rest) = line.trim().strip_prefix("MOCK:")?.split_once(' ')?;
    let wrong = || ScriptStep::Do(MockAct::Say(format!("MOCK-WRONG {line}")));
    Some(match word {
        "bash" => ScriptStep::Do(MockAct::Shell(rest.to_owned())),
        "tool" => rest
            .split_once(' ')
            .and_then(|(name, json)| {
                let input = serde_json::from_str(json).ok()?;
                let name = name.to_owned();
                Some(ScriptStep::Do(MockAct::Tool { name, input }))
            })
            .unwrap_or_else(wrong),
        "sleep" => rest
            .parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map_or_else(wrong, |time| ScriptStep::Wait(Delay::Sleep(time))),
        "say" => ScriptStep::Do(MockAct::Say(format!("MOCK-SAID {rest}"))),
        "hold" => ScriptStep::Wait(Delay::Hold(rest.to_owned())),
        "hang" => ScriptStep::Wait(Delay::Hang(rest.to_owned())),
        "fail" => Failing::named(rest).map_or_else(wrong, |how| ScriptStep::Do(MockAct::Fail(how))),
        "error" => rest
            .parse()
            .map_or_else(|_| wrong(), |code| ScriptStep::Do(MockAct::Refuse(code))),
        _ => wrong(),
    })
}

fn without_tags(text: &str) -> String {
    let mut text = text.to_owned();
    let tags = TAGS
        .iter()
        .map(|tag| (format!("<{tag}>"), format!("</{tag}>")));
    let marks = MARKS
        .iter()
        .map(|(open, close)| ((*open).to_owned(), (*close).to_owned()));
    for (open, close) in tags.chain(marks) {
        while let Some(from) = text.find(&open) {
            let to = text[from..].find(&close);
            let to = to.map_or(text.len(), |length| from + length + close.len());
            text.replace_range(from..to, "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Delay, Failing, Message, MockAct, answer};
    use serde_json::json;
    use std::time::Duration;

    fn said(text: &str) -> Message {
        Message::Said(text.to_owned())
    }

    fn answered(text: &str) -> Message {
        Message::Answered(text.to_owned())
    }

    fn says(messages: &[Message]) -> String {
        match answer(messages).act {
            MockAct::Say(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_prompt_without_steps_is_answered_with_text() {
        assert_eq!(says(&[]), "MOCK-OK");
        assert_eq!(says(&[said("hello")]), "MOCK-OK");
        assert_eq!(says(&[said("MOCK:bash a"), said("hello")]), "MOCK-OK");
    }

    #[test]
    fn steps_are_done_one_after_the_other() {
        let prompt = "MOCK:bash one\nMOCK:hold here\nMOCK:tool Read {\"a\":1}\nand so on";
        let mut messages = vec![said("MOCK:bash earlier"), answered("x"), said(prompt)];
        assert_eq!(answer(&messages).act, MockAct::Shell("one".to_owned()));
        messages.push(answered("first"));
        let second = answer(&messages);
        assert_eq!(second.delays, [Delay::Hold("here".to_owned())]);
        let (name, input) = ("Read".to_owned(), json!({"a": 1}));
        assert_eq!(second.act, MockAct::Tool { name, input });
        messages.push(answered("second"));
        assert_eq!(says(&messages), "MOCK-TOOL-DONE second");
    }

    #[test]
    fn steps_can_stand_on_one_line() {
        let line = "p1. ;; MOCK:bash one; two ;; MOCK:hold here";
        let mut messages = vec![said(line)];
        assert_eq!(answer(&messages).act, MockAct::Shell("one; two".to_owned()));
        messages.push(answered("x"));
        assert_eq!(answer(&messages).delays, [Delay::Hold("here".to_owned())]);
    }

    #[test]
    fn what_the_agent_adds_is_no_prompt() {
        let around = "<system-reminder>MOCK:bash no</system-reminder>\nMOCK:bash yes";
        let after = said("<system-reminder>MOCK:error 500</system-reminder>");
        let messages = [said(around), after];
        assert_eq!(answer(&messages).act, MockAct::Shell("yes".to_owned()));
    }

    #[test]
    fn sleeps_errors_and_failures_are_acted_and_wrong_words_are_said_to_be_wrong() {
        let slept = answer(&[said("MOCK:sleep 1.5")]);
        assert_eq!(slept.delays, [Delay::Sleep(Duration::from_millis(1500))]);
        assert_eq!(slept.act, MockAct::Say("MOCK-SLEPT".to_owned()));
        assert_eq!(answer(&[said("MOCK:error 429")]).act, MockAct::Refuse(429));
        let failed = answer(&[said("MOCK:fail limit-until")]).act;
        assert_eq!(failed, MockAct::Fail(Failing::LimitUntil));
        assert_eq!(says(&[said("MOCK:say this")]), "MOCK-SAID this");
        for wrong in [
            "MOCK:error many",
            "MOCK:sleep -1",
            "MOCK:tool X {",
            "MOCK:fail well",
            "MOCK:dance now",
        ] {
            assert_eq!(says(&[said(wrong)]), format!("MOCK-WRONG {wrong}"));
        }
    }
}
