//! docs/dispatch.md and the example of a service: what they show works as it is written.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tenure_testkit::Cmd;

use crate::env;
use crate::support::run::{all, fake_claude};
use crate::support::skip;

fn project(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(project(file)).expect("it is part of the project")
}

/// The blocks of this kind, in their order.
fn fenced(text: &str, kind: &str) -> Vec<String> {
    let open = format!("```{kind}\n");
    let blocks = text.split(&open).skip(1);
    let ends = blocks.map(|block| block.split("\n```").next().unwrap_or_default());
    ends.map(str::to_owned).collect()
}

#[test]
fn the_guide_works_at_the_first_try_in_its_order() {
    let env = env();
    let claude = fake_claude(
        &env,
        "keeps; init; printf %s \"$prompt\" >$dir/prompt; ok 'fixed'",
    );
    let blocks = fenced(&read("docs/dispatch.md"), "sh");
    assert!(blocks.len() >= 6, "{blocks:?}");
    // Every line counts; what runs in the background is stopped by the guide itself.
    let script = format!("set -eux\n{}\n", blocks.join("\n"));
    let person = env.agent("some-editor");
    let said = person.run(Cmd::new("bash").args(["-c", &script])).ok();
    for shown in [
        "has no faults",
        "accepts its secret",
        "claude would run for issue:acme/web#6",
        "queued: rule implement matches (replayed)",
        "stopped the dispatcher",
    ] {
        assert!(said.stdout.contains(shown), "{shown}\n{said}");
    }
    let runs = all(&env);
    assert_eq!(
        (runs.len(), &runs[0]["outcome"]),
        (1, &json!("done")),
        "{runs:#?}"
    );
    assert_eq!(runs[0]["item"], "issue:acme/web#6");
    let prompt = std::fs::read_to_string(claude.join("prompt")).expect("it had a prompt");
    assert!(prompt.contains("It answers 500."), "{prompt}");
    assert!(std::fs::read_to_string(claude.join("calls")).is_ok());
}

/// Each command that is named in the text is one.
#[test]
fn every_command_that_the_guide_names_exists() {
    let env = env();
    let text = read("docs/dispatch.md");
    let named = text.split("`tenure ").skip(1);
    let mut seen = 0;
    for line in named.filter_map(|rest| rest.split('`').next()) {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let words: Vec<&str> = line.split(' ').collect();
        let verbs = words
            .iter()
            .take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
        let verbs: Vec<&str> = verbs.copied().collect();
        env.tenure(&[&verbs[..], &["--help"]].concat()).ok();
        let help = env.tenure(&[&verbs[..], &["--help"]].concat()).stdout;
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "{line}: no {flag}");
        }
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
}

/// The values of a key of the unit.
fn values(unit: &str, key: &str) -> Vec<String> {
    let begin = format!("{key}=");
    let lines = unit.lines().filter_map(|line| line.strip_prefix(&begin));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_command_line_of_the_service_is_one_of_tenure() {
    let env = env();
    let unit = read("examples/tenure-dispatch.service");
    assert_eq!(values(&unit, "KillMode"), ["process"]);
    let starts = values(&unit, "ExecStart");
    assert_eq!(starts.len(), 1);
    let words: Vec<&str> = starts[0].split(' ').collect();
    assert_eq!(words[0], "/usr/local/bin/tenure");
    // It is understood, and fails because this machine has no such file.
    let said = env.tenure(&[&words[1..], &["--json"]].concat()).fails(4);
    assert_eq!(said.json()["error"]["kind"], "no_dispatch_config");
}

#[test]
fn systemd_finds_nothing_wrong_with_the_service() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else {
        skip::skipped("systemd-analyze is not installed");
        return;
    };
    assert!(version.status.success());
    let env = env();
    let unit = read("examples/tenure-dispatch.service");
    // The program that it names is not installed where tests run.
    let program = env.tenure_path().display().to_string();
    let unit = unit.replace("/usr/local/bin/tenure", &program);
    let file = env.dir().join("tenure-dispatch.service");
    std::fs::write(&file, unit).expect("the environment is ours");
    let checked = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&file)
        .output()
        .expect("it is installed");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && said.is_empty(), "{said}");
}
