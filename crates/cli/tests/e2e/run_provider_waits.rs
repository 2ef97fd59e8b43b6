//! An agent that waits for its provider is shown as such: at its window, in `runs` and in `runs show`.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use tenure_testkit::{Env, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::run::{fake_claude, kill9, newest, outcome, runner_of, start, until};

/// What Claude Code writes when it asks its provider again.
const RETRY: &str = r#"say '{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":501,"error_status":529,"error":"overloaded"}'"#;

fn held(dir: &std::path::Path) -> std::path::PathBuf {
    let flag = dir.join("flag");
    std::fs::write(&flag, "").expect("a scratch directory can be read and written");
    flag
}

fn waits(run: &Value) -> bool {
    run["waiting"].is_object()
}

#[test]
fn an_agent_that_waits_for_its_provider_is_shown_as_waiting_until_the_model_answers() {
    let env = env();
    let lines =
        format!("init; {RETRY}; hold $dir/flag; reply on; : >$dir/on; hold $dir/more; ok hi");
    let dir = fake_claude(&env, &lines);
    let flag = held(&dir);
    std::fs::write(dir.join("more"), "").unwrap();
    let ann = env.agent("ann");
    let window = start(&ann, "claude wp:1");
    let run = until(&env, "it waits", waits);
    assert_eq!(run["state"], "running");
    let why = run["waiting"]["why"].as_str().unwrap();
    assert!(why.contains("overloaded"), "{run:#}");
    assert!(run["waiting"]["since"].is_string(), "{run:#}");
    let id = run["id"].as_str().unwrap();
    let list = env.tenure(&["runs"]).ok();
    assert!(list.stdout.contains("waiting for its provider"), "{list}");
    let shown = env.tenure(&["runs", "show", id]).ok();
    assert!(shown.stdout.contains("waiting for its provider"), "{shown}");
    let since = shown.stdout.lines().find(|line| line.contains("since"));
    assert!(
        since.is_some_and(|line| line.contains("overloaded")),
        "{shown}"
    );
    std::fs::remove_file(flag).unwrap();
    poll(SOON, "it goes on", || dir.join("on").exists().then_some(()));
    let run = until(&env, "it does not wait", |run| !waits(run));
    assert_eq!(run["state"], "running", "{run:#}");
    std::fs::remove_file(dir.join("more")).unwrap();
    window.wait().ok();
    assert_eq!(outcome(&env), "done");
}

/// The file that tells it stays behind, and is believed no more.
#[test]
fn a_run_without_a_runner_is_not_shown_as_waiting() {
    let env = env();
    let dir = fake_claude(&env, &format!("init; {RETRY}; hold $dir/flag; ok hi"));
    let flag = held(&dir);
    let ann = env.agent("ann");
    let window = start(&ann, "claude wp:1");
    let run = until(&env, "it waits", waits);
    kill9(&ann, runner_of(&run));
    let run = newest(&env);
    assert_eq!(
        (&run["runner"], &run["waiting"]),
        (&"dead".into(), &Value::Null)
    );
    std::fs::remove_file(flag).unwrap();
    window.wait().ok();
}

/// A program called `gemini` that does what these shell lines say.
fn fake_gemini(env: &Env, lines: &str) {
    let program = env.dir().join("bin/gemini");
    let text = format!("#!/bin/sh\ncat >/dev/null\n{lines}\n");
    std::fs::write(&program, text).expect("a scratch directory can be read and written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))
        .expect("a scratch directory can be read and written");
}

/// Gemini CLI tells it on its standard error.
#[test]
fn what_an_agent_tells_on_its_standard_error_is_seen_as_well() {
    let env = env();
    let flag = held(env.dir());
    let lines = format!(
        "echo '{{\"type\":\"init\",\"session_id\":\"g-1\"}}'\n\
         echo 'Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 2h0m0s.. Retrying after 8125478ms...' >&2\n\
         while [ -e {} ]; do sleep 0.02; done\n\
         echo '{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"hi\",\"delta\":true}}'\n\
         echo '{{\"type\":\"result\",\"status\":\"success\",\"stats\":{{}}}}'",
        flag.display()
    );
    fake_gemini(&env, &lines);
    let ann = env.agent("ann");
    let window = start(&ann, "gemini wp:1");
    let run = until(&env, "it waits", waits);
    let why = run["waiting"]["why"].as_str().unwrap();
    assert!(why.contains("Your quota will reset"), "{run:#}");
    std::fs::remove_file(flag).unwrap();
    window.wait().ok();
}
