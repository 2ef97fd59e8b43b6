//! A provider that fails: the conversation stays, and nothing is run again.

use serde_json::{Value, json};
use tenure_core::time::Timestamp;
use tenure_testkit::real::Real;

use super::{Runs, text};

of_each_agent! { [limit limit_with_a_time] }
of! { server_error claude Claude codex Codex gemini Gemini }
of! { stream_is_cut claude Claude opencode Opencode }
of! { provider_is_waited_for claude Claude codex Codex gemini Gemini qwen Qwen }

/// An agent that does not try for minutes.
fn impatient(kind: Real) -> Runs {
    let mut runs = Runs::begin(kind);
    if kind == Real::Gemini {
        let file = runs.world.home().join(".gemini/settings.json");
        let mut settings: Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        settings["general"]["maxAttempts"] = json!(1);
        std::fs::write(file, settings.to_string()).unwrap();
    }
    runs.env.push(("CLAUDE_CODE_MAX_RETRIES", Some("1")));
    runs
}

fn server_error(kind: Real) {
    let runs = impatient(kind);
    let said = runs.run(&["--prompt", "MOCK:fail server"]);
    let run = runs.newest();
    assert_eq!(run["outcome"], "failed", "{run:#}\n{said}");
    assert_ne!(said.code, 0, "{said}");
    runs.run(&["--prompt", "MOCK:say better"]).ok();
    let next = runs.newest();
    assert_eq!(next["before"], run["native_id"], "{next:#}");
    // Gemini drops a conversation in which nothing was ever answered.
    assert_eq!(next["fell_back"], kind == Real::Gemini, "{next:#}");
    assert_eq!(runs.all().len(), 2);
}

/// Claude asks once more and without a stream; opencode asks without end, and is ended.
fn stream_is_cut(kind: Real) {
    let runs = impatient(kind);
    let said = runs.run(&["--prompt", "MOCK:fail cut-text"]);
    let run = runs.newest();
    if kind == Real::Claude {
        assert_eq!(run["outcome"], "done", "{run:#}\n{said}");
        return;
    }
    assert_eq!(run["outcome"], "failed", "{run:#}\n{said}");
    let why = "the agent kept asking the model without a result";
    assert_eq!(run["why"], why, "{run:#}");
    assert_ne!(said.code, 0, "{said}");
}

/// An agent that asks its provider again and again is shown as waiting while it does.
fn provider_is_waited_for(kind: Real) {
    let runs = Runs::begin(kind);
    let how = match kind {
        Real::Qwen => "MOCK:fail limit",
        _ => "MOCK:fail overloaded",
    };
    let window = runs.start(&["--prompt", how]);
    let run = runs.until("it waits", |run| run["waiting"].is_object());
    assert_eq!(run["state"], "running", "{run:#}");
    assert!(run["waiting"]["since"].is_string(), "{run:#}");
    let stop = ["runs", "stop", text(&run, "id"), "--reason", "enough"];
    runs.world.tenure(&stop).ok();
    let said = window.wait();
    assert_ne!(said.code, 0, "{said}");
    assert_eq!(runs.newest()["waiting"], Value::Null);
    if kind == Real::Qwen {
        runs.cell(
            "429",
            "it asks again for more than 7 minutes and is shown as waiting; only the timeout ends it",
        );
    }
}

/// Without a time the agent is parked for half an hour.
fn limit(kind: Real) {
    let runs = impatient(kind);
    runs.run(&["--prompt", "MOCK:fail limit"]);
    let run = parked(&runs);
    assert!(minutes_until(&run) <= 31, "{run:#}");
}

fn limit_with_a_time(kind: Real) {
    let mut runs = impatient(kind);
    // Only who is logged in is told a time.
    runs.env.push(("ANTHROPIC_API_KEY", None));
    runs.env.push((
        "CLAUDE_CODE_OAUTH_TOKEN",
        Some("sk-ant-oat01-of-the-mock-model"),
    ));
    if kind == Real::Opencode {
        // It waits inside for that time, and shows nothing.
        runs.run(&["--prompt", "MOCK:fail limit-until", "--timeout", "12s"]);
        let run = runs.newest();
        assert_eq!(run["outcome"], "timeout", "{run:#}");
        return runs.cell(
            "429",
            "parked; with a time it waits inside, and only the timeout ends it",
        );
    }
    runs.run(&["--prompt", "MOCK:fail limit-until"]);
    let run = parked(&runs);
    let minutes = minutes_until(&run);
    if matches!(kind, Real::Claude | Real::Codex) {
        assert!((100..=121).contains(&minutes), "{run:#}");
        runs.cell("429", "parked until the time that it names");
    } else {
        assert!(minutes <= 31, "{run:#}");
        runs.cell("429", "parked; it names no time");
    }
}

/// A run that is parked, also for processes that know nothing of it.
#[track_caller]
fn parked(runs: &Runs) -> Value {
    let run = runs.newest();
    assert_eq!(run["outcome"], "parked", "{run:#}");
    let until = text(&run, "parked_until");
    let steps = runs.steps();
    let refused = runs.refused(&[]);
    assert_eq!(
        (&refused["kind"], &refused["until"]),
        (&"parked".into(), &until.into()),
        "{refused:#}"
    );
    let resume = ["runs", "resume", text(&run, "id"), "--json"];
    let said = runs.world.tenure(&resume).fails(125);
    let error =
        serde_json::from_str::<Value>(said.stdout.lines().last().unwrap()).unwrap()["error"]
            .clone();
    assert_eq!(
        (&error["kind"], &error["until"]),
        (&"parked".into(), &until.into()),
        "{error:#}"
    );
    assert_eq!(runs.steps(), steps, "the model was not asked again");
    assert_eq!(runs.all().len(), 1);
    run
}

fn minutes_until(run: &Value) -> i64 {
    let read = |name: &str| {
        let at: Timestamp = serde_json::from_value(run[name].clone()).unwrap();
        at.0
    };
    (read("parked_until") - read("ended_at")) / 60_000
}
