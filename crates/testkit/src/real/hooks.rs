//! Hooks set up by hand, and a recorder that stores their input.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tenure_agents::install::Format;

use super::config::{save, save_text};
use super::kind::Real;

/// Adds a hook for every event that tenure knows, and keeps everything else in the file.
pub(super) fn write(kind: Real, home: &Path, command: &str) {
    let row = kind.adapter();
    let settings = row.settings.as_ref().expect("tenure installs for it");
    let file = home.join(settings.home).join(settings.file);
    let events: Vec<&str> = row.events.iter().map(|event| event.name).collect();
    match settings.format {
        Format::Hooks(_) => add(&file, &events, command),
        Format::Script(_) | Format::Package(_) => {
            save_text(&file.with_file_name("hook.js"), &plugin(command));
        }
    }
}

fn add(path: &Path, events: &[&str], command: &str) {
    let mut settings = match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).expect("settings are JSON"),
        Err(_) => json!({}),
    };
    let entry = |event: &&str| {
        let hook = json!({"type": "command", "command": command.replace("{}", event)});
        ((*event).to_owned(), json!([{"hooks": [hook]}]))
    };
    settings["hooks"] = Value::Object(events.iter().map(entry).collect::<Map<_, _>>());
    save(path, &settings);
}

fn plugin(command: &str) -> String {
    let command = Value::from(command);
    format!(
        r#"import {{ spawnSync }} from "child_process"
const tell = (event, input) =>
  spawnSync("sh", ["-c", {command}.replace("{{}}", event)], {{ input: JSON.stringify(input) }})
export const Hook = async () => ({{
  event: async ({{ event }}) => {{
    if (event.type.startsWith("session.")) tell(event.type, event.properties)
  }},
  "chat.message": async (input) => tell("chat.message", input),
  "tool.execute.before": async (input) => tell("tool.execute.before", input),
  "tool.execute.after": async (input) => tell("tool.execute.after", input),
}})
"#
    )
}

/// The inputs of hooks, one file each.
#[derive(Debug)]
pub struct Hooked {
    dir: PathBuf,
    command: String,
}

impl Hooked {
    pub(super) fn new(scratch: &Path) -> Hooked {
        let dir = scratch.join("hooked");
        let script = scratch.join("record-hook");
        std::fs::create_dir_all(&dir).expect("a scratch directory is writable");
        // A file appears complete, under a name that sorts by time.
        let text = format!(
            "#!/bin/sh\nset -e\nfile=$(mktemp '{dir}/.XXXXXX')\ncat >\"$file\"\n\
             mv \"$file\" '{dir}'/\"$(date +%s%N).$$.$1\"\n",
            dir = dir.display()
        );
        save_text(&script, &text);
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))
            .expect("a file of one's own can be made executable");
        let script = script.to_str().expect("paths of tests are text");
        let command = format!("{script} {{}}");
        Hooked { dir, command }
    }

    /// The command line of the recorder, with `{}` for the name of the event.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The events so far, in order, each with its payload.
    pub fn events(&self) -> Vec<(String, Value)> {
        let entries = self
            .dir
            .read_dir()
            .expect("the recorder's directory is there");
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        files
            .iter()
            .filter_map(|path| {
                let name = path.file_name()?.to_str()?;
                let (_, event) = name.split_once('.')?.1.split_once('.')?;
                let text = std::fs::read_to_string(path).ok()?;
                let payload = serde_json::from_str(&text).unwrap_or(Value::String(text));
                Some((event.to_owned(), payload))
            })
            .collect()
    }

    /// The payloads of one event, in order.
    pub fn of(&self, event: &str) -> Vec<Value> {
        let events = self.events().into_iter();
        events
            .filter(|(name, _)| name == event)
            .map(|(_, payload)| payload)
            .collect()
    }
}
