//! opencode unattended (seen with 1.18.33).
//!
//! It has no event of its start or end, and writes a line when a part is finished: a model that hangs shows nothing,
//! and the first line with the conversation's id comes with the answer. A turn succeeded where its last step ended
//! with `stop` and no error came. An answer that is cut off without a reason makes it ask again at once, without
//! end. A refused tool ends the turn with exit code 0 and no text.

use serde_json::{Map, Value, json};
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::NativeId;
use tenure_core::run::failure::{AgentFailure, ErrorClass};
use tenure_core::run::line::{Final, RunLine, Spent, SpentBy, Tokens};
use tenure_core::time::Timestamp;

use super::field::{named, number, sum, text};
use super::stderr::{self, Signs};
use super::{
    AgentRun, Inherited, Keeps, Launch, RunSpec, StopSignal, Untrusted, Variables, body, no_tail,
    no_totals, no_waits, words,
};

const SIGNS: Signs = &[("Session not found", ErrorClass::UnknownConversation)];

/// What it says of a tool call that needed permission.
const REJECTED: &str = "The user rejected permission to use this specific tool call.";

/// Its settings as JSON, above every file.
const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

pub(crate) const RUN: AgentRun = AgentRun {
    spec: RunSpec {
        chooses_id: false,
        has_title: true,
        stop: StopSignal::Terminate,
        compacts: true,
        resumes_anywhere: false,
        keeps: Keeps::Listed {
            // Without a number it lists the newest hundred.
            command: &[
                "opencode",
                "session",
                "list",
                "--pure",
                "--format",
                "json",
                "--max-count",
                "1000000",
            ],
            // Each start installs what plugins need into the directory of its settings, behind a lock. The list ends
            // in the middle of that and leaves the lock, and the next start waits a minute for it.
            apart: &["XDG_CONFIG_HOME", "XDG_STATE_HOME"],
            without: &["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", CONFIG],
            variable: "XDG_DATA_HOME",
            home: ".local/share",
            found: listed,
            titled,
        },
        untrusted: Untrusted::Switches,
        takes_budget: true,
        tells_in_file: false,
        reserved: &[
            "-c",
            "--continue",
            "-s",
            "--session",
            "--fork",
            "--format",
            "--title",
            "--dir",
            "--share",
            "--attach",
            "--command",
        ],
        reserved_untrusted: &[],
        program_below_script: &[],
        keys: &[
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "OPENAI_API_KEY",
            "OPENCODE_API_KEY",
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_CONTENT",
            "OPENCODE_CONFIG_DIR",
            "OPENROUTER_API_KEY",
        ],
        answered: None,
    },
    commander: command,
    variables,
    reader: read,
    waits: no_waits,
    failed: |_, text| stderr::failure(text, SIGNS),
    tail: no_tail,
    totals: no_totals,
};

fn command(launch: &Launch<'_>) -> Vec<String> {
    let mut line = words(&["opencode", "run", "--format", "json"]);
    match launch.resume {
        // Without the directory it answers the prompt, prints nothing and never ends.
        Some(id) => line.extend(words(&["--dir", launch.dir, "--session", id.as_str()])),
        None => line.extend(words(&["--title", launch.title])),
    }
    line.extend_from_slice(launch.arguments);
    line
}

fn variables(launch: &Launch<'_>, inherited: Inherited<'_>) -> Variables {
    let mut variables = vec![
        (CONFIG, settings(inherited(CONFIG).as_deref())),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ("NO_COLOR", "1".to_owned()),
    ];
    if !launch.trusted {
        variables.push(("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()));
    }
    variables
}

/// The user's own settings with permissions that ask nothing, unless the user decided about permissions.
/// Whatever would be asked ends the turn, so a path outside the directory is denied instead.
fn settings(own: Option<&str>) -> String {
    let own = own.and_then(|own| serde_json::from_str::<Value>(own).ok());
    let mut settings = match own {
        Some(Value::Object(own)) => own,
        _ => Map::new(),
    };
    settings.entry("permission").or_insert_with(|| {
        json!({
            "edit": "allow",
            "bash": "allow",
            "webfetch": "allow",
            "external_directory": "deny",
            "doom_loop": "deny",
        })
    });
    Value::Object(settings).to_string()
}

fn read(line: &Value) -> Vec<RunLine> {
    let id = named(line, "/sessionID");
    let said = match text(line, "/type").unwrap_or_default() {
        "step_start" => vec![RunLine::TurnBegan],
        "text" => text(line, "/part/text")
            .map(|text| RunLine::Text {
                text: text.to_owned(),
                part: false,
            })
            .into_iter()
            .collect(),
        "tool_use" => tool(line),
        "step_finish" => step(line),
        "error" => error(line),
        _ => Vec::new(),
    };
    id.into_iter().chain(said).collect()
}

fn tool(line: &Value) -> Vec<RunLine> {
    let name = text(line, "/part/tool").unwrap_or("tool");
    let subject = ["/part/state/input/command", "/part/state/input/filePath"];
    let what = match subject.iter().find_map(|pointer| text(line, pointer)) {
        Some(subject) => format!("{name}: {subject}"),
        None => name.to_owned(),
    };
    let is_rejected = text(line, "/part/state/status") == Some("error")
        && text(line, "/part/state/error") == Some(REJECTED);
    let denied = is_rejected.then(|| RunLine::Denied {
        what: name.to_owned(),
    });
    [RunLine::Tool { what }].into_iter().chain(denied).collect()
}

fn step(line: &Value) -> Vec<RunLine> {
    let part = |pointers: &[&str]| {
        let tokens = line.pointer("/part/tokens");
        tokens.map_or(0, |tokens| sum(tokens, pointers))
    };
    let tokens = Tokens {
        input: part(&["/input", "/cache/read", "/cache/write"]),
        output: part(&["/output", "/reasoning"]),
    };
    let reason = text(line, "/part/reason").unwrap_or("unknown");
    let mut lines = vec![
        RunLine::Spent(Spent {
            of: SpentBy::Step,
            tokens: Some(tokens),
            cost_usd: line.pointer("/part/cost").and_then(Value::as_f64),
        }),
        RunLine::StepEnded {
            finished: reason != "unknown",
            used_tokens: tokens != Tokens::default(),
        },
    ];
    if reason == "stop" {
        lines.push(RunLine::Final(Final::success(None)));
    }
    lines
}

fn error(line: &Value) -> Vec<RunLine> {
    let name = text(line, "/error/name").unwrap_or_default();
    let message = text(line, "/error/data/message").unwrap_or(name);
    let class = class_of(name, line, message);
    let mut lines = vec![RunLine::Failure(AgentFailure::new(class, message))];
    if class == ErrorClass::Limit {
        let resets_at = retry_after(line);
        lines.push(RunLine::Limit { resets_at });
    }
    lines
}

fn class_of(name: &str, line: &Value, message: &str) -> ErrorClass {
    match name {
        "ContextOverflowError" => return ErrorClass::Overflow,
        "ProviderAuthError" => return ErrorClass::Authentication,
        "MessageAbortedError" => return ErrorClass::Aborted,
        _ => {}
    }
    let status = number(line, "/error/data/statusCode");
    let by_status = status.map_or(ErrorClass::Other, ErrorClass::of_status);
    if by_status != ErrorClass::Other {
        return by_status;
    }
    let body = text(line, "/error/data/responseBody").and_then(body::class);
    if let Some(class) = body {
        return class;
    }
    let code = serde_json::from_str::<Value>(message).ok();
    let code = code.and_then(|inner| number(&inner, "/code"));
    match code {
        Some(code) => ErrorClass::of_status(code),
        None if message.starts_with("Cannot connect to API") => ErrorClass::Network,
        None => ErrorClass::Other,
    }
}

/// The provider's header counts in seconds from the answer.
fn retry_after(line: &Value) -> Option<Timestamp> {
    let seconds: i64 = text(line, "/error/data/responseHeaders/retry-after")?
        .parse()
        .ok()?;
    let at = line.get("timestamp")?.as_i64()?;
    Some(Timestamp(at.checked_add(seconds.checked_mul(1000)?)?))
}

/// Whether a conversation is in what `session list` printed in its directory, with success. An empty list prints
/// nothing.
fn listed(printed: &str, id: &NativeId) -> Existence {
    if printed.trim().is_empty() {
        return Existence::Absent;
    }
    let Ok(Value::Array(sessions)) = serde_json::from_str::<Value>(printed) else {
        return Existence::CannotTell;
    };
    let ids: Option<Vec<&str>> = sessions
        .iter()
        .map(|session| text(session, "/id"))
        .collect();
    match ids {
        Some(ids) if ids.contains(&id.as_str()) => Existence::Present,
        Some(_) => Existence::Absent,
        None => Existence::CannotTell,
    }
}

/// The conversation with this title, in what `session list` printed.
fn titled(printed: &str, title: &str) -> Option<NativeId> {
    let sessions: Value = serde_json::from_str(printed).ok()?;
    let is_it = |session: &&Value| text(session, "/title") == Some(title);
    let found: Vec<&Value> = sessions.as_array()?.iter().filter(is_it).collect();
    let [one] = found.as_slice() else {
        return None;
    };
    NativeId::parse(text(one, "/id")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_tells_only_what_is_in_it() {
        let id = NativeId::parse("ses_1").unwrap();
        let list = r#"[{"id":"ses_1","title":"tenure-r-1"},{"id":"ses_2","title":"x"}]"#;
        assert_eq!(listed(list, &id), Existence::Present);
        for none in ["[]", "", "\n"] {
            assert_eq!(listed(none, &id), Existence::Absent, "{none:?}");
        }
        for odd in ["Error: locked", "{}", "[1]"] {
            assert_eq!(listed(odd, &id), Existence::CannotTell, "{odd}");
        }
        assert_eq!(titled(list, "tenure-r-1"), Some(id));
        assert_eq!(titled(list, "other"), None);
        let twice = list.replace("\"x\"", "\"tenure-r-1\"");
        assert_eq!(titled(&twice, "tenure-r-1"), None);
    }

    #[test]
    fn settings_of_the_user_stay() {
        let own = settings(Some(r#"{"model":"a/b","permission":{"bash":"deny"}}"#));
        assert_eq!(own, r#"{"model":"a/b","permission":{"bash":"deny"}}"#);
        let added: Value = serde_json::from_str(&settings(Some(r#"{"model":"a/b"}"#))).unwrap();
        assert_eq!(added["model"], "a/b");
        assert_eq!(added["permission"]["external_directory"], "deny");
        assert_eq!(settings(Some("nonsense")), settings(None));
    }
}
