//! Running a command in a place, under its wrap.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tenure_core::text;
use tenure_host::piped::{Input, Piped, ProcessOutput};
use tenure_host::{clock, env, file};

use super::Place;

/// How long an answer or a removal may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much of what a place printed is shown.
const SHOWN: usize = 500;

/// What the wrap's command gets from our environment. A wrap makes the rest.
const PASSED: &[&str] = &["HOME", "LANG", "LOGNAME", "PATH", "USER", "XDG_RUNTIME_DIR"];

/// Begins every script: quiet, without the programs that hooks and monitors are, and in no repository but the place's
/// own. Code under a wrap can ignore all of it; it keeps an agent that works as the user from taking another
/// repository along by accident.
const BEGIN: &str = r#"umask 077
export LC_ALL=C GIT_TERMINAL_PROMPT=0 GIT_ASKPASS= GIT_LFS_SKIP_SMUDGE=1 GIT_NO_LAZY_FETCH=1 GIT_CEILING_DIRECTORIES="${1%/*}"
g() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c gc.auto=0 -c maintenance.auto=false "$@"; }
enter() { cd "$1" && [ -d .git ] && for f in .git .git/objects .git/refs; do [ ! -L $f ] || return 1; done &&
    for f in .git/commondir .git/objects/info/alternates; do [ ! -e $f ] || return 1; done; }
"#;

/// Whether it has work that no commit of HEAD has: changed and untracked files, other branches, stashes.
const HAS_MORE: &str = r#"enter "$1" || exit 1
s=$(g status --porcelain --ignore-submodules=none) || exit 1
r=$(g for-each-ref --no-merged=HEAD refs/heads refs/stash) || exit 1
if [ -n "$s$r" ]; then echo yes; else echo no; fi"#;

/// The directory itself may be a mount, which stays, empty.
const REMOVE: &str = r#"cd / && [ -e "$2" ] || exit 0
chmod -R u+rwx -- "$2" 2>/dev/null; rm -rf -- "$2" 2>/dev/null
[ ! -e "$2" ] || [ -z "$(ls -A -- "$2")" ]"#;

const MOVE: &str = r#"cd / && [ ! -e "$2" ] && mv -- "$1" "$2""#;

/// An answer of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceAnswer {
    Yes,
    No,
    /// It said neither.
    CannotTell(String),
}

/// Why a command in a place did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum Unreached {
    #[error("its wrap cannot be started: {0}")]
    NotStarted(io::Error),
    #[error("it did not answer in time")]
    Late,
    #[error("{}", told(.said, .code))]
    Failed {
        code: Option<i32>,
        /// Text from outside, one line.
        said: String,
    },
    #[error(transparent)]
    Io(io::Error),
}

fn told(said: &str, code: &Option<i32>) -> String {
    match (said.is_empty(), code) {
        (false, _) => said.to_owned(),
        (true, Some(code)) => format!("it ended with exit code {code}"),
        (true, None) => "it was killed".to_owned(),
    }
}

impl Unreached {
    pub(super) fn of(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Late,
            _ => Self::Io(error),
        }
    }

    pub(super) fn failed(ended: &ProcessOutput) -> Self {
        Self::Failed {
            code: ended.status.code(),
            said: outside(&ended.errors),
        }
    }
}

/// What a place printed, as one line that can be shown.
pub(super) fn outside(bytes: &[u8]) -> String {
    let said = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let cause = lines.iter().find(|line| line.starts_with("fatal:"));
    let line = text::line(cause.or(lines.last()).copied().unwrap_or_default());
    text::clipped(&line, SHOWN)
}

pub(super) fn within(span: Duration) -> Instant {
    clock::instant() + span
}

impl Place {
    /// Starts a script of ours in the place. Its first argument is always the directory.
    pub(super) fn start(
        &self,
        script: &str,
        arguments: &[&str],
        input: Input,
    ) -> Result<Piped, Unreached> {
        let script = format!("{BEGIN}{script}");
        let mut words = self.wrap.iter();
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg("sh");
                command
            }
            None => Command::new("sh"),
        };
        command.args(["-c", &script, "sh"]).arg(&self.dir);
        command.args(arguments).current_dir("/").env_clear();
        command.envs(
            PASSED
                .iter()
                .filter_map(|name| Some((name, env::var(name)?))),
        );
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        Piped::start(&mut command, input).map_err(Unreached::NotStarted)
    }

    /// Runs a script and returns the beginning of its output.
    fn run(&self, script: &str, arguments: &[&str]) -> Result<Vec<u8>, Unreached> {
        let piped = self.start(script, arguments, Input::Nothing)?;
        let ended = piped.finish(within(PATIENCE)).map_err(Unreached::of)?;
        if !ended.status.success() {
            return Err(Unreached::failed(&ended));
        }
        Ok(ended.output)
    }

    /// Asks a question by a script that answers `yes` or `no` and succeeds; anything else is no answer.
    pub fn ask(&self, script: &str, arguments: &[&str]) -> PlaceAnswer {
        match self.run(script, arguments) {
            Ok(said) if said == b"yes\n" => PlaceAnswer::Yes,
            Ok(said) if said == b"no\n" => PlaceAnswer::No,
            Ok(_) => PlaceAnswer::CannotTell("its answer is neither yes nor no".to_owned()),
            Err(error) => PlaceAnswer::CannotTell(error.to_string()),
        }
    }

    /// Asks whether it has work that its last commit does not have.
    pub fn has_more(&self) -> PlaceAnswer {
        self.ask(HAS_MORE, &[])
    }

    /// Makes sure that the wrap finds its directory.
    pub(super) fn prepare(&self) -> io::Result<()> {
        if self.is_theirs {
            return Ok(());
        }
        file::make_dirs(&self.dir)?;
        self.home.as_deref().map_or(Ok(()), file::make_dirs)
    }

    /// Removes everything in it, and the directory. Its home stays: [`Self::remove_with_home`].
    pub fn remove(&self) -> Result<(), Unreached> {
        self.remove_dirs(&[&self.dir])
    }

    /// The same, with the home and what the agents kept there.
    pub fn remove_with_home(&self) -> Result<(), Unreached> {
        let home = self.home.as_ref();
        self.remove_dirs(&std::iter::once(&self.dir).chain(home).collect::<Vec<_>>())
    }

    fn remove_dirs(&self, dirs: &[&PathBuf]) -> Result<(), Unreached> {
        if !self.is_theirs && !dirs.iter().any(|dir| is_there(dir)) {
            return Ok(());
        }
        self.prepare().map_err(Unreached::Io)?;
        for dir in dirs {
            self.run(REMOVE, &[&dir.to_string_lossy()])?;
        }
        for dir in dirs.iter().filter(|_| !self.is_theirs) {
            match fs_err::remove_dir(dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Unreached::Io(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives it another directory beside its own, where nothing is yet. Its content is not touched.
    pub fn move_to(&self, aside: &Path) -> Result<(), Unreached> {
        if self.is_theirs {
            return self.run(MOVE, &[&aside.to_string_lossy()]).map(|_| ());
        }
        if is_there(aside) {
            return Err(Unreached::Io(io::ErrorKind::AlreadyExists.into()));
        }
        fs_err::rename(&self.dir, aside).map_err(Unreached::Io)
    }
}

fn is_there(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok()
}
