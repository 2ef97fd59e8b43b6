//! Asking `tenure doctor`, and damaging what it looks at.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_testkit::Env;

use super::line::text;

/// What a report has, by code.
pub fn codes(report: &Value) -> BTreeSet<String> {
    let findings = report["doctor"]["findings"].as_array().expect("a list");
    findings.iter().map(|one| text(&one["code"])).collect()
}

#[track_caller]
pub fn doctor(env: &Env, code: i32, more: &[&str]) -> Value {
    let words = [&["doctor", "--json"], more].concat();
    let output = env.tenure(&words);
    assert_eq!(output.code, code, "{output}");
    output.json()
}

#[track_caller]
pub fn healthy(env: &Env) {
    let report = doctor(env, 0, &[]);
    assert_eq!(report["doctor"]["findings"], json!([]), "{report}");
}

/// The finding with this code.
#[track_caller]
pub fn finding(report: &Value, code: &str) -> Value {
    let findings = report["doctor"]["findings"].as_array().expect("a list");
    let one = findings.iter().find(|one| one["code"] == code);
    one.unwrap_or_else(|| panic!("{code} is missing: {report}"))
        .clone()
}

/// Finds something that doctor does not repair, and says what helps; returns the finding.
#[track_caller]
pub fn finds(env: &Env, code: &str) -> Value {
    let one = finding(&doctor(env, 6, &[]), code);
    assert!(one["fix"].is_null(), "it is repaired: {one}");
    assert!(one["advice"].is_string(), "it says what helps: {one}");
    one
}

/// Repairs what it finds with this code, and finds nothing afterwards.
#[track_caller]
pub fn is_fixed(env: &Env, code: &str) -> Value {
    let one = finding(&doctor(env, 6, &[]), code);
    assert!(one["fix"].is_string(), "it says what it would do: {one}");
    let report = doctor(env, 0, &["--fix"]);
    let repaired = report["doctor"]["repaired"].as_array().expect("a list");
    assert!(repaired.iter().any(|one| one["code"] == code), "{report}");
    healthy(env);
    report
}

pub fn database(env: &Env) -> Connection {
    Connection::open(env.state().join("tenure.db")).expect("the environment is ours")
}

/// Changes rows behind tenure's back.
pub fn plant(env: &Env, sql: &str) {
    let plain = database(env);
    plain
        .execute_batch("PRAGMA foreign_keys = OFF")
        .expect("sql");
    plain.execute_batch(sql).expect("sql");
}

pub fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the environment is ours");
}

pub fn config(env: &Env, name: &str, content: &str) -> PathBuf {
    let file = env.home().join(".config/tenure").join(name);
    fs::create_dir_all(file.parent().expect("a directory")).expect("the environment is ours");
    fs::write(&file, content).expect("the environment is ours");
    mode(&file, 0o600);
    file
}
