//! An agent that follows a script: shell lines, which tenure runs as an agent from the settings.
//!
//! It is started as `sh SCRIPT fresh`, or `sh SCRIPT resume ID` to resume; its prompt is on
//! standard input. It writes JSON lines. A line with `session_id` names its conversation, one with
//! `result` is its final event of success, and one with `error` is an error. The lines can use the
//! functions in [`PRELUDE`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::env::Env;

/// Functions for the lines of a script.
///
/// `init [ID]` names the conversation: the resumed one, or else `c-1`. `done [TEXT]` reports
/// success. `hold FILE` waits as long as the file exists; dropping the environment removes it.
/// `ready FILE` reports that the script reached this point.
const PRELUDE: &str = r#"
mode=$1
id=${2:-c-1}
say() { printf '%s\n' "$1"; }
init() { id=${1:-$id}; say "{\"type\":\"init\",\"session_id\":\"$id\"}"; }
work() { say "{\"type\":\"work\",\"text\":\"${1:-working}\"}"; }
done_() { say "{\"type\":\"result\",\"result\":\"${1:-well done}\"}"; }
hold() { while [ -e "$1" ]; do sleep 0.02; done; }
ready() { : >"$1"; }
"#;

/// An agent of this name, described in the settings of an environment.
#[derive(Debug)]
pub struct Scripted {
    script: PathBuf,
    dir: PathBuf,
}

impl Scripted {
    /// Defines the agent. `lines` may use `$mode`, `$id`, the functions above, and `$dir` for its
    /// own files.
    pub fn new(env: &Env, name: &str, lines: &str) -> Scripted {
        let dir = env.dir().join(format!("scripted-{name}"));
        std::fs::create_dir_all(&dir).expect("the environment's directory is writable");
        let scripted = Scripted {
            script: dir.join("script.sh"),
            dir,
        };
        scripted.does(lines);
        let settings = env.home().join(".config/tenure");
        std::fs::create_dir_all(&settings).expect("the home is writable");
        let file = settings.join("config.toml");
        let mut text = std::fs::read_to_string(&file).unwrap_or_default();
        let script = scripted.script.to_str().expect("paths of tests are text");
        writeln!(
            text,
            "[agents.{name}]\n\
             command = [\"sh\", {script:?}, \"fresh\"]\n\
             resume = [\"sh\", {script:?}, \"resume\", \"{{id}}\"]\n\
             id = \"/session_id\"\n\
             done = \"/result\"\n\
             unknown = \"no such conversation\"\n\
             unusable = \"context too long\"\n"
        )
        .expect("text grows");
        std::fs::write(&file, text).expect("the home is writable");
        scripted
    }

    /// Replaces its script.
    pub fn does(&self, lines: &str) {
        let dir = self.dir.to_str().expect("paths of tests are text");
        let text = format!("dir={dir}\n{PRELUDE}\n{lines}\n");
        std::fs::write(&self.script, text).expect("the environment's directory is writable");
    }

    /// One of its own files, `$dir/NAME` in its lines.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The content of one of its own files.
    pub fn wrote(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.file(name)).ok()
    }

    /// The content of one of its own files, once it ends with a line: a file that a shell writes
    /// exists, empty, before its content.
    pub fn line(&self, name: &str) -> Option<String> {
        self.wrote(name).filter(|text| text.ends_with('\n'))
    }

    /// Creates a file that its lines can `hold`.
    pub fn keep(&self, name: &str) -> PathBuf {
        let file = self.file(name);
        std::fs::write(&file, "").expect("the environment's directory is writable");
        file
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
