//! The demo: its story, and how it fails if tenure does not keep a promise.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tenure_testkit::{Agent, Cmd, Env, Output, picture};

use super::page::Page;
use crate::env;

/// A worker of the demo that answers as tenure does, except for one call: the one that `AT` names gets `ANSWER`.
const WORKER: &str = r##"#!/bin/sh
call=0
refused='{"code":3,"json":{"error":{"message":"it is held","holder":{"state":"live","why":"it runs"}}}}'
while read -r line; do
    call=$((call + 1))
    if [ $call = 1 ]; then name=${line#*--agent\",\"}; name=${name%%\"*}; fi
    if [ "$name $call" = "$AT" ]; then printf '%s\n' "$ANSWER"; continue; fi
    case "$name $call" in
    *" 1")
        # The second life of one that was killed.
        if [ "$AT" = end ] && [ -e last ]; then rm -rf "$PWD"; fi
        echo '{"code":0,"json":{"session":{"handle":"'$name'-k7qd","registered":"resumed"},"regranted":[{"key":"issue:acme/web#42","epoch":3}],"taken":["it"]}}'
        ;;
    "claude 2") echo '{"code":0,"json":{"claim":{"epoch":1}}}' ;;
    "codex 2" | "gemini 2" | "gemini 3") echo "$refused" ;;
    "codex 3") echo '{"code":0,"json":{"claim":{"epoch":2,"taken_from":{"handle":"claude-k7qd","proof":"it exited"}}}}' ;;
    "gemini 4") echo '{"code":0,"json":{"claim":{"epoch":3}}}' ;;
    "codex 4") echo '{"code":5,"json":{"notices":[{"message":"it was taken over"}]}}' ;;
    "codex 5") echo '{"code":0,"json":{"notices":[]}}' ;;
    "gemini 5") echo '{"code":0,"json":{}}' ;;
    "codex 6") : >last; echo '{"code":0,"json":{}}' ;;
    esac
done
"##;

/// What does not happen as it should: which call, and what it answers.
const BROKEN: &[(&str, &str)] = &[
    ("claude 1", r#"{"code":8,"json":null}"#),
    ("codex 2", r#"{"code":0,"json":{"claim":{"epoch":1}}}"#),
    ("codex 2", r#"{"code":1,"json":null}"#),
    (
        "claude 2",
        r#"{"code":3,"json":{"error":{"message":"it is held"}}}"#,
    ),
    ("codex 3", r#"{"code":3,"json":null}"#),
    ("codex 3", r#"{"code":0,"json":{"claim":{"epoch":1}}}"#),
    ("gemini 3", r#"{"code":0,"json":null}"#),
    (
        "gemini 3",
        r#"{"code":3,"json":{"error":{"holder":{"state":"unknown"}}}}"#,
    ),
    ("gemini 4", r#"{"code":3,"json":null}"#),
    ("codex 4", r#"{"code":0,"json":null}"#),
    ("codex 4", r#"{"code":5,"json":{"notices":[]}}"#),
    ("codex 5", r#"{"code":4,"json":null}"#),
    ("codex 5", r#"{"code":0,"json":{"notices":["again"]}}"#),
    ("gemini 5", r#"{"code":3,"json":null}"#),
    ("codex 6", r#"{"code":3,"json":null}"#),
    (
        "gemini 1",
        r#"{"code":0,"json":{"session":{"registered":"new"}}}"#,
    ),
    (
        "gemini 1",
        r#"{"code":0,"json":{"session":{"registered":"resumed"},"regranted":[]}}"#,
    ),
    ("codex 2", "not JSON"),
    ("end", ""),
];

/// A demo whose workers are the script above. The demo starts them by its own path, which names the script once the
/// program itself is removed.
fn with_workers(env: &Env, agent: &Agent, at: &str, answer: &str) -> Output {
    let dir = env.dir().join("demo");
    let kept = dir.join("kept");
    if !kept.exists() {
        fs::create_dir(&dir).expect("the environment is ours");
        fs::copy(env.tenure_path(), &kept).expect("the environment is ours");
        let script = dir.join("tenure (deleted)");
        fs::write(&script, WORKER).expect("the environment is ours");
        fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it is ours");
    }
    let line = "ln kept tenure; exec 3<tenure; rm tenure; exec /proc/self/fd/3 demo --quiet";
    let cmd = Cmd::shell(line)
        .dir(&dir)
        .env("AT", at)
        .env("ANSWER", answer);
    let mut said = agent.run(cmd);
    said.stderr = without_code(&said.stderr);
    said
}

/// The text with one name for every scratch directory.
fn without_code(text: &str) -> String {
    let Some((before, rest)) = text.split_once("tenure-demo-") else {
        return text.to_owned();
    };
    let start = before.rfind('"').map_or(0, |quote| quote + 1);
    let rest = rest.get(6..).unwrap_or_default();
    format!("{}/tmp/tenure-demo-x7Kd2p{rest}", &before[..start])
}

#[test]
fn the_demo() {
    let env = env();
    let mut page = Page::new("05-demo", &env);
    let person = env.agent("outsider");
    page.title("The story");
    let mut said = person.tenure(&["demo"]).ok();
    said.stdout = picture::settled(&said.stdout).join("\n");
    page.show(person.pid(), "tenure demo", said, None);
    page.title("No room for it");
    let nowhere = Cmd::new("tenure").arg("demo").env("TMPDIR", "/missing");
    let mut said = person.run(nowhere);
    said.stderr = without_code(&said.stderr).replace("/tmp/", "/missing/");
    page.show(
        person.pid(),
        "TMPDIR=/missing tenure demo",
        said,
        Some("demo"),
    );
    page.title("A promise that is not kept");
    for (at, answer) in BROKEN {
        let said = with_workers(&env, &person, at, answer);
        assert_eq!(said.code, 1, "{at} {answer}\n{said}");
        page.show(person.pid(), "tenure demo --quiet", said, Some("demo"));
    }
    page.check_as_printed();
}
