//! The files of questions: private, local, and each written once.
//!
//! `questions/ID.json` is a question, `ID.answer` what closed it, `ID.recorded` shows that the log has the answer, and
//! `ID.sent` that the agent has it. A name is given to a whole file by a hard link, which fails if the name is taken, so
//! of two processes exactly one closes a question. Only regular files of this user that nobody else can touch are read,
//! and no link is followed.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenure_agents::{AskedKind, PersonsAnswer};
use tenure_core::id::QuestionId;
use tenure_core::process::Process;
use tenure_core::time::Timestamp;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::{clock, file};

/// The directory below the state directory.
const DIR: &str = "questions";
/// How long a closed question is kept, for those who answer late.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// No file is longer.
const MAX_LENGTH: u64 = 256 << 10;

/// A question as its hook wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionFile {
    pub id: String,
    /// The session's id.
    pub session: String,
    pub native_id: Option<String>,
    /// The agent's process.
    pub agent: Process,
    /// The hook that waits.
    pub waiter: Process,
    pub tool: String,
    pub kind: AskedKind,
    /// All of it, safe to show.
    pub shown: Vec<String>,
    pub dir: String,
    pub opened_at: Timestamp,
    pub until: Timestamp,
}

/// What closed a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Closing {
    Answered {
        answer: PersonsAnswer,
        /// Who answered, and where.
        by: String,
        at: Timestamp,
    },
    /// Nobody answered from elsewhere.
    Over { why: String, at: Timestamp },
}

impl Closing {
    pub fn over(why: impl Into<String>) -> Self {
        Self::Over {
            why: why.into(),
            at: clock::wall(),
        }
    }
}

/// What a question's later files are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Recorded,
    Sent,
}

impl Step {
    fn ending(self) -> &'static str {
        match self {
            Step::Recorded => "recorded",
            Step::Sent => "sent",
        }
    }
}

/// The questions of one state directory.
#[derive(Debug, Clone)]
pub struct QuestionFiles {
    dir: PathBuf,
}

impl QuestionFiles {
    pub fn below(state: &Path) -> Self {
        Self {
            dir: state.join(DIR),
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens a question. What was closed long ago is removed.
    pub fn open(&self, id: &QuestionId, question: &QuestionFile) -> io::Result<()> {
        file::make_dir(&self.dir)?;
        self.check_dir()?;
        self.sweep();
        let is_new = self.create(&self.file(id, "json"), question)?;
        if is_new {
            Ok(())
        } else {
            Err(io::Error::from(ErrorKind::AlreadyExists))
        }
    }

    /// Every question that is not closed and whose hook still waits, oldest first. What cannot be read is not offered.
    pub fn open_questions(&self) -> Vec<(QuestionId, QuestionFile)> {
        let mut all = self.unclosed();
        all.retain(|(_, question)| question.awaited().is_some());
        all
    }

    /// The same with those whose hook is gone.
    pub fn unclosed(&self) -> Vec<(QuestionId, QuestionFile)> {
        let mut found: Vec<(QuestionId, QuestionFile)> = Vec::new();
        if self.check_dir().is_err() {
            return found;
        }
        // A day's closed questions are not read: every event of an agent may look here.
        let entries = fs_err::read_dir(&self.dir).into_iter().flatten().flatten();
        let names: HashSet<OsString> = entries.map(|entry| entry.file_name()).collect();
        for name in &names {
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(Ok(id)) = id.map(QuestionId::parse) else {
                continue;
            };
            if !names.contains(OsStr::new(&format!("{id}.answer")))
                && let Some(question) = self.question(&id)
                && self.closing(&id).is_none()
            {
                found.push((id, question));
            }
        }
        found.sort_by_key(|(_, question)| question.opened_at);
        found
    }

    /// A question by its id, closed or not.
    pub fn question(&self, id: &QuestionId) -> Option<QuestionFile> {
        let question: QuestionFile = self.read(&self.file(id, "json"))?;
        (question.id == id.as_str()).then_some(question)
    }

    /// What closed a question. A name that is taken by something unreadable closes it too.
    pub fn closing(&self, id: &QuestionId) -> Option<Closing> {
        let path = self.file(id, "answer");
        fs_err::symlink_metadata(&path).ok()?;
        let unreadable = || Closing::over("its answer cannot be read");
        Some(self.read(&path).unwrap_or_else(unreadable))
    }

    /// Closes a question; false if it was closed before.
    pub fn close(&self, id: &QuestionId, closing: &Closing) -> io::Result<bool> {
        self.check_dir()?;
        self.create(&self.file(id, "answer"), closing)
    }

    /// Takes a closed question one step further.
    pub fn mark(&self, id: &QuestionId, step: Step) -> io::Result<()> {
        file::create_private(&self.file(id, step.ending())).map(drop)
    }

    pub fn is_marked(&self, id: &QuestionId, step: Step) -> bool {
        let found = fs_err::symlink_metadata(self.file(id, step.ending()));
        found.is_ok_and(|found| found.is_file() && is_own(&found))
    }

    fn file(&self, id: &QuestionId, ending: &str) -> PathBuf {
        self.dir.join(format!("{id}.{ending}"))
    }

    /// Others could put questions and answers into a directory that is not ours alone.
    fn check_dir(&self) -> io::Result<()> {
        let found = fs_err::symlink_metadata(&self.dir)?;
        if found.is_dir() && is_own(&found) {
            return Ok(());
        }
        let why = format!("{} is not a private directory", self.dir.display());
        Err(io::Error::new(ErrorKind::PermissionDenied, why))
    }

    /// Gives a whole file its name; false if the name is taken.
    fn create(&self, path: &Path, content: &impl Serialize) -> io::Result<bool> {
        let bytes = serde_json::to_vec(content)?;
        let temporary = file::write_beside(path, &bytes)?;
        let linked = fs_err::hard_link(&temporary, path);
        fs_err::remove_file(&temporary)?;
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read<T: DeserializeOwned>(&self, path: &Path) -> Option<T> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut options = fs_err::OpenOptions::new();
        options.read(true);
        options.custom_flags(i32::try_from(flags.bits()).ok()?);
        let file = options.open(path).ok()?;
        let found = file.metadata().ok()?;
        if !found.is_file() || !is_own(&found) || found.len() > MAX_LENGTH {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MAX_LENGTH).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// What cannot be removed is tried again at the next question. After a clock jump one that is awaited may look old.
    fn sweep(&self) {
        let oldest = clock::wall().minus(KEPT_FOR);
        for entry in fs_err::read_dir(&self.dir).into_iter().flatten().flatten() {
            let is_old = |found: std::fs::Metadata| {
                let at = found.mtime().saturating_mul(1_000);
                found.is_file() && Timestamp(at) < oldest
            };
            let path = entry.path();
            let is_awaited =
                || (self.read::<QuestionFile>(&path)).is_some_and(|one| one.awaited().is_some());
            let is_over = entry.metadata().is_ok_and(is_old) && !is_awaited();
            if is_over && fs_err::remove_file(path).is_err() {
                return;
            }
        }
    }
}

impl QuestionFile {
    /// Its hook, if it still waits for an answer.
    pub fn awaited(&self) -> Option<ProcessWatch> {
        let is_gone = |hook: &ProcessWatch| hook.wait(Duration::ZERO).unwrap_or(true);
        ProcessWatch::open(&self.waiter).filter(|hook| !is_gone(hook))
    }
}

/// Whether it belongs to this user, and nobody else can read or write it.
fn is_own(found: &std::fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::Barrier;

    use tenure_core::id::HostId;
    use tenure_core::process::{BootId, StartTicks};

    use super::*;

    fn process(pid: u32) -> Process {
        Process {
            host: HostId::new("h"),
            boot: BootId {
                id: "b".into(),
                private: false,
            },
            pid_ns: 1,
            pid,
            start: StartTicks {
                ticks: 1,
                shifted: false,
            },
        }
    }

    fn question(id: &QuestionId) -> QuestionFile {
        QuestionFile {
            id: id.to_string(),
            session: "s".into(),
            native_id: None,
            agent: process(1),
            waiter: process(2),
            tool: "Bash".into(),
            kind: AskedKind::Permission,
            shown: vec!["ls".into()],
            dir: "/w".into(),
            opened_at: Timestamp(1),
            until: Timestamp(2),
        }
    }

    fn opened() -> (tempfile::TempDir, QuestionFiles, QuestionId) {
        let state = tempfile::tempdir().unwrap();
        let files = QuestionFiles::below(state.path());
        let id = QuestionId::mint([7; 16]);
        files.open(&id, &question(&id)).unwrap();
        (state, files, id)
    }

    fn answered(by: usize) -> Closing {
        Closing::Answered {
            answer: PersonsAnswer::Allow,
            by: by.to_string(),
            at: Timestamp(3),
        }
    }

    #[test]
    fn of_many_who_close_a_question_exactly_one_does() {
        for _ in 0..20 {
            let (_state, files, id) = opened();
            let begin = Barrier::new(8);
            let won: Vec<usize> = std::thread::scope(|scope| {
                let closers: Vec<_> = (0..8)
                    .map(|by| {
                        let (files, id, begin) = (&files, &id, &begin);
                        scope.spawn(move || {
                            begin.wait();
                            files.close(id, &answered(by)).unwrap().then_some(by)
                        })
                    })
                    .collect();
                let all = closers.into_iter().map(|closer| closer.join().unwrap());
                all.flatten().collect()
            });
            assert_eq!(won.len(), 1, "{won:?}");
            assert_eq!(files.closing(&id), Some(answered(won[0])));
        }
    }

    #[test]
    fn only_private_files_of_this_user_are_read_and_no_links() {
        let (_state, files, id) = opened();
        assert_eq!(files.question(&id), Some(question(&id)));
        let path = files.file(&id, "json");
        for mode in [0o640, 0o604, 0o620, 0o602] {
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(files.question(&id), None, "{mode:o}");
        }
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let elsewhere = files.dir().join("elsewhere");
        fs_err::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(files.question(&id), None, "a link");
        let other = QuestionId::mint([8; 16]);
        fs_err::rename(&elsewhere, files.file(&other, "json")).unwrap();
        assert_eq!(files.question(&other), None, "another question's");
    }

    /// Only root can give a file away.
    #[test]
    fn what_another_user_wrote_is_neither_a_question_nor_an_answer() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let give_away =
            |path: &Path| std::os::unix::fs::chown(path, Some(12_345), Some(12_345)).unwrap();
        let (_state, files, id) = opened();
        assert!(files.close(&id, &answered(1)).unwrap());
        files.mark(&id, Step::Recorded).unwrap();
        for ending in ["answer", "recorded", "json"] {
            give_away(&files.file(&id, ending));
        }
        assert!(matches!(files.closing(&id), Some(Closing::Over { .. })));
        assert!(!files.is_marked(&id, Step::Recorded));
        assert_eq!(files.question(&id), None);
        give_away(files.dir());
        assert!(files.close(&id, &answered(1)).is_err());
    }

    #[test]
    fn what_others_could_write_to_has_no_questions() {
        let (_state, files, id) = opened();
        assert_eq!(files.unclosed().len(), 1);
        fs_err::set_permissions(files.dir(), std::fs::Permissions::from_mode(0o770)).unwrap();
        assert!(files.unclosed().is_empty());
        assert!(files.close(&id, &answered(1)).is_err());
    }

    #[test]
    fn a_question_is_awaited_only_while_its_hook_runs_and_closed_by_an_unreadable_answer_too() {
        let (_state, files, id) = opened();
        assert!(files.open_questions().is_empty(), "no such process");
        symlink("/nowhere", files.file(&id, "answer")).unwrap();
        assert!(matches!(files.closing(&id), Some(Closing::Over { .. })));
        assert!(!files.close(&id, &answered(1)).unwrap());
    }

    #[test]
    fn old_files_are_removed_at_the_next_question() {
        let (_state, files, id) = opened();
        let path = files.file(&id, "json");
        let old = std::time::SystemTime::UNIX_EPOCH;
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        file.file().set_modified(old).unwrap();
        let other = QuestionId::mint([9; 16]);
        files.open(&other, &question(&other)).unwrap();
        assert!(files.question(&id).is_none() && files.question(&other).is_some());
    }
}
