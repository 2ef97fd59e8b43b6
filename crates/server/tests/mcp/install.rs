//! `tenure install --mcp`: what it adds, and that nothing of it stays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::Env;

use super::{env, text};

/// The files of MCP servers, and what their users have there.
const FILES: [(&str, &str, &str); 5] = [
    (
        "claude",
        ".claude.json",
        "{\n  \"numStartups\": 7,\n  \"projects\": {}\n}\n",
    ),
    ("codex", ".codex/config.toml", "model = \"o3\" # mine\n"),
    ("gemini", ".gemini/settings.json", "{\"theme\": \"dark\"}"),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\n\t// mine\n\t\"mcp\": {\n\t\t\"other\": {\"type\": \"local\", \"command\": [\"x\"]}\n\t}\n}\n",
    ),
    ("qwen", ".qwen/settings.json", "{\n  \"mcpServers\": {}\n}"),
];

/// An environment in which these agents have settings and none is to be found otherwise.
fn settled() -> Env {
    let mut env = env();
    env.set("PATH", "/nowhere");
    std::fs::create_dir_all(env.home().join(".claude")).unwrap();
    for (_, file, content) in FILES {
        let path = env.home().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    env
}

/// Every file below, with what is in it.
fn tree(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), std::fs::read_to_string(path).unwrap());
        }
    }
    found
}

fn install(env: &Env, more: &[&str]) -> Value {
    let words = [&["install", "--json"], more].concat();
    env.tenure(&words).ok().json()
}

/// What is said about each agent.
fn servers(answer: &Value) -> Vec<(String, Value)> {
    let agents = answer["agents"].as_array().unwrap().iter();
    let of_mcp = agents.filter(|one| !one["mcp"].is_null());
    of_mcp
        .map(|one| (text(&one["agent"]), one["mcp"].clone()))
        .collect()
}

#[test]
fn the_server_is_added_to_every_agent_that_was_found_and_taken_out_without_a_trace() {
    let env = settled();
    let before = tree(&env.home());
    let shown = install(&env, &["--mcp", "--dry-run"]);
    assert_eq!(shown["agents"].as_array().unwrap().len(), FILES.len());
    assert_eq!(tree(&env.home()), before, "a dry run changes nothing");

    let answer = install(&env, &["--mcp"]);
    let program = env.tenure_path().to_str().unwrap().to_owned();
    for (agent, file, content) in FILES {
        let now = std::fs::read_to_string(env.home().join(file)).unwrap();
        assert!(
            now.contains(&program) && now.contains("mcp"),
            "{agent}: {now}"
        );
        let kept = content.trim_end().trim_end_matches(['}', '\n', '\t']);
        assert!(now.starts_with(kept.trim_end()), "{agent}: {now}");
    }
    assert!(
        servers(&answer)
            .iter()
            .all(|(_, state)| state == "installed")
    );
    let installed = tree(&env.home());
    let again = install(&env, &["--mcp"]);
    assert!(
        again["agents"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["changed"] == false)
    );
    let kept = install(&env, &[]);
    assert!(
        servers(&kept).iter().all(|(_, state)| state == "installed"),
        "{kept:#}"
    );
    assert_eq!(
        tree(&env.home()),
        installed,
        "a second time changes nothing"
    );
    let check = env.tenure(&["install", "--check"]).ok().stdout;
    assert_eq!(
        check.matches("the MCP server is installed").count(),
        FILES.len(),
        "{check}"
    );

    env.tenure(&["uninstall", "--all"]).ok();
    assert_eq!(tree(&env.home()), before);
}

#[test]
fn without_the_flag_no_server_is_added() {
    let env = settled();
    let answer = install(&env, &[]);
    assert!(
        servers(&answer)
            .iter()
            .all(|(_, state)| state == "not_installed"),
        "{answer:#}"
    );
    assert_eq!(servers(&answer).len(), FILES.len());
    for (agent, file, _) in FILES {
        let now = std::fs::read_to_string(env.home().join(file)).unwrap();
        assert!(!now.contains("\"mcp\"]"), "{agent}: {now}");
    }
}

#[test]
fn another_server_named_tenure_stays_and_is_reported() {
    let env = settled();
    let file = env.home().join(".claude.json");
    let own = "{\"mcpServers\": {\"tenure\": {\"command\": \"other\", \"args\": []}}}";
    std::fs::write(&file, own).unwrap();
    let refused = env.tenure(&["install", "claude", "--mcp"]).fails(6);
    assert!(
        refused
            .stderr
            .contains("another MCP server is named tenure"),
        "{refused}"
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), own);
}
