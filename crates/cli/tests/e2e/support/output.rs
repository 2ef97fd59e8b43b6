//! What tenure prints.

use serde_json::Value;
use tenure_testkit::{Env, Output};

use super::line::text;

/// Every verb that help names.
pub fn verbs(env: &Env) -> Vec<String> {
    let help = env.tenure(&["help", "--all", "--json"]).ok().json();
    let all = help["help"].as_array().expect("a list");
    all.iter().map(|one| text(&one["verb"])).collect()
}

/// Every command and every command of a command, as words, in the order of the help.
pub fn commands(env: &Env) -> Vec<Vec<String>> {
    let dir = env.dir().join("man");
    let dir = dir.to_str().expect("paths of tests are text");
    let pages = env.tenure(&["man", "--dir", dir, "--json"]).ok().json();
    let pages = pages["man"].as_array().expect("a list").iter();
    let words = |page: &Value| -> Option<Vec<String>> {
        let page = text(page);
        let name = page.rsplit_once('/')?.1.strip_suffix(".1")?;
        let words = name.strip_prefix("tenure-")?.split('-');
        Some(words.map(str::to_owned).collect())
    };
    pages.filter_map(words).collect()
}

/// One JSON object on stdout, and nothing on stderr.
#[track_caller]
pub fn one_object(output: &Output) -> Value {
    let json = output.json();
    assert_eq!(output.stdout.lines().count(), 1, "{output}");
    assert_eq!(output.stderr, "", "{output}");
    assert_eq!(json["v"], 1, "{output}");
    assert!(json["notices"].is_array(), "{output}");
    json
}

/// What differs from run to run is shown by its kind; runs of spaces are shown as two.
pub fn settings(env: &Env) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(&env.dir().display().to_string(), "[dir]");
    // One text serves both backends.
    settings.add_filter(r"store: postgres://\S+", "store: [dir]/state/tenure.db");
    settings.add_filter(r"\b(ann|bob|eve|cron)-[a-z0-9]{4,12}\b", "$1-XXXX");
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}", "[id]");
    settings.add_filter(r"pid \d+ (has exited|is gone)", "pid [pid] is gone");
    settings.add_filter(r"pid \d+", "pid [pid]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "[time]");
    // A run may begin before midnight.
    settings.add_filter(
        r"\b\d\d:\d\d:\d\d\b|\b[A-Z][a-z]{2} \d\d \d\d:\d\d\b",
        "[time]",
    );
    settings.add_filter(r"\b\d+(ms|s)\b|\b(9|10)m\b|\bjust now\b", "[span]");
    settings.add_filter(r"\[span\] ago", "[span]");
    settings.add_filter(r"   +", "  ");
    // What is younger than a second is as young as anything else here.
    settings.add_filter("  now  ", "  [span]  ");
    settings
}
