//! What only the scope `logs` shows: prompts, questions with their answers, and command lines. They may be anywhere in an
//! answer.

use serde_json::{Map, Value, json};
use tenure_core::event::EventKind;

/// What stands where a session asks something.
const ASKS: &str = "an answer";

/// Removes them from an answer.
pub fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(object) => {
            hide_fields(object);
            object.values_mut().for_each(hide);
        }
        _ => {}
    }
}

/// Removes them from a session, a process, an event or a question.
fn hide_fields(object: &mut Map<String, Value>) {
    if object.get("title_by") == Some(&json!("prompt")) {
        object.insert("title".into(), Value::Null);
    }
    object.remove("last_words");
    let is_session = object.contains_key("handle");
    if is_session && object.get("asks").is_some_and(Value::is_string) {
        object.insert("asks".into(), json!(ASKS));
    }
    if object.contains_key("pid") && object.contains_key("command") {
        object.insert("command".into(), json!(""));
    }
    // The log has what was asked, and the words of the answer.
    let is_answer = object.get("kind") == Some(&json!(EventKind::Answered.as_str()));
    if is_answer && object.contains_key("evidence") {
        object.insert("evidence".into(), json!(""));
    }
    let is_question = object.contains_key("shown") && object.contains_key("questions");
    if is_question {
        object.insert("shown".into(), json!([]));
        object.insert("questions".into(), json!([]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_questions_and_command_lines_are_hidden_wherever_they_are() {
        let session = json!({"handle": "ann", "title": "my prompt", "title_by": "prompt", "asks": "permission for rm", "last_words": {"prompt": "p"},
            "survivors": [{"pid": 7, "command": "claude -p secret"}]});
        let mut body = json!({"claims": [{"holder": session}], "session": {"title": "Login", "title_by": "agent"}});
        hide(&mut body);
        let holder = &body["claims"][0]["holder"];
        assert_eq!(holder["title"], Value::Null);
        assert_eq!(holder["asks"], ASKS);
        assert_eq!(holder["last_words"], Value::Null);
        assert_eq!(holder["survivors"][0]["command"], "");
        assert_eq!(body["session"]["title"], "Login");
    }

    #[test]
    fn what_was_asked_and_answered_is_hidden_in_the_log_and_in_a_question() {
        let answered =
            json!({"kind": "session.answered", "evidence": "allow to q-1, Bash: touch a"});
        let granted = json!({"kind": "claim.granted", "evidence": "it was free"});
        let question =
            json!({"id": "q-1", "shown": ["touch a"], "questions": [{"question": "Which?"}]});
        let mut body = json!({"events": [answered, granted], "sent": {"question": question, "by": "token ci"}});
        hide(&mut body);
        assert_eq!(body["events"][0]["evidence"], "");
        assert_eq!(body["events"][1]["evidence"], "it was free");
        let question = json!({"id": "q-1", "shown": [], "questions": []});
        assert_eq!(
            body["sent"],
            json!({"question": question, "by": "token ci"})
        );
    }
}
