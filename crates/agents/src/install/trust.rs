//! Whether Codex will run our hooks.
//!
//! Codex silently skips a hook that its user has not reviewed. Its config.toml stores each reviewed hook by
//! file, event and position, with a hash of what was reviewed. We never add to that, because only the user gives
//! trust. With our hooks we remove what it says about them.

use serde_json::json;
use sha2::{Digest, Sha256};
use toml_edit::Document;

use super::hooks_file::HookEntry;

/// Codex's trust in our hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It runs all of them.
    Trusted,
    /// The user disabled some.
    Off,
    /// Some differ from what the user reviewed, and are skipped.
    Changed,
    /// Some were never reviewed, and are skipped.
    Untrusted,
}

impl Trust {
    pub fn word(self) -> &'static str {
        match self {
            Trust::Trusted => "trusted",
            Trust::Off => "off",
            Trust::Changed => "changed",
            Trust::Untrusted => "untrusted",
        }
    }
}

/// What the user should know about hooks with this trust, or unknown to Codex; none if Codex runs them.
pub fn advice(trust: Option<Trust>, will_change: bool) -> Option<String> {
    let why = match trust {
        Some(Trust::Trusted) if !will_change => return None,
        Some(Trust::Off) if !will_change => {
            return Some(
                "some of these hooks are disabled in Codex; type /hooks there to enable them"
                    .to_owned(),
            );
        }
        Some(Trust::Changed | Trust::Trusted | Trust::Off) => {
            "Codex silently skips these hooks until you trust them again"
        }
        Some(Trust::Untrusted) | None => "Codex silently skips these hooks until you trust them",
    };
    Some(format!(
        "{why}: choose \"Trust all and continue\" when codex starts, or type /hooks there and press t (codex exec never asks)"
    ))
}

/// The trust that Codex's config gives these entries; `files` are the possible names of the hooks file.
pub fn trust(config: &str, files: &[String], entries: &[HookEntry]) -> Trust {
    let document = Document::parse(config).ok();
    let state = document
        .as_ref()
        .and_then(|document| document.as_table().get("hooks")?.get("state"));
    let one = |entry: &HookEntry| {
        let remembered = files.iter().find_map(|file| state?.get(key(file, entry)));
        let Some(remembered) = remembered else {
            return Trust::Untrusted;
        };
        if remembered.get("enabled").and_then(|on| on.as_bool()) == Some(false) {
            return Trust::Off;
        }
        match remembered
            .get("trusted_hash")
            .and_then(|hash| hash.as_str())
        {
            Some(reviewed) if reviewed == hash(entry) => Trust::Trusted,
            Some(_) => Trust::Changed,
            None => Trust::Untrusted,
        }
    };
    let each: Vec<Trust> = entries.iter().map(one).collect();
    let worst = [Trust::Untrusted, Trust::Changed, Trust::Off];
    let found = worst.into_iter().find(|trust| each.contains(trust));
    found.unwrap_or(Trust::Trusted)
}

/// Codex's config without what it stores about these entries. Each is a table of its own; the rest stays as it is.
pub fn forget(config: &str, files: &[String], entries: &[HookEntry]) -> String {
    let keys: Vec<String> = files
        .iter()
        .flat_map(|file| entries.iter().map(move |entry| key(file, entry)))
        .collect();
    let document = Document::parse(config).ok();
    let state = document
        .as_ref()
        .and_then(|document| document.as_table().get("hooks")?.get("state"));
    let table = |key: &String| state?.get(key)?.as_table()?.span();
    let starts: Vec<usize> = keys
        .iter()
        .filter_map(table)
        .map(|span| span.start)
        .collect();
    let mut left = String::new();
    let (mut at, mut is_ours) = (0, false);
    for line in config.split_inclusive('\n') {
        let here = at..at + line.len();
        at = here.end;
        let starts_ours = starts.iter().any(|start| here.contains(start));
        let goes_on = is_ours && !line.trim_start().starts_with(['[', '#']);
        is_ours = starts_ours || goes_on;
        if !is_ours {
            left.push_str(line);
        }
    }
    left
}

/// The name under which Codex stores a hook.
fn key(file: &str, entry: &HookEntry) -> String {
    let (group, hook) = entry.place;
    format!("{file}:{}:{group}:{hook}", label(&entry.event))
}

/// `SessionStart` as `session_start`.
fn label(event: &str) -> String {
    let mut label = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !label.is_empty() {
            label.push('_');
        }
        label.push(c.to_ascii_lowercase());
    }
    label
}

/// The hash of a hook as Codex 0.166 computes it: of JSON with sorted keys.
fn hash(entry: &HookEntry) -> String {
    let short = matches!(entry.event.as_str(), "SessionEnd" | "Interrupt");
    let timeout = match (entry.timeout, short) {
        (Some(given), true) => given.min(3),
        (Some(given), false) => given,
        (None, true) => 1,
        (None, false) => 600,
    };
    let command = &entry.command;
    let hook = json!({"async": false, "command": command, "timeout": timeout, "type": "command"});
    let mut identity = json!({"event_name": label(&entry.event), "hooks": [hook]});
    if let Some(matcher) = &entry.matcher {
        identity["matcher"] = json!(matcher);
    }
    let digest = Sha256::digest(identity.to_string().as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::HookLine;
    use tenure_core::write_conflict::GuardMode;

    fn entries(program: &str) -> Vec<HookEntry> {
        let line = HookLine {
            program: program.to_owned(),
            mode: GuardMode::Warn,
            answers: false,
        };
        let codex = crate::codex::ROW.settings.unwrap();
        let format = codex.hooks().unwrap();
        format
            .entries(&format.install("{}", &line).unwrap())
            .unwrap()
    }

    fn config(file: &str, entries: &[HookEntry]) -> String {
        let state = |entry: &HookEntry| {
            let (key, hash) = (key(file, entry), hash(entry));
            format!("[hooks.state.\"{key}\"]\ntrusted_hash = \"{hash}\"\n")
        };
        entries.iter().map(state).collect()
    }

    #[test]
    fn what_codex_stores_about_our_hooks_is_removed_and_nothing_else() {
        let ours = entries("/opt/tenure");
        let file = "/h/.codex/hooks.json";
        let mine =
            "model = \"o3\"\n\n[hooks.state.\"/h/other.json:stop:0:0\"]\ntrusted_hash = \"x\"\n";
        let after = "# about the project\r\n[projects.\"/w\"]\r\ntrust_level = \"trusted\"\r\n";
        let config = format!("{mine}{}{after}", config(file, &ours));
        let files = [file.to_owned()];
        assert_eq!(forget(&config, &files, &ours), format!("{mine}{after}"));
        assert_eq!(forget(mine, &files, &ours), mine);
        assert_eq!(forget("a = = 1\n", &files, &ours), "a = = 1\n");
    }

    /// The answer of Codex 0.166.0 to `hooks/list` for these hooks.
    #[test]
    fn the_hash_is_the_one_that_codex_makes() {
        let mut entry = entries("/x/tenure").remove(0);
        entry.command = "echo user one".into();
        assert_eq!(
            hash(&entry),
            "sha256:71cd84d861e0244b5309a15ddb9f068aec0b531f4c08d443c51bb0fcd8a9b148"
        );
        entry.command = "echo i".into();
        entry.event = "Interrupt".into();
        assert_eq!(
            hash(&entry),
            "sha256:4ade3bc13d25fce0e2345f97915af7a3e36a13bb584f046cd5d395c3c07dc7d3"
        );
        entry.timeout = None;
        assert_eq!(
            hash(&entry),
            "sha256:7181efa38f7a375410869cf16b8f63fb3fa47502036e94eb74299623757343a3"
        );
    }

    #[test]
    fn trust_is_read_from_the_config() {
        let file = "/h/.codex/hooks.json";
        let files = ["/link/hooks.json".to_owned(), file.to_owned()];
        let ours = entries("/x/tenure");
        let reviewed = config(file, &ours);
        assert_eq!(trust("", &files, &ours), Trust::Untrusted);
        assert_eq!(trust(&reviewed, &files, &ours), Trust::Trusted);
        let newer = entries("/y/tenure");
        assert_eq!(trust(&reviewed, &files, &newer), Trust::Changed);
        let off = reviewed.replacen("trusted_hash", "enabled = false\ntrusted_hash", 1);
        assert_eq!(trust(&off, &files, &ours), Trust::Off);
        let part = config(file, &ours[1..]);
        assert_eq!(trust(&part, &files, &ours), Trust::Untrusted);
    }
}
