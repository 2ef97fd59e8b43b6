//! Whether agents still have conversations: searched on their directories, each of which is read once.
//!
//! Only absence is evidence. A directory that cannot be read completely, and a conversation of another
//! user, give no answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tenure_core::conversation::fitness::Existence;
use tenure_core::transcript::{TranscriptLayout, is_name_of, layout_of};
use tenure_core::witness::StoredConversation;
use tenure_host::env::var;
use tenure_host::transcript_files::files;

/// One answer per conversation, in order.
pub fn look(kept: &[StoredConversation]) -> Vec<Existence> {
    let user = rustix::process::getuid().as_raw().to_string();
    let mut answers = vec![Existence::CannotTell; kept.len()];
    let mut shelves: BTreeMap<(String, PathBuf), Vec<usize>> = BTreeMap::new();
    for (at, one) in kept.iter().enumerate() {
        let rule = layout_of(&one.agent).filter(|_| one.home.user == user);
        if let Some(root) = rule.and_then(|rule| root(&rule, one.home.agent_home.as_deref())) {
            let place = (one.agent.to_string(), root);
            shelves.entry(place).or_default().push(at);
        }
    }
    for ((_, root), asked) in shelves {
        let rule = asked.first().and_then(|at| layout_of(&kept[*at].agent));
        let found = rule.and_then(|rule| Some((rule, files(&root, &rule)?)));
        let Some((rule, files)) = found else {
            continue;
        };
        let files = by_tail(&files);
        for at in asked {
            answers[at] = if has(&rule, &files, &kept[at]) {
                Existence::Present
            } else {
                Existence::Absent
            };
        }
    }
    answers
}

/// The directory of an agent's transcripts.
fn root(rule: &TranscriptLayout, agent_home: Option<&str>) -> Option<PathBuf> {
    let own = match agent_home {
        Some(moved) => PathBuf::from(moved),
        None => PathBuf::from(var("HOME").filter(|home| !home.is_empty())?).join(rule.home),
    };
    Some(own.join(rule.folder))
}

/// The first characters of an id occur in every name that it can have.
const TAIL: usize = 8;

/// File names and lengths, by every part of `TAIL` bytes where an id may begin: after a dash, or at
/// the beginning.
fn by_tail(files: &[(PathBuf, u64)]) -> BTreeMap<&str, Vec<(&str, u64)>> {
    let mut found: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (path, length) in files {
        let Some(name) = name_of(path) else {
            continue;
        };
        let after_dashes = name.match_indices('-').map(|(at, _)| at + 1);
        for start in std::iter::once(0).chain(after_dashes) {
            let rest = &name[start..];
            let whole = |end: &usize| rest.is_char_boundary(*end);
            let end = (0..=TAIL.min(rest.len())).rev().find(whole).unwrap_or(0);
            found.entry(&rest[..end]).or_default().push((name, *length));
        }
    }
    found
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn has(
    rule: &TranscriptLayout,
    files: &BTreeMap<&str, Vec<(&str, u64)>>,
    kept: &StoredConversation,
) -> bool {
    let id = kept.native_id.as_str();
    // A shorter id is followed by the extension of the file.
    let likely = files.range(&id[..id.len().min(TAIL)]..);
    let likely = likely.take_while(|(tail, _)| tail.starts_with(&id[..id.len().min(TAIL)]));
    let mut names = likely.flat_map(|(_, names)| names);
    names.any(|(name, length)| {
        let is_empty = *length == 0 && rule.empty_is_absent;
        !is_empty && is_name_of(&kept.agent, &kept.native_id, name)
    })
}

#[cfg(test)]
mod tests {
    use tenure_core::conversation::Home;
    use tenure_core::id::{AgentName, HostId, NativeId};

    use super::*;

    fn kept(agent: &str, native_id: &str, agent_home: &Path) -> StoredConversation {
        StoredConversation {
            agent: AgentName::parse(agent).unwrap(),
            native_id: NativeId::parse(native_id).unwrap(),
            home: Home {
                host: HostId::new("h"),
                user: rustix::process::getuid().as_raw().to_string(),
                agent_home: Some(agent_home.to_str().unwrap().to_owned()),
                dir: "/w".into(),
                repo_host: None,
            },
        }
    }

    const ID: &str = "0b1c2d3e-0000-4000-8000-00000000000a";

    #[test]
    fn a_conversation_is_there_while_its_file_is() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        let claude = kept("claude", ID, dir.path());
        let codex = kept("codex", ID, dir.path());
        let both = [claude.clone(), codex];
        assert_eq!(look(&both), [Existence::Absent; 2]);
        write(&format!("projects/-w/{ID}.jsonl"), "{}\n");
        write(
            &format!("sessions/2026/11/16/rollout-2026-11-16T01-02-03-{ID}.jsonl"),
            "",
        );
        assert_eq!(
            look(&both),
            [Existence::Present; 2],
            "an empty file is damage to Codex"
        );
        write(&format!("projects/-w/{ID}.jsonl"), "");
        assert_eq!(
            look(&[claude]),
            [Existence::Absent],
            "Claude finds no empty file"
        );
    }

    #[test]
    fn a_short_id_and_one_that_others_begin_with_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("projects/-w");
        fs_err::create_dir_all(&project).unwrap();
        fs_err::write(project.join("abc.jsonl"), "{}\n").unwrap();
        fs_err::write(project.join("abcdefghij.jsonl"), "{}\n").unwrap();
        let of = |id: &str| look(&[kept("claude", id, dir.path())])[0];
        assert_eq!(of("abc"), Existence::Present);
        assert_eq!(of("abcdefghij"), Existence::Present);
        assert_eq!(of("abcd"), Existence::Absent);
        assert_eq!(of("abcdefghik"), Existence::Absent);
    }

    #[test]
    fn what_cannot_be_read_tells_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(
            dir.path().join("projects"),
            "a file in the place of the folder",
        )
        .unwrap();
        let other = StoredConversation {
            home: Home {
                user: "4000000000".into(),
                ..kept("claude", ID, dir.path()).home
            },
            ..kept("claude", ID, dir.path())
        };
        let unknown = kept("my-agent", ID, dir.path());
        let all = [kept("claude", ID, dir.path()), other, unknown];
        assert_eq!(look(&all), [Existence::CannotTell; 3]);
    }
}
