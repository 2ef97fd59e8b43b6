//! opencode: our own plugin in its plugin directory.

use serde_json::json;

use tenure_core::write_conflict::GuardMode;

use super::Script;
use super::command::{HookLine, word_of};

pub(crate) const PLUGIN: Script = Script {
    text: plugin,
    read,
    note: "the first start of opencode with a plugin fetches a package from npm; it needs the network once",
};

/// The beginning of every version of our plugin.
const MARK: &str = "// Written by tenure";
const SOURCE: &str = include_str!("opencode_plugin.js");

/// The complete text of the plugin.
fn plugin(line: &HookLine) -> String {
    let mut arguments = vec!["hook", "opencode"];
    if line.mode != GuardMode::default() {
        arguments.extend(["--mode", word_of(line.mode)]);
    }
    SOURCE
        .replace("\"PROGRAM\"", &json!(line.program).to_string())
        .replace("[\"ARGUMENTS\"]", &json!(arguments).to_string())
        .replace("\"ANSWERS\"", &line.answers.to_string())
}

/// What an installed plugin runs; none if the file is not ours.
fn read(text: &str) -> Option<HookLine> {
    if !text.starts_with(MARK) {
        return None;
    }
    let value = |name: &str| {
        let start = format!("const {name} = ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start))?;
        serde_json::from_str::<serde_json::Value>(line).ok()
    };
    let program = value("PROGRAM").and_then(|found| Some(found.as_str()?.to_owned()));
    let arguments = value("ARGUMENTS").unwrap_or_default();
    let mode = arguments
        .as_array()
        .and_then(|words| GuardMode::parse(words.last()?.as_str()?));
    Some(HookLine {
        program: program.unwrap_or_default(),
        mode: mode.unwrap_or_default(),
        answers: value("ANSWERS") == Some(serde_json::Value::Bool(true)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_says_who_wrote_it_and_what_it_runs() {
        let lines = crate::install::MODES.map(|mode| [(mode, false), (mode, true)]);
        for (mode, answers) in lines.into_iter().flatten() {
            let line = HookLine {
                program: "/a \"b\"/tenure".into(),
                mode,
                answers,
            };
            let text = plugin(&line);
            assert!(
                text.lines()
                    .next()
                    .unwrap()
                    .contains("tenure uninstall opencode")
            );
            assert_eq!(read(&text), Some(line));
        }
        assert_eq!(read("export const Mine = async () => ({})\n"), None);
    }
}
