//! What an agent asks a person, whole, and a person's answer in the agent's own terms.
//!
//! An answer from elsewhere is for the one call that was asked about: there is no way here to say a rule, an amendment or
//! a changed input. The input of a tool goes back to its agent only with the answers to its own questions. What cannot be
//! shown whole cannot be answered from elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tenure_core::agent_event::Happening;
use tenure_core::session::Doing;
use tenure_core::text;

use crate::adapter::Adapter;
use crate::event::Note;
use crate::hooks;
use crate::report::Report;

/// Longer ones are answered only in the agent's own window, in bytes.
const MAX_SHOWN: usize = 32 << 10;
/// How long a text that a person answers may be, in characters. The log has all of it.
const MAX_ANSWER: usize = 4_000;
/// A value of an input that is shown after the others, in bytes.
const LONG: usize = 200;
/// What a plugin says of every call; a tool that brings no more is not shown whole.
const PATTERNS: &str = "patterns";
/// What the model reads if a person denies without a word.
const DENIED: &str = "The user denied this from elsewhere.";

/// Something that an agent asks a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub tool: String,
    pub kind: AskedKind,
    /// All of it, a line after the other, safe to show.
    pub shown: Vec<String>,
    /// The questions as they came.
    questions: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedKind {
    /// Whether a tool may run, once.
    Permission,
    /// Questions, each of which takes a text.
    Questions(Vec<AskedQuestion>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedQuestion {
    pub question: String,
    /// What the agent offers as answers; another text is an answer too.
    pub options: Vec<String>,
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonsAnswer {
    Allow,
    /// With a message for the model, or without.
    Deny(Option<String>),
    /// A text for each question.
    Texts(Vec<String>),
}

/// Why an answer does not fit what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error("a permission is answered with allow or deny, not with a text")]
    TextForPermission,
    #[error("a question is answered with a text or deny, not with allow")]
    AllowForQuestion,
    #[error("{asked} questions were asked, and {given} answers given")]
    Count { asked: usize, given: usize },
    #[error("an answer has no visible character")]
    Blank,
    #[error("an answer has at most {MAX_ANSWER} characters")]
    TooLong,
    #[error("what to answer is missing: allow, deny or a text")]
    Missing,
    #[error("a message goes only with deny")]
    MessageWithoutDeny,
}

impl PersonsAnswer {
    /// What somebody typed: `allow`, `deny`, or a text for each question.
    pub fn of_words(words: &[String], message: Option<&str>) -> Result<Self, Misfit> {
        match (words, message) {
            ([], _) => Err(Misfit::Missing),
            ([word], why) if word == "deny" => Ok(Self::Deny(why.map(str::to_owned))),
            (_, Some(_)) => Err(Misfit::MessageWithoutDeny),
            ([word], None) if word == "allow" => Ok(Self::Allow),
            (texts, None) => Ok(Self::Texts(texts.to_vec())),
        }
    }

    /// Refuses an answer that does not fit what was asked.
    pub fn check(&self, kind: &AskedKind) -> Result<(), Misfit> {
        let texts = match self {
            PersonsAnswer::Allow => &[],
            PersonsAnswer::Deny(why) => why.as_slice(),
            PersonsAnswer::Texts(texts) => texts.as_slice(),
        };
        if (texts.iter()).any(|text| text.chars().count() > MAX_ANSWER) {
            return Err(Misfit::TooLong);
        }
        match (self, kind) {
            (PersonsAnswer::Deny(_), _) | (PersonsAnswer::Allow, AskedKind::Permission) => Ok(()),
            (PersonsAnswer::Allow, AskedKind::Questions(_)) => Err(Misfit::AllowForQuestion),
            (PersonsAnswer::Texts(_), AskedKind::Permission) => Err(Misfit::TextForPermission),
            (PersonsAnswer::Texts(texts), AskedKind::Questions(asked)) => {
                let (asked, given) = (asked.len(), texts.len());
                if asked != given {
                    return Err(Misfit::Count { asked, given });
                }
                let is_blank = |text: &String| text.trim().is_empty();
                if texts.iter().any(is_blank) {
                    return Err(Misfit::Blank);
                }
                Ok(())
            }
        }
    }

    /// Its kind: `allow`, `deny` or `answer`.
    pub fn word(&self) -> &'static str {
        match self {
            PersonsAnswer::Allow => "allow",
            PersonsAnswer::Deny(_) => "deny",
            PersonsAnswer::Texts(_) => "answer",
        }
    }
}

impl Adapter {
    /// What an event asks, if a person elsewhere may answer that.
    pub fn asked(&self, report: &Report, event: &[u8]) -> Option<Asked> {
        let mut known = self.events.iter().filter(|known| known.name == report.name);
        let is_answerable = known.any(|known| known.is(Note::Answerable));
        if !is_answerable || report.subagent.is_some() || report.doing != Some(Doing::Waiting) {
            return None;
        }
        let mut fields: Value = serde_json::from_slice(event).ok()?;
        let tool = fields["tool_name"].as_str()?.to_owned();
        let Value::Object(mut input) = fields["tool_input"].take() else {
            return None;
        };
        let (kind, shown, questions) = match hooks::asks_for(&tool) {
            Some(hooks::AN_ANSWER) => {
                let questions = input.remove("questions")?;
                let asked = questions_of(&questions)?;
                let shown = question_lines(&questions);
                (AskedKind::Questions(asked), shown, questions)
            }
            // Its approval decides more than the call itself.
            Some(_) => return None,
            None if !self.has_hooks() && input.keys().eq([PATTERNS]) => return None,
            None => {
                let is_shell = tool == self.tools.shell;
                let shown = permission_lines(&tool, input, is_shell);
                (AskedKind::Permission, shown, Value::Null)
            }
        };
        // An empty line takes room too.
        let length: usize = shown.iter().map(|line| line.len() + 1).sum();
        let tool = text::line(&tool).into_owned();
        (length <= MAX_SHOWN).then_some(Asked {
            tool,
            kind,
            shown,
            questions,
        })
    }

    /// Whether an event shows that its session no longer waits for what it asked before.
    pub fn ends_question(&self, report: &Report) -> bool {
        let is_other = matches!(
            report.what,
            Happening::Other | Happening::SubagentStart | Happening::SubagentStop
        );
        let goes_on = report.doing.is_some_and(|doing| doing != Doing::Waiting);
        report.subagent.is_none() && (!is_other || goes_on)
    }

    /// Whether it calls hooks by itself, and no plugin of ours.
    fn has_hooks(&self) -> bool {
        let own = self.settings.as_ref();
        own.is_some_and(|own| own.hooks().is_some())
    }

    /// What the hook prints for a person's answer, which fits what was asked.
    pub fn decision(&self, event: &str, asked: &Asked, answer: &PersonsAnswer) -> Value {
        let has_hooks = self.has_hooks();
        match answer {
            PersonsAnswer::Texts(texts) if has_hooks => {
                let input =
                    json!({"questions": asked.questions, "answers": asked.by_question(texts)});
                hook_decision(event, &json!({"behavior": "allow", "updatedInput": input}))
            }
            PersonsAnswer::Texts(texts) => {
                let answers: Vec<[&String; 1]> = texts.iter().map(|text| [text]).collect();
                json!({"decision": "answer", "answers": answers})
            }
            PersonsAnswer::Allow if has_hooks => {
                hook_decision(event, &json!({"behavior": "allow"}))
            }
            PersonsAnswer::Allow => json!({"decision": "allow"}),
            PersonsAnswer::Deny(why) => {
                let why = why.as_deref().unwrap_or(DENIED);
                if has_hooks {
                    hook_decision(event, &json!({"behavior": "deny", "message": why}))
                } else {
                    json!({"decision": "deny", "message": why})
                }
            }
        }
    }
}

impl Asked {
    fn by_question(&self, texts: &[String]) -> Map<String, Value> {
        let AskedKind::Questions(asked) = &self.kind else {
            return Map::new();
        };
        let each = asked.iter().zip(texts);
        each.map(|(asked, text)| (asked.question.clone(), json!(text)))
            .collect()
    }
}

fn hook_decision(event: &str, decision: &Value) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "decision": decision}})
}

/// The questions of a tool; none if one cannot be read, because all are answered at once. Two that are spelled the same
/// could not be told apart.
fn questions_of(questions: &Value) -> Option<Vec<AskedQuestion>> {
    let one = |asked: &Value| {
        let label = |option: &Value| Some(option["label"].as_str()?.to_owned());
        let options = asked["options"].as_array().map(Vec::as_slice);
        Some(AskedQuestion {
            question: asked["question"].as_str()?.to_owned(),
            options: options
                .unwrap_or_default()
                .iter()
                .map(label)
                .collect::<Option<_>>()?,
        })
    };
    let all: Vec<AskedQuestion> = questions
        .as_array()?
        .iter()
        .map(one)
        .collect::<Option<_>>()?;
    let mut names: Vec<&str> = all.iter().map(|asked| asked.question.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    (!all.is_empty() && names.len() == all.len()).then_some(all)
}

/// Each question with what it offers, and what the agent says about that.
fn question_lines(questions: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for asked in questions.as_array().into_iter().flatten() {
        lines.extend(whole(asked["question"].as_str().unwrap_or_default()));
        if asked["multiSelect"] == true || asked["multiple"] == true {
            lines.push("  (several of these)".to_owned());
        }
        for option in asked["options"].as_array().into_iter().flatten() {
            let said = |field: &str| text::line(option[field].as_str().unwrap_or_default());
            let about = said("description");
            lines.push(match &*about {
                "" => format!("  - {}", said("label")),
                about => format!("  - {}: {about}", said("label")),
            });
        }
    }
    lines
}

/// The command of a shell and what else is in its call, or the whole input of any other tool.
fn permission_lines(tool: &str, mut input: Map<String, Value>, is_shell: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let command = input.get("command").and_then(Value::as_str);
    if let Some(command) = command.filter(|_| is_shell).map(str::to_owned) {
        lines.extend(whole(&command));
        input.remove("command");
        // The model's own words about it.
        input.remove("description");
    } else {
        lines.push(text::line(tool).into_owned());
    }
    let mut rest: Vec<(String, Value)> = input.into_iter().collect();
    // What is long comes last.
    rest.sort_by_cached_key(|(name, value)| (value.to_string().len() > LONG, name.clone()));
    for (name, value) in rest {
        let said = match value {
            Value::String(value) => value,
            other => other.to_string(),
        };
        let name = text::line(&name).into_owned();
        let mut parts = whole(&said).into_iter();
        let first = parts.next().unwrap_or_default();
        lines.push(format!("  {name}: {first}"));
        lines.extend(parts.map(|part| format!("    {part}")));
    }
    lines
}

/// Each line of a text, without a character that moves the cursor or hides something.
fn whole(said: &str) -> Vec<String> {
    said.split('\n')
        .map(|line| text::line(line).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(agent: &str, tool: &str, input: &Value) -> Option<Asked> {
        let row = crate::adapter(agent).unwrap();
        let event = json!({
            "hook_event_name": "PermissionRequest", "session_id": "c-1", "cwd": "/w",
            "tool_name": tool, "tool_input": input,
            "permission_suggestions": [{"type": "addRules", "behavior": "allow"}],
        });
        let bytes = event.to_string();
        row.asked(&row.read(bytes.as_bytes()), bytes.as_bytes())
    }

    fn said(agent: &str, asked: &Asked, answer: &PersonsAnswer) -> Value {
        let row = crate::adapter(agent).unwrap();
        row.decision("PermissionRequest", asked, answer)
    }

    fn colours() -> Value {
        json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
            "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]}]})
    }

    #[test]
    fn allow_is_for_this_call_and_nothing_else_comes_along() {
        let input = json!({"command": "touch a", "description": "mock"});
        let shell = asked("claude", "Bash", &input).unwrap();
        assert_eq!(shell.shown, ["touch a"]);
        assert_eq!(
            said("claude", &shell, &PersonsAnswer::Allow),
            json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest",
                "decision": {"behavior": "allow"}}})
        );
        let shell = asked("opencode", "bash", &input).unwrap();
        assert_eq!(
            said("opencode", &shell, &PersonsAnswer::Allow),
            json!({"decision": "allow"})
        );
        let denied = said(
            "claude",
            &shell,
            &PersonsAnswer::Deny(Some("not now".into())),
        );
        let decision = &denied["hookSpecificOutput"]["decision"];
        assert_eq!(*decision, json!({"behavior": "deny", "message": "not now"}));
    }

    #[test]
    fn a_question_goes_back_as_it_came_with_the_answers_by_its_text() {
        let question = asked("claude", "AskUserQuestion", &colours()).unwrap();
        assert_eq!(
            question.shown,
            ["Which colour?", "  - Red: r", "  - Blue: b"]
        );
        let answer = PersonsAnswer::Texts(vec!["Blue".into()]);
        let decision = said("claude", &question, &answer);
        let decision = &decision["hookSpecificOutput"]["decision"];
        assert_eq!(
            decision["updatedInput"]["questions"],
            colours()["questions"]
        );
        assert_eq!(
            decision["updatedInput"]["answers"],
            json!({"Which colour?": "Blue"})
        );
        assert_eq!(decision["updatedInput"].as_object().unwrap().len(), 2);
        let question = asked("opencode", "question", &colours()).unwrap();
        let decision = said("opencode", &question, &answer);
        assert_eq!(
            decision,
            json!({"decision": "answer", "answers": [["Blue"]]})
        );
    }

    #[test]
    fn a_text_answers_only_a_question_and_allow_only_a_permission() {
        let permission = asked("claude", "Bash", &json!({"command": "ls"}))
            .unwrap()
            .kind;
        let question = asked("claude", "AskUserQuestion", &colours()).unwrap().kind;
        let texts = |texts: &[&str]| {
            PersonsAnswer::Texts(texts.iter().map(|text| (*text).to_owned()).collect())
        };
        let deny = PersonsAnswer::Deny(None);
        assert_eq!(
            texts(&["ls -a"]).check(&permission),
            Err(Misfit::TextForPermission)
        );
        assert_eq!(PersonsAnswer::Allow.check(&permission), Ok(()));
        assert_eq!(deny.check(&permission), Ok(()));
        assert_eq!(deny.check(&question), Ok(()));
        assert_eq!(
            PersonsAnswer::Allow.check(&question),
            Err(Misfit::AllowForQuestion)
        );
        assert_eq!(texts(&["Blue"]).check(&question), Ok(()));
        assert_eq!(texts(&[" "]).check(&question), Err(Misfit::Blank));
        let long = "x".repeat(MAX_ANSWER + 1);
        assert_eq!(texts(&[&long]).check(&question), Err(Misfit::TooLong));
        let long = PersonsAnswer::Deny(Some(long));
        assert_eq!(long.check(&permission), Err(Misfit::TooLong));
        let two = Misfit::Count { asked: 1, given: 2 };
        assert_eq!(texts(&["a", "b"]).check(&question), Err(two));
    }

    #[test]
    fn what_is_asked_is_shown_whole_and_without_control_characters() {
        let input = json!({"command": "echo a\n\u{1b}[2Krm -rf b\r\u{202e}", "dangerouslyDisableSandbox": true});
        let shell = asked("claude", "Bash", &input).unwrap();
        assert_eq!(
            shell.shown,
            [
                "echo a",
                "\\u{1b}[2Krm -rf b\\r\\u{202e}",
                "  dangerouslyDisableSandbox: true"
            ]
        );
        let write = asked(
            "claude",
            "Write",
            &json!({"file_path": "/w/a", "content": "x\ny"}),
        )
        .unwrap();
        assert_eq!(
            write.shown,
            ["Write", "  content: x", "    y", "  file_path: /w/a"]
        );
        let long = json!({"command": "x".repeat(MAX_SHOWN + 1)});
        assert_eq!(
            asked("claude", "Bash", &long),
            None,
            "it cannot be shown whole"
        );
        let empty = json!({"command": "\n".repeat(MAX_SHOWN + 1)});
        assert_eq!(
            asked("claude", "Bash", &empty),
            None,
            "nor can so many lines"
        );
        let bare = json!({"patterns": ["*"]});
        assert_eq!(
            asked("opencode", "files_delete", &bare),
            None,
            "nor what its plugin does not know"
        );
        let several = json!({"questions": [{"question": "Which?", "multiSelect": true, "options": [{"label": "a"}]}]});
        let several = asked("claude", "AskUserQuestion", &several).unwrap();
        assert_eq!(several.shown, ["Which?", "  (several of these)", "  - a"]);
    }

    #[test]
    fn what_decides_more_than_a_call_or_cannot_be_read_is_not_offered() {
        assert_eq!(asked("claude", "ExitPlanMode", &json!({"plan": "x"})), None);
        assert_eq!(
            asked("claude", "AskUserQuestion", &json!({"questions": []})),
            None
        );
        let twice = json!({"questions": [{"question": "a"}, {"question": "a"}]});
        assert_eq!(asked("claude", "AskUserQuestion", &twice), None);
        assert_eq!(asked("claude", "Bash", &json!("ls")), None);
        assert_eq!(asked("codex", "Bash", &json!({"command": "ls"})), None);
        let row = crate::adapter("claude").unwrap();
        let below =
            br#"{"hook_event_name": "PermissionRequest", "session_id": "c", "agent_id": "a1",
            "tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
        assert_eq!(row.asked(&row.read(below), below), None, "a subagent's");
    }

    #[test]
    fn an_event_ends_a_question_if_its_session_goes_on() {
        let row = crate::adapter("claude").unwrap();
        let ends = |event: &Value| row.ends_question(&row.read(event.to_string().as_bytes()));
        for name in [
            "PostToolUse",
            "Stop",
            "StopFailure",
            "UserPromptSubmit",
            "PreToolUse",
            "SessionEnd",
            "SessionStart",
        ] {
            assert!(
                ends(&json!({"hook_event_name": name, "session_id": "c"})),
                "{name}"
            );
        }
        for name in [
            "SubagentStart",
            "SubagentStop",
            "PermissionRequest",
            "PostCompact",
        ] {
            assert!(
                !ends(&json!({"hook_event_name": name, "session_id": "c"})),
                "{name}"
            );
        }
        let of_subagent =
            json!({"hook_event_name": "PostToolUse", "session_id": "c", "agent_id": "a1"});
        assert!(!ends(&of_subagent));
        let told = |kind: &str| json!({"hook_event_name": "Notification", "session_id": "c", "notification_type": kind});
        assert!(!ends(&told("permission_prompt")) && ends(&told("idle_prompt")));
    }
}
