//! The shapes of what the command line adds to the service's answers: the envelope, and parts of its own.

use serde_json::{Map, Value, json};

/// A shape that is described elsewhere in the schema.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

pub fn list(of: &Value) -> Value {
    json!({"type": "array", "items": of})
}

pub fn listed(name: &str) -> Value {
    list(&reference(name))
}

pub fn text() -> Value {
    json!({"type": "string"})
}

pub fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub fn yes_or_no() -> Value {
    json!({"type": "boolean"})
}

pub fn text_or_null() -> Value {
    json!({"type": ["string", "null"]})
}

pub fn texts() -> Value {
    list(&text())
}

pub fn or_null(name: &str) -> Value {
    json!({"anyOf": [reference(name), {"type": "null"}]})
}

/// An object of these parts; those whose names end in `?` may be missing.
pub fn object(about: &str, parts: &[(&str, Value)]) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, shape) in parts {
        let plain = name.strip_suffix('?');
        properties.insert(plain.unwrap_or(name).to_owned(), shape.clone());
        if plain.is_none() {
            required.push(*name);
        }
    }
    json!({"description": about, "type": "object", "properties": properties, "required": required})
}

/// All of them, by name.
pub fn shapes() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("answer", answer()),
        ("failure", failure()),
        ("error", error()),
        ("streamed", streamed()),
    ];
    all.extend(of_setup());
    all.extend(of_work());
    all
}

fn version() -> Value {
    json!({"const": 1})
}

/// What every answer has, and every part that one may have.
fn answer() -> Value {
    let mut parts = vec![
        ("v", version()),
        ("notices", listed("notice")),
        ("more_notices?", number()),
        ("error?", reference("error")),
    ];
    parts.extend(of_sessions());
    parts.extend(of_claims());
    parts.extend(of_missions());
    parts.extend(of_conversations());
    parts.extend(of_machine());
    let about = "A success: the version of the schema, the parts of this command's answer, and notices. If rows \
                 of the store are damaged, or a long list could not be read to its end, it also has an error, and \
                 the list has what could be read.";
    object(about, &parts)
}

fn of_sessions() -> Vec<(&'static str, Value)> {
    vec![
        ("session?", reference("session")),
        ("sessions?", listed("session")),
        ("unmanaged?", listed("unmanaged")),
        ("more?", number()),
        // Whether there are more than `more`.
        ("more_is_least?", yes_or_no()),
        ("questions?", listed("question")),
        ("sent?", or_null("sent_answer")),
        ("status?", reference("status")),
        ("worktrees?", listed("worktree")),
        ("alive?", yes_or_no()),
        (
            "saw?",
            object(
                "What ended a wait.",
                &[
                    ("state", text()),
                    ("since", text_or_null()),
                    ("asks", text_or_null()),
                    ("why", text_or_null()),
                ],
            ),
        ),
        (
            "killed?",
            object(
                "The process that was killed.",
                &[("pid", number()), ("signal", text())],
            ),
        ),
        (
            "ended?",
            json!({"type": "array", "items": object(
                "A process that a session had left running.",
                &[
                    ("pid", number()),
                    ("command", text()),
                    ("since", text_or_null()),
                    ("signal", text_or_null()),
                ],
            )}),
        ),
        ("resolved?", reference("resolved")),
        ("resume?", listed("resume")),
        ("token?", text_or_null()),
        ("regranted?", listed("held")),
        ("taken?", texts()),
        (
            "meta?",
            json!({"type": "object", "additionalProperties": text()}),
        ),
        ("verified?", reference("verified")),
        ("openclaw?", reference("openclaw")),
        ("statusline?", text()),
        ("events?", listed("event")),
        ("cursor?", number()),
        ("oldest?", number()),
        ("transcript?", reference("transcript")),
        ("count?", number()),
        ("delivery?", json!({"enum": ["delivered", "waiting"]})),
    ]
}

fn of_claims() -> Vec<(&'static str, Value)> {
    vec![
        ("claim?", reference("claim")),
        ("claims?", listed("claim")),
        ("holds?", listed("hold")),
        ("usage?", reference("spend")),
        ("now?", text()),
        ("since?", text_or_null()),
        ("next?", text_or_null()),
        (
            "written?",
            object(
                "The files that were written.",
                &[
                    ("html", text_or_null()),
                    ("trace", text_or_null()),
                    ("claims", number()),
                ],
            ),
        ),
        ("lost?", texts()),
        ("why?", reference("why")),
        ("command?", reference("command")),
        ("lock?", reference("lock")),
        ("locks?", listed("lock_state")),
    ]
}

fn of_missions() -> Vec<(&'static str, Value)> {
    vec![
        ("participant?", or_null("participant")),
        ("token_file?", text()),
        ("participants?", listed("participant")),
        ("joined?", json!({"enum": ["new", "same"]})),
        ("left?", reference("left")),
        ("use?", reference("use")),
        ("pointer?", or_null("pointer")),
        ("mission?", reference("mission")),
        ("missions?", listed("mission")),
        ("check?", reference("check")),
        ("faults?", listed("fault")),
        ("warnings?", texts()),
    ]
}

fn of_conversations() -> Vec<(&'static str, Value)> {
    vec![
        ("conversation?", or_null("conversation")),
        ("conversations?", listed("conversation")),
        ("history?", listed("past_id")),
        ("link?", reference("link")),
        ("run?", reference("run")),
        ("runs?", listed("run")),
        ("survivors?", listed("survivor")),
        ("job?", reference("job")),
        ("jobs?", listed("job")),
        (
            "published?",
            list(&object(
                "A result that was published",
                &[("job", text()), ("branch", text())],
            )),
        ),
        ("patch?", text_or_null()),
        ("already_queued?", yes_or_no()),
        ("dispatcher?", yes_or_no()),
        ("explanation?", reference("explanation")),
        ("deliveries?", listed("delivery")),
    ]
}

fn of_machine() -> Vec<(&'static str, Value)> {
    let failed = object(
        "An edit that could not be undone.",
        &[("message", text()), ("file", text_or_null())],
    );
    let verb = object(
        "A command.",
        &[("job", text()), ("verb", text()), ("about", text())],
    );
    vec![
        ("agents?", listed("agent")),
        ("dry_run?", yes_or_no()),
        ("unlocked?", texts()),
        ("failed?", list(&failed)),
        ("config?", listed("setting")),
        ("mirrors?", listed("mirror")),
        ("repos?", listed("repo")),
        ("channels?", listed("channel")),
        ("notified?", reference("notified")),
        ("import?", reference("import")),
        ("store?", reference("store")),
        ("views?", reference("views")),
        ("backup?", reference("backup")),
        ("exported?", reference("backup")),
        ("gc?", reference("gc")),
        ("doctor?", reference("doctor_report")),
        ("restored?", reference("restored")),
        ("keeper?", reference("keeper_report")),
        ("keeper_unit?", text()),
        ("remembered?", reference("remembered")),
        ("permitted?", reference("permitted")),
        ("spooled?", reference("spooled")),
        ("skill?", reference("skill")),
        ("skills?", listed("listed_skill")),
        ("dispatch_config?", reference("dispatch_config")),
        ("dispatch_init?", reference("dispatch_init")),
        ("dispatch_status?", reference("dispatch_status")),
        ("explained?", reference("explained")),
        ("pinged?", reference("pinged")),
        ("replayed?", reference("replayed")),
        ("stopped?", reference("stopped")),
        ("api_token?", reference("token")),
        ("api_tokens?", listed("token")),
        // The text of a new token, shown once.
        ("secret?", text()),
        (
            "serving?",
            object(
                "Where `serve` listens.",
                &[("url", text()), ("socket", text_or_null())],
            ),
        ),
        (
            "login?",
            object(
                "The address at which a browser logs in, once and for a minute.",
                &[("url", text()), ("file", text())],
            ),
        ),
        ("explanation?", reference("explanation")),
        ("ignored?", listed("ignored")),
        ("schema?", json!({"type": "object"})),
        ("completions?", text()),
        ("man?", json!({"anyOf": [text(), texts()]})),
        ("demo?", texts()),
        ("help?", json!({"anyOf": [text(), list(&verb)]})),
        ("version?", reference("build")),
        ("exit_codes?", listed("exit_code")),
    ]
}

fn failure() -> Value {
    let about = "A refusal or a failure. The exit code depends on its kind.";
    object(
        about,
        &[
            ("v", version()),
            ("error", reference("error")),
            ("notices", listed("notice")),
            ("more_notices?", number()),
        ],
    )
}

/// Beside these three, an error has what a program needs to go on; what that is depends on its kind.
fn error() -> Value {
    let known = object(
        "Why the request failed.",
        &[
            ("kind", text()),
            ("message", text()),
            ("hints", listed("hint")),
            ("key?", text_or_null()),
            ("epoch?", json!({"type": ["integer", "null"]})),
            ("holder?", or_null("session")),
            ("since?", text_or_null()),
            ("note?", text_or_null()),
            ("lease_until?", text_or_null()),
            ("store?", text()),
        ],
    );
    let mut open = known;
    open["additionalProperties"] = Value::Bool(true);
    open
}

fn streamed() -> Value {
    let about =
        "A line of `log -f --json`. `ps --watch` and `mission status --watch` print answers.";
    let logged = object(about, &[("v", version()), ("event", reference("event"))]);
    let about = "The first line of `log -f --json --after CURSOR` if events after that cursor are no longer stored.";
    let missed = object(about, &[("v", version()), ("oldest", number())]);
    let about = "A line of `run --json` and `runs tail --json` that the agent wrote: its JSON, else a string; \
                 null where the log has a gap.";
    let by_agent = [
        ("v", version()),
        ("event", json!({"const": "agent"})),
        ("data", json!(true)),
    ];
    let about_run = "A line of `run --json` about the run itself.";
    let events = json!({"enum": ["run.started", "run.fell_back", "run.ended"]});
    let of_run = [
        ("v", version()),
        ("event", events),
        ("run", reference("run")),
        ("answer?", text_or_null()),
        ("notes?", texts()),
    ];
    let watched = json!({
        "description": "A line of `watch --json`, and what `watch --exec` and a notification's command get.",
        "type": "object",
        "required": ["v", "event", "at"],
    });
    json!({"anyOf": [logged, missed, object(about, &by_agent), object(about_run, &of_run), watched]})
}

fn of_setup() -> Vec<(&'static str, Value)> {
    let file = object(
        "A file that was or would be changed.",
        &[
            ("file", text()),
            ("change", text()),
            ("backup", text_or_null()),
        ],
    );
    vec![
        (
            "agent",
            object(
                "The hooks of an agent in one place.",
                &[
                    ("agent", text()),
                    ("state", text()),
                    ("found?", yes_or_no()),
                    ("scope", json!({"enum": ["user", "project", "plugin"]})),
                    ("file", text()),
                    ("mode", text_or_null()),
                    ("trust?", text_or_null()),
                    ("gone?", text_or_null()),
                    ("doubled?", texts()),
                    ("status_line?", text_or_null()),
                    ("mcp?", text_or_null()),
                    ("wake?", json!({"type": ["boolean", "null"]})),
                    ("answers?", json!({"type": ["boolean", "null"]})),
                    ("changed", yes_or_no()),
                    (
                        "files",
                        json!({"type": "array", "items": {"anyOf": [file, text()]}}),
                    ),
                    ("notes", texts()),
                    ("diff?", text()),
                ],
            ),
        ),
        (
            "channel",
            object(
                "A channel for notifications.",
                &[
                    ("name", text()),
                    (
                        "channel",
                        json!({"enum": ["command", "desktop", "terminal", "webhook"]}),
                    ),
                    ("command?", text()),
                    ("form?", text()),
                    ("url?", text()),
                    ("format?", text()),
                    ("secret_file?", text_or_null()),
                    ("on", texts()),
                    ("titles", yes_or_no()),
                    ("origin", text()),
                ],
            ),
        ),
        (
            "notified",
            object(
                "A test notification that was sent.",
                &[("channel", text()), ("title", text())],
            ),
        ),
        (
            "skill",
            object(
                "A skill as it was rendered, and the file that it was taken from.",
                &[
                    ("name", text()),
                    ("from", json!({"enum": ["user", "repository"]})),
                    ("file", text()),
                    ("variant", json!({"enum": ["full", "delta", "continue"]})),
                    ("stands_in", yes_or_no()),
                    ("text", text()),
                ],
            ),
        ),
        (
            "exit_code",
            object("An exit code.", &[("code", number()), ("meaning", text())]),
        ),
    ]
}

fn of_work() -> Vec<(&'static str, Value)> {
    vec![
        (
            "lock",
            object(
                "A lock that was taken.",
                &[("name", text()), ("held?", yes_or_no()), ("pid?", number())],
            ),
        ),
        (
            "command",
            object(
                "A command that was run.",
                &[
                    ("exit", number()),
                    ("session?", text()),
                    ("claims?", listed("held")),
                    ("lost?", yes_or_no()),
                ],
            ),
        ),
        (
            "transcript",
            object(
                "A session's transcript.",
                &[
                    ("path", text()),
                    ("session", text()),
                    ("native_id?", text_or_null()),
                    ("exists?", yes_or_no()),
                    ("quarantined?", text_or_null()),
                    ("lines?", number()),
                    ("problems?", listed("line_problem")),
                    ("more?", number()),
                    ("offset?", number()),
                    ("bytes?", number()),
                    ("repaired?", yes_or_no()),
                    ("quarantine?", text_or_null()),
                ],
            ),
        ),
        (
            "openclaw",
            object(
                "What is wrong in a state directory of OpenClaw's.",
                &[("dir", text()), ("faults", listed("openclaw_fault"))],
            ),
        ),
        (
            "verified",
            object(
                "A session whose context agrees.",
                &[
                    ("session", text()),
                    ("id", text()),
                    ("faults", listed("fault")),
                ],
            ),
        ),
        (
            "check",
            object(
                "What was checked.",
                &[("checked", number()), ("faults", listed("fault"))],
            ),
        ),
        (
            "left",
            object(
                "A mission that was left.",
                &[("mission", text()), ("pointer_cleared", yes_or_no())],
            ),
        ),
        (
            "use",
            object(
                "A pointer that was set or cleared.",
                &[
                    ("for", json!({"enum": ["session", "repo", "user"]})),
                    ("name", text()),
                    ("mission", text_or_null()),
                    ("before", text_or_null()),
                ],
            ),
        ),
    ]
}
