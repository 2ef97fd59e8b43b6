//! What only the scope `logs` shows: prompts, questions and command lines. They may be anywhere in an answer.

use serde_json::{Value, json};

/// What stands where a session asks something.
const ASKS: &str = "an answer";

/// Removes them from an answer.
pub fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(object) => {
            if object.get("title_by") == Some(&json!("prompt")) {
                object.insert("title".into(), Value::Null);
            }
            let is_session = object.contains_key("handle");
            if let Some(asks) = object
                .get_mut("asks")
                .filter(|asks| is_session && asks.is_string())
            {
                *asks = json!(ASKS);
            }
            object.remove("last_words");
            let is_process = object.contains_key("pid");
            if let Some(command) = object.get_mut("command").filter(|_| is_process) {
                *command = json!("");
            }
            object.values_mut().for_each(hide);
        }
        _ => {}
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
}
