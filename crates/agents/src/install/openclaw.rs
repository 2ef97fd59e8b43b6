//! OpenClaw: our own plugin in a directory that OpenClaw's command line adds to its settings.
//!
//! OpenClaw rewrites its settings as a whole and checks them at every command, so its own command line edits them.

use serde_json::{Value, json};

use tenure_core::write_conflict::GuardMode;

use super::command::{HookLine, word_of};
use super::{Package, Script};

/// The name of the plugin in OpenClaw's settings.
const ID: &str = "tenure";
/// The beginning of every version of our plugin.
const MARK: &str = "// Written by tenure";
const SOURCE: &str = include_str!("openclaw_plugin.js");

pub(crate) const PLUGIN: Package = Package {
    script: Script {
        text: plugin,
        read,
        note: "if a second session key takes over a session id, tenure refuses it and repairs OpenClaw's database; \
               set openclaw.heal = false to only refuse it",
    },
    others: &[
        (
            "package.json",
            "{\"name\":\"tenure-openclaw\",\"version\":\"1.0.0\",\"private\":true,\"type\":\"module\",\
             \"openclaw\":{\"extensions\":[\"./index.js\"]}}\n",
        ),
        (
            "openclaw.plugin.json",
            "{\"id\":\"tenure\",\"name\":\"tenure\",\"description\":\"sessions, claims and session ids that stay apart\",\
             \"activation\":{\"onStartup\":true},\"configSchema\":{\"type\":\"object\",\"additionalProperties\":false}}\n",
        ),
    ],
    program: "openclaw",
    config: "openclaw.json",
    add: |dir| {
        vec![
            words(&[
                "plugins",
                "install",
                "--link",
                dir,
                "--force",
                "--accept-capabilities",
            ]),
            words(&[
                "config",
                "set",
                "plugins.entries.tenure.hooks.allowConversationAccess",
                "true",
            ]),
        ]
    },
    // The first one leaves an entry that says that the plugin is off.
    remove: &[
        &["plugins", "uninstall", ID, "--force", "--keep-files"],
        &["config", "unset", "plugins.entries.tenure"],
    ],
    is_added,
    is_named,
    is_other: |text| {
        let found: Value = serde_json::from_str(text).unwrap_or_default();
        found["name"]
            .as_str()
            .is_some_and(|name| name.starts_with(ID))
    },
};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The complete text of the plugin.
fn plugin(line: &HookLine) -> String {
    let mut arguments = vec!["hook", "openclaw", "--stream"];
    if line.mode != GuardMode::default() {
        arguments.extend(["--mode", word_of(line.mode)]);
    }
    SOURCE
        .replace("\"PROGRAM\"", &json!(line.program).to_string())
        .replace("[\"ARGUMENTS\"]", &json!(arguments).to_string())
}

/// What an installed plugin runs; none if the file is not ours.
fn read(text: &str) -> Option<HookLine> {
    if !text.starts_with(MARK) {
        return None;
    }
    let value = |name: &str| {
        let start = format!("const {name} = ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start))?;
        serde_json::from_str::<Value>(line).ok()
    };
    let program = value("PROGRAM").and_then(|found| Some(found.as_str()?.to_owned()));
    let arguments = value("ARGUMENTS").unwrap_or_default();
    let mode = arguments
        .as_array()
        .and_then(|words| GuardMode::parse(words.last()?.as_str()?));
    Some(HookLine {
        program: program.unwrap_or_default(),
        mode: mode.unwrap_or_default(),
        answers: false,
    })
}

/// Whether OpenClaw's settings load the plugin in this directory and let it see conversations.
fn is_added(config: &str, dir: &str) -> bool {
    let Ok(config) = serde_json::from_str::<Value>(config) else {
        return false;
    };
    let plugins = &config["plugins"];
    let entry = &plugins["entries"][ID];
    let paths = plugins["load"]["paths"].as_array();
    paths.is_some_and(|paths| paths.iter().any(|path| path == dir))
        && entry["enabled"] == true
        && entry["hooks"]["allowConversationAccess"] == true
}

/// Whether OpenClaw's settings name the plugin at all.
fn is_named(config: &str, dir: &str) -> bool {
    match serde_json::from_str::<Value>(config) {
        Ok(config) => {
            let plugins = &config["plugins"];
            let paths = plugins["load"]["paths"].as_array();
            plugins["entries"].get(ID).is_some()
                || paths.is_some_and(|paths| paths.iter().any(|path| path == dir))
        }
        // A person may write it with comments.
        Err(_) => config.contains(dir),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_says_who_wrote_it_and_what_it_runs() {
        for mode in crate::install::MODES {
            let line = HookLine {
                program: "/a \"b\"/tenure".into(),
                mode,
                answers: false,
            };
            let text = plugin(&line);
            let first = text.lines().next().unwrap();
            assert!(first.contains("tenure uninstall openclaw"));
            assert_eq!(read(&text), Some(line));
        }
        assert_eq!(read("export default {}\n"), None);
    }

    #[test]
    fn its_manifests_are_json_and_name_it() {
        for (name, text) in PLUGIN.others {
            let found: Value = serde_json::from_str(text).unwrap();
            assert!(found.is_object() && (PLUGIN.is_other)(text), "{name}");
        }
    }

    #[test]
    fn it_is_added_only_if_openclaw_loads_it_with_its_conversations() {
        let whole = json!({"plugins": {"load": {"paths": ["/p"]}, "entries": {"tenure": {
            "enabled": true, "hooks": {"allowConversationAccess": true}}}}});
        assert!(is_added(&whole.to_string(), "/p"));
        assert!(!is_added(&whole.to_string(), "/q"));
        let mut blind = whole.clone();
        blind["plugins"]["entries"]["tenure"]["hooks"] = json!({});
        assert!(!is_added(&blind.to_string(), "/p") && is_named(&blind.to_string(), "/p"));
        let mut off = whole;
        off["plugins"]["entries"]["tenure"]["enabled"] = json!(false);
        assert!(!is_added(&off.to_string(), "/p"));
        assert!(!is_named("{}", "/p") && is_named("{/* mine */ paths: ['/p']}", "/p"));
    }
}
