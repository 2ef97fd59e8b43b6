//! Git commands in a shell line that move the files of a worktree.
//!
//! Pure, and not a shell: quotes, `;`, `&`, `|`, brackets, `cd` and here-documents are parsed as far as people
//! and agents use them. A script, an alias or a variable can hide a command. Only what is plainly visible is
//! found, and an unknown directory yields no finding.

/// A git command that changes the files of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitMove {
    /// How it was called, such as `git stash`.
    pub command: String,
    /// Where it works, relative to where the line runs; none for right there.
    pub dir: Option<String>,
}

/// Finds a command in a shell line that moves a worktree's files.
pub fn git_move(line: &str) -> Option<GitMove> {
    if !line.contains("git") {
        return None;
    }
    let mut at = Directory::Here;
    let mut outside = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for token in tokens(&without_documents(line)) {
        let end = match token {
            Token::Word(word) => {
                words.push(word);
                continue;
            }
            Token::End(end) => end,
        };
        let command = std::mem::take(&mut words);
        if let Some(found) = moved_by(&command, &at) {
            return Some(found);
        }
        if let [verb, rest @ ..] = command.as_slice()
            && verb == "cd"
        {
            let named = rest.iter().find(|word| !word.starts_with('-'));
            at = at.then(named.map_or("~", String::as_str));
        }
        match end {
            '(' => outside.push(at.clone()),
            ')' => at = outside.pop().unwrap_or(at),
            _ => {}
        }
    }
    None
}

/// A directory, as far as the line shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Directory {
    Here,
    At(String),
    Untold,
}

impl Directory {
    fn then(&self, named: &str) -> Directory {
        let plain = !named.contains(['$', '`', '*', '?']) && !named.starts_with(['~', '-']);
        match (self, plain) {
            (_, false) => Directory::Untold,
            (_, true) if named.starts_with('/') => Directory::At(named.to_owned()),
            (Directory::Here, true) => Directory::At(named.to_owned()),
            (Directory::At(before), true) => Directory::At(format!("{before}/{named}")),
            (Directory::Untold, true) => Directory::Untold,
        }
    }
}

fn moved_by(words: &[String], at: &Directory) -> Option<GitMove> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_git = |word: &&str| *word == "git" || word.ends_with("/git");
    let git = words.iter().position(is_git)?;
    let goes_before = |word: &&str| {
        word.contains('=')
            || matches!(
                *word,
                "sudo"
                    | "env"
                    | "command"
                    | "time"
                    | "exec"
                    | "if"
                    | "then"
                    | "do"
                    | "else"
                    | "!"
                    | "{"
            )
    };
    if !words[..git].iter().all(goes_before) {
        return None;
    }
    let mut at = at.clone();
    let mut rest = words[git + 1..].iter();
    let verb = loop {
        match *rest.next()? {
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
            verb => break verb,
        }
    };
    let arguments: Vec<&str> = rest.copied().collect();
    if !moves_files(verb, &arguments) {
        return None;
    }
    Some(GitMove {
        command: format!("git {verb}"),
        dir: match at {
            Directory::Here => None,
            Directory::At(dir) => Some(dir),
            Directory::Untold => return None,
        },
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

enum Token {
    Word(String),
    /// What ended a command.
    End(char),
}

fn tokens(line: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let quoted = word.get_or_insert_default();
                while let Some(inner) = chars.next().filter(|inner| *inner != c) {
                    match inner {
                        '\\' if c == '"' => quoted.extend(chars.next()),
                        _ => quoted.push(inner),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            ' ' | '\t' => found.extend(word.take().map(Token::Word)),
            '\n' | ';' | '|' | '&' | '(' | ')' => {
                found.extend(word.take().map(Token::Word));
                found.push(Token::End(c));
            }
            '#' if word.is_none() => {
                let in_comment = |c: &char| *c != '\n';
                chars.by_ref().take_while(in_comment).for_each(drop);
                found.push(Token::End('\n'));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word.map(Token::Word));
    found.push(Token::End('\n'));
    found
}

/// The line without here-documents (`<<WORD`).
fn without_documents(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut until: Option<String> = None;
    for text in line.lines() {
        if let Some(end) = &until {
            if text.trim_start_matches('\t') == end {
                until = None;
            }
            continue;
        }
        kept.push_str(text);
        kept.push('\n');
        until = document_end(text);
    }
    kept
}

fn document_end(text: &str) -> Option<String> {
    let (before, after) = text.split_once("<<")?;
    // `<<<` passes a word, and a shifted number is not a document.
    if after.starts_with('<') || before.ends_with("((") {
        return None;
    }
    let word = after.trim_start_matches('-').trim_start();
    let end: String = word
        .trim_start_matches(['\'', '"', '\\'])
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!end.is_empty()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn moves(line: &str, command: &str, dir: Option<&str>) {
        let found = git_move(line).unwrap_or_else(|| panic!("{line}"));
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
            assert_eq!(git_move(line), None, "{line}");
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
            assert_eq!(git_move(line), None, "{line}");
        }
    }
}
