//! One settings file of another program, and what it will be: shown before it is written.

use std::path::{Path, PathBuf};

use similar::{ChangeTag, TextDiff};
use tenure_core::text;
use tenure_host::settings_file::{SettingsError, SettingsFile};

/// How many changed lines of a file a dry run shows.
const MAX_LINES: usize = 20;
/// How much of a changed line it shows.
const MAX_OF_LINE: usize = 160;

/// One file and what it will be.
#[derive(Debug)]
pub struct SettingsChange {
    pub file: SettingsFile,
    /// None: it goes.
    pub after: Option<String>,
    /// Whether its content is kept beside it before the first change.
    pub keep: bool,
}

impl SettingsChange {
    /// Whether there is nothing to do.
    pub fn is_none(&self) -> bool {
        self.file.text() == self.after.as_deref()
    }

    /// What becomes of the file.
    pub fn word(&self) -> &'static str {
        match (self.file.text(), &self.after) {
            (None, _) => "created",
            (_, None) => "removed",
            _ => "changed",
        }
    }

    /// The file and its changed lines, as people read them.
    pub fn summary(&self) -> Vec<String> {
        let act = match self.word() {
            "created" => "create",
            "removed" => "remove",
            _ => "change",
        };
        let mut lines = vec![format!("would {act} {}", self.file.path().display())];
        let (old, new) = (
            self.file.text().unwrap_or_default(),
            self.after.as_deref().unwrap_or_default(),
        );
        let diff = TextDiff::from_lines(old, new);
        let mut changed = Vec::new();
        for op in diff.ops() {
            changed.extend(changed_lines(&old_and_new(&diff, op)));
        }
        let more = changed.len().saturating_sub(MAX_LINES);
        changed.truncate(MAX_LINES);
        lines.extend(changed.into_iter().map(|line| format!("  {line}")));
        if more > 0 {
            lines.push(format!("  … {more} more changed lines"));
        }
        lines
    }

    /// The change as a patch.
    pub fn diff(&self) -> String {
        let (old, new) = (
            self.file.text().unwrap_or_default(),
            self.after.as_deref().unwrap_or_default(),
        );
        let name = self.file.path().display().to_string();
        let (before, after) = match self.word() {
            "created" => ("/dev/null", name.as_str()),
            "removed" => (name.as_str(), "/dev/null"),
            _ => (name.as_str(), name.as_str()),
        };
        TextDiff::from_lines(old, new)
            .unified_diff()
            .context_radius(2)
            .header(before, after)
            .to_string()
    }

    pub fn apply(&self) -> Result<(), SettingsError> {
        match &self.after {
            Some(text) => {
                if self.keep {
                    self.file.back_up(&backup_of(self.file.path()))?;
                }
                self.file.write(text)
            }
            None => self.file.remove(),
        }
    }
}

/// The lines that one step of a diff takes away, and those that it adds.
fn old_and_new<'t>(
    diff: &TextDiff<'t, 't, '_, str>,
    op: &similar::DiffOp,
) -> (Vec<&'t str>, Vec<&'t str>) {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for change in diff.iter_changes(op) {
        let line = change.value().trim_end_matches(['\r', '\n']);
        match change.tag() {
            ChangeTag::Delete => old.push(line),
            ChangeTag::Insert => new.push(line),
            ChangeTag::Equal => {}
        }
    }
    (old, new)
}

/// Changed lines with `-` and `+`. Of a line that another replaces, only what differs is shown: some settings are one
/// line.
fn changed_lines((old, new): &(Vec<&str>, Vec<&str>)) -> Vec<String> {
    let shown = |mark: char, text: &str| {
        let text = text::line(text);
        format!("{mark} {}", text::clipped(&text, MAX_OF_LINE))
    };
    if let ([old], [new]) = (old.as_slice(), new.as_slice()) {
        let (old, new) = differing(old, new);
        let sides = [('-', old), ('+', new)].into_iter();
        let sides = sides.filter(|(_, part)| !part.is_empty());
        return sides.map(|(mark, part)| shown(mark, part)).collect();
    }
    let gone = old.iter().map(|line| shown('-', line));
    gone.chain(new.iter().map(|line| shown('+', line)))
        .collect()
}

/// Two texts without the beginning and the end that they have in common.
fn differing<'t>(old: &'t str, new: &'t str) -> (&'t str, &'t str) {
    let same = |(a, b): &(char, char)| a == b;
    let start: usize = old
        .chars()
        .zip(new.chars())
        .take_while(same)
        .map(|(c, _)| c.len_utf8())
        .sum();
    let (old, new) = (&old[start..], &new[start..]);
    let end: usize = old
        .chars()
        .rev()
        .zip(new.chars().rev())
        .take_while(same)
        .map(|(c, _)| c.len_utf8())
        .sum();
    (&old[..old.len() - end], &new[..new.len() - end])
}

/// Where a file is kept before its first change.
pub fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tenure-backup");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_only_what_differs_is_shown() {
        let old = r#"{"model":"o3","hooks":{"Stop":[]}}"#;
        let new = r#"{"model":"o3","hooks":{"Start":["tenure"],"Stop":[]}}"#;
        let step = |old: &[&'static str], new: &[&'static str]| {
            changed_lines(&(old.to_vec(), new.to_vec()))
        };
        assert_eq!(step(&[old], &[new]), [r#"+ art":["tenure"],"St"#]);
        assert_eq!(step(&["a", "b"], &["c"]), ["- a", "- b", "+ c"]);
        let long = "x".repeat(500);
        let lines = changed_lines(&(Vec::new(), vec![long.as_str()]));
        assert!(lines[0].chars().count() <= MAX_OF_LINE + 2, "{}", lines[0]);
    }
}
