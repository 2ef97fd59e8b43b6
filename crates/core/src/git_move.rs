//! Git commands in a shell line that move the files of a worktree.
//!
//! Pure. Only what the line plainly shows is found, and an unknown directory yields no finding.

use serde::{Deserialize, Serialize};

use crate::shell_line::{Directory, ShellCommand, ShellWord};

/// A git command that changes the files of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitMove {
    /// How it was called, such as `git stash`.
    pub command: String,
    /// Where it works, relative to where the line runs; none for right there.
    pub dir: Option<String>,
}

/// The first of the commands that moves a worktree's files.
pub fn git_move(commands: &[ShellCommand]) -> Option<GitMove> {
    commands.iter().filter_map(git_call).find_map(|git| {
        let arguments: Vec<&str> = git
            .arguments
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        if !moves_files(&git.verb, &arguments) {
            return None;
        }
        Some(GitMove {
            command: format!("git {}", git.verb),
            dir: match git.at {
                Directory::Here => None,
                Directory::At(dir) => Some(dir),
                Directory::Untold => return None,
            },
        })
    })
}

/// A call of git.
pub(crate) struct GitCall {
    pub(crate) verb: String,
    pub(crate) arguments: Vec<ShellWord>,
    /// Where it works.
    pub(crate) at: Directory,
}

/// The call of git that a command is.
pub(crate) fn git_call(command: &ShellCommand) -> Option<GitCall> {
    if command.program() != "git" {
        return None;
    }
    let mut at = command.at.clone();
    let mut rest = command.words[1..].iter();
    let verb = loop {
        let word = rest.next()?;
        match word.text.as_str() {
            "-C" => at = at.then(rest.next()?),
            "-c" => drop(rest.next()),
            "--git-dir" | "--work-tree" => {
                rest.next();
                at = Directory::Untold;
            }
            flag if flag.starts_with("--git-dir=") || flag.starts_with("--work-tree=") => {
                at = Directory::Untold;
            }
            flag if flag.starts_with('-') => {}
            verb => break verb.to_owned(),
        }
    };
    Some(GitCall {
        verb,
        arguments: rest.cloned().collect(),
        at,
    })
}

fn moves_files(verb: &str, arguments: &[&str]) -> bool {
    let has = |names: &[&str]| arguments.iter().any(|word| names.contains(word));
    if has(&["-h", "--help"]) {
        return false;
    }
    match verb {
        "stash" => !matches!(
            arguments.first().copied().unwrap_or_default(),
            "list" | "show" | "create" | "store" | "drop" | "clear"
        ),
        "checkout" | "switch" | "merge" | "rebase" | "pull" | "cherry-pick" | "revert" | "am" => {
            true
        }
        // Only the index is restored.
        "restore" => !has(&["--staged", "-S"]) || has(&["--worktree", "-W"]),
        "reset" => has(&["--hard", "--merge", "--keep"]),
        "clean" => !arguments.iter().any(|word| {
            let short = word.starts_with('-') && !word.starts_with("--");
            *word == "--dry-run" || (short && word.contains('n'))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell_line::commands;

    #[track_caller]
    fn moves(line: &str, command: &str, dir: Option<&str>) {
        let found = git_move(&commands(line)).unwrap_or_else(|| panic!("{line}"));
        let seen = (found.command.as_str(), found.dir.as_deref());
        assert_eq!(seen, (command, dir), "{line}");
    }

    #[test]
    fn commands_that_move_files_are_seen() {
        for (line, command) in [
            ("git stash", "git stash"),
            ("make && git checkout -- .", "git checkout"),
            ("make; /usr/bin/git clean -fd", "git clean"),
            ("GIT_PAGER=cat git switch main", "git switch"),
            ("git -c core.x=1 stash pop", "git stash"),
            ("if true; then git restore a; fi", "git restore"),
            ("git status\ngit reset --hard", "git reset"),
            ("git add . # all\ngit pull", "git pull"),
            ("cat <<EOF\nx\nEOF\ngit rebase main", "git rebase"),
            ("git restore --staged --worktree a", "git restore"),
            ("git \\\n  stash", "git stash"),
        ] {
            moves(line, command, None);
        }
    }

    #[test]
    fn other_commands_and_text_about_them_are_not() {
        for line in [
            "git status",
            "git stash list",
            "git reset --soft HEAD~1",
            "git reset HEAD -- a",
            "git restore --staged a",
            "git clean -nd",
            "echo git stash",
            "git log --grep 'git stash'",
            "git commit -m 'tidy; git stash'",
            "git commit -m \"after (git stash) and \\\" git pull\"",
            "git commit -m checkout",
            "cat >notes.md <<'EOF'\ngit stash\nEOF",
            "make # then git stash",
            "legit stash",
            "",
        ] {
            assert_eq!(git_move(&commands(line)), None, "{line}");
        }
    }

    #[test]
    fn where_it_works_is_told_where_the_line_tells() {
        moves(
            "git -C ../web reset --hard HEAD~1",
            "git reset",
            Some("../web"),
        );
        moves("cd web && git stash", "git stash", Some("web"));
        moves(
            "cd '/a b'; cd c; git -C d stash",
            "git stash",
            Some("/a b/c/d"),
        );
        moves("(cd web && make); git stash", "git stash", None);
        for line in [
            "cd $DIR && git stash",
            "cd ~/x && git stash",
            "cd - && git stash",
            "git --work-tree=/x checkout .",
        ] {
            assert_eq!(git_move(&commands(line)), None, "{line}");
        }
    }
}
