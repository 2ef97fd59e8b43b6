//! The command that a dispatched agent runs under, and what is shown to the agent of this machine.
//!
//! Words of the command can name what one run needs: `{dir}` is the place that the agent works in, `{home}` its own
//! home directory, `{socket}` the socket that leads to its model, `{run}` the run. All of them have the same name
//! inside and outside. The agent's directory is set inside, because this user may not be able to enter it.
//!
//! *Invariant*: a home belongs to one place. What an agent leaves there reaches no other item.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the words of a wrap stand for.
#[derive(Debug, Clone, Copy)]
pub struct WrapWords<'a> {
    pub dir: &'a Path,
    pub socket: &'a Path,
    pub run: &'a str,
}

/// The words that a wrap may use.
pub const WORDS: [&str; 4] = ["{dir}", "{home}", "{socket}", "{run}"];

/// The user that owns a conversation under a wrap. It is nobody's number, so nothing outside looks for its files.
pub const USER: &str = "wrap";

/// The words of a wrap for one run.
pub fn words(wrap: &[String], shown: &WrapWords<'_>) -> Vec<OsString> {
    let home = home(shown.dir);
    let word = |word: &String| {
        let word = word
            .replace("{dir}", &shown.dir.to_string_lossy())
            .replace("{home}", &home.to_string_lossy())
            .replace("{socket}", &shown.socket.to_string_lossy())
            .replace("{run}", shown.run);
        OsString::from(word)
    };
    wrap.iter().map(word).collect()
}

/// The home of the agents of a place, beside it.
pub fn home(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".home");
    PathBuf::from(name)
}

/// Begins what is executed inside: the directory, then the command.
pub fn enter(dir: &Path) -> Vec<OsString> {
    let script = r#"mkdir -p "$HOME" && cd "$1" && shift && exec "$@""#;
    let mut words: Vec<OsString> = ["sh", "-c", script, "sh"].map(OsString::from).into();
    words.push(dir.into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrap_is_told_what_one_run_needs() {
        let wrap = [
            "bwrap", "--bind", "{dir}", "{dir}", "--bind", "{home}", "{home}", "-r={run}",
            "{socket}",
        ];
        let wrap = wrap.map(str::to_owned);
        let shown = WrapWords {
            dir: Path::new("/p/web/issue-6"),
            socket: Path::new("/s/s/r-1"),
            run: "r-1",
        };
        let expected = [
            "bwrap",
            "--bind",
            "/p/web/issue-6",
            "/p/web/issue-6",
            "--bind",
            "/p/web/issue-6.home",
            "/p/web/issue-6.home",
            "-r=r-1",
            "/s/s/r-1",
        ];
        assert_eq!(words(&wrap, &shown), expected);
    }
}
