//! Claude Code: the same hooks as a plugin directory, for users who do not want their settings edited. The
//! directory is a marketplace with one plugin, itself.

use serde_json::json;

use super::command::HookLine;
use super::hooks_file::{HooksFileError, HooksFormat};

/// The plugin's and the marketplace's name.
pub const NAME: &str = "tenure";
/// The file that identifies the owner of the directory.
pub const MANIFEST: &str = ".claude-plugin/plugin.json";
const ABOUT: &str =
    "Tracks coding-agent sessions: which are alive, what each one holds, and who may write";

const README: &str = "\
# tenure for Claude Code

This plugin reports to tenure, a program on this machine, when a session starts, works, waits and ends. With
it, `tenure ps` shows which sessions are alive and what each one holds, and tenure stops two of them working on
the same item.

The hooks run the tenure that wrote this directory (`tenure install claude --plugin DIR`). Run that command again
after you move tenure. Without tenure the hooks do nothing. They need no settings, and no data leaves the machine.
";

/// The files of the plugin, by their path in its directory.
pub fn files(
    format: &HooksFormat,
    line: &HookLine,
    version: &str,
) -> Result<Vec<(&'static str, String)>, HooksFileError> {
    let manifest = json!({
        "name": NAME,
        "version": version,
        "description": ABOUT,
        "author": {"name": NAME},
        "license": "MIT OR Apache-2.0",
    });
    let marketplace = json!({
        "name": NAME,
        "owner": {"name": NAME},
        "description": ABOUT,
        "plugins": [{"name": NAME, "source": "./", "description": ABOUT}],
    });
    let hooks = format.install(&pretty(&json!({"description": ABOUT})), line)?;
    Ok(vec![
        (MANIFEST, pretty(&manifest)),
        (".claude-plugin/marketplace.json", pretty(&marketplace)),
        ("hooks/hooks.json", hooks),
        ("README.md", README.to_owned()),
    ])
}

/// The commands that make Claude Code use the plugin in this directory, which is quoted for a shell.
pub fn commands(dir: &str) -> [String; 2] {
    [
        format!("claude plugin marketplace add {dir}"),
        format!("claude plugin install {NAME}@{NAME}"),
    ]
}

/// Whether a manifest is our plugin's.
pub fn is_ours(manifest: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(manifest).is_ok_and(|found| found["name"] == NAME)
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::Format;

    #[test]
    fn the_plugin_has_every_hook() {
        let line = HookLine {
            program: "/x/tenure".into(),
            mode: tenure_core::write_conflict::GuardMode::Block,
            answers: false,
        };
        let format = crate::claude::ROW.settings.unwrap().format;
        let Format::Hooks(format) = format else {
            panic!("Claude Code has a hooks object")
        };
        let files = files(&format, &line, "1.2.3").unwrap();
        let text = |name: &str| {
            files
                .iter()
                .find(|(path, _)| *path == name)
                .unwrap()
                .1
                .clone()
        };
        assert!(is_ours(&text(MANIFEST)) && !is_ours("{\"name\": \"other\"}") && !is_ours("x"));
        let entries = format.entries(&text("hooks/hooks.json")).unwrap();
        assert_eq!(entries.len(), format.asked().count());
        assert!(entries.iter().all(|entry| entry.line == line));
    }
}
