//! The files that the commands of a shell line write.
//!
//! Pure. Only what the line plainly shows counts: a path with a variable or a pattern in it names no file here.

use crate::git_move::{GitCall, git_call};
use crate::shell_line::{ShellCommand, ShellWord, base_name};

/// A file that a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWrite {
    /// Relative to where the line runs, or absolute.
    pub path: String,
    /// If the path is a directory, the file of this name in it is written instead.
    pub name_below: Option<String>,
}

/// The files that the commands write, without duplicates.
pub fn shell_writes(commands: &[ShellCommand]) -> Vec<ShellWrite> {
    let mut found = Vec::new();
    for command in commands {
        let mut targets: Vec<WriteTarget> = command.redirects.iter().cloned().map(file).collect();
        targets.extend(by_program(command));
        let git = git_call(command);
        targets.extend(git.as_ref().map(by_git).unwrap_or_default());
        let at = git.as_ref().map_or(&command.at, |git| &git.at);
        for target in targets {
            let Some(path) = at.path(&target.path) else {
                continue;
            };
            let write = ShellWrite {
                path,
                name_below: target.name_below,
            };
            let is_file = !write.path.starts_with("/dev/") && target.path.text != ".";
            if is_file && !found.contains(&write) {
                found.push(write);
            }
        }
    }
    found
}

struct WriteTarget {
    path: ShellWord,
    name_below: Option<String>,
}

fn file(path: ShellWord) -> WriteTarget {
    WriteTarget {
        path,
        name_below: None,
    }
}

fn by_program(command: &ShellCommand) -> Vec<WriteTarget> {
    let arguments = command.words.get(1..).unwrap_or_default();
    let files = |words: Vec<&ShellWord>| words.into_iter().cloned().map(file).collect();
    match command.program() {
        "tee" | "rm" => files(operands(arguments, &[])),
        "cp" => copied(arguments),
        "mv" => {
            let mut moved = sources(arguments);
            moved.extend(copied(arguments));
            moved
        }
        "sed" => files(edited(arguments)),
        "dd" => {
            let out = arguments.iter().filter_map(|word| {
                let text = word.text.strip_prefix("of=")?.to_owned();
                Some(ShellWord {
                    text,
                    is_plain: word.is_plain,
                })
            });
            out.map(file).collect()
        }
        _ => Vec::new(),
    }
}

/// The arguments that are neither options nor the values of these options.
fn operands<'a>(arguments: &'a [ShellWord], with_value: &[&str]) -> Vec<&'a ShellWord> {
    let mut found = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "--" => {
                found.extend(words);
                break;
            }
            option if with_value.contains(&option) => drop(words.next()),
            option if option.starts_with('-') && option.len() > 1 => {}
            _ => found.push(word),
        }
    }
    found
}

const TARGET: &[&str] = &["-t", "--target-directory"];

/// The directory of `-t`.
fn target_directory(arguments: &[ShellWord]) -> Option<ShellWord> {
    let at = arguments
        .iter()
        .position(|word| TARGET.contains(&word.text.as_str()));
    if let Some(at) = at {
        return arguments.get(at + 1).cloned();
    }
    arguments.iter().find_map(|word| {
        let text = word.text.strip_prefix("--target-directory=")?.to_owned();
        Some(ShellWord {
            text,
            is_plain: word.is_plain,
        })
    })
}

/// What `cp` and `mv` read.
fn sources(arguments: &[ShellWord]) -> Vec<WriteTarget> {
    let mut found = operands(arguments, TARGET);
    if target_directory(arguments).is_none() {
        found.pop();
    }
    found.into_iter().cloned().map(file).collect()
}

/// What `cp` and `mv` write.
fn copied(arguments: &[ShellWord]) -> Vec<WriteTarget> {
    let sources = sources(arguments);
    let last = || operands(arguments, TARGET).pop().cloned();
    let to = target_directory(arguments).or_else(last);
    let below = |source: &WriteTarget| {
        Some(WriteTarget {
            path: to.clone()?,
            name_below: Some(base_name(&source.path.text).to_owned())
                .filter(|_| source.path.is_plain),
        })
    };
    sources.iter().filter_map(below).collect()
}

/// The files that `sed` edits in place.
fn edited(arguments: &[ShellWord]) -> Vec<&ShellWord> {
    let mut in_place = false;
    let mut has_script = false;
    let mut files = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if text == "--" {
            files.extend(words);
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            in_place |= long.starts_with("in-place");
            has_script |= long.starts_with("expression=") || long.starts_with("file=");
            continue;
        }
        let Some(letters) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            files.push(word);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'i' => {
                    in_place = true;
                    break;
                }
                'e' | 'f' | 'l' => {
                    has_script |= letter != 'l';
                    if at + 1 == letters.len() {
                        words.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    files.retain(|word| !word.text.is_empty());
    if !in_place {
        return Vec::new();
    }
    files.split_off(usize::from(!has_script).min(files.len()))
}

fn by_git(git: &GitCall) -> Vec<WriteTarget> {
    let has = |names: &[&str]| {
        git.arguments
            .iter()
            .any(|word| names.contains(&word.text.as_str()))
    };
    let mut found: Vec<WriteTarget> = match git.verb.as_str() {
        "checkout" => {
            let after = git.arguments.iter().skip_while(|word| word.text != "--");
            after.skip(1).cloned().map(file).collect()
        }
        "restore" if has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]) => Vec::new(),
        "rm" if has(&["--cached", "-n", "--dry-run"]) => Vec::new(),
        "restore" | "rm" => {
            let files = operands(&git.arguments, &["-s", "--source"]);
            files.into_iter().cloned().map(file).collect()
        }
        "mv" => {
            let mut moved = sources(&git.arguments);
            moved.extend(copied(&git.arguments));
            moved
        }
        _ => Vec::new(),
    };
    // `:/x` and `:!x` are patterns.
    found.retain(|target| !target.path.text.starts_with(':'));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell_line::commands;

    /// A line and the files that it writes; `d/?f` is f if d is a directory, else d.
    const TABLE: &[(&str, &[&str])] = &[
        ("echo x > f", &["f"]),
        ("echo x >>f 2>/dev/null", &["f"]),
        ("make > build.log 2>&1", &["build.log"]),
        ("make &> 'build log'", &["build log"]),
        ("cat > src/a.rs <<'EOF'\nrm b > c (\nEOF", &["src/a.rs"]),
        ("cat <<EOF > f\nx\nEOF\necho y >| g", &["f", "g"]),
        ("ls | tee -a f g", &["f", "g"]),
        ("cp a b", &["b/?a"]),
        ("cp -r x/a y/b d/", &["d//?a", "d//?b"]),
        ("cp -t d a", &["d/?a"]),
        ("mv x/a b", &["x/a", "b/?a"]),
        ("rm -rf 'a b' c\\ d", &["a b", "c d"]),
        ("sed -i 's/a/b/' f", &["f"]),
        ("sed -Ei.bak -e s/a/b/ f g", &["f", "g"]),
        ("sed -n 1,3p f", &[]),
        ("dd if=a of=b bs=1", &["b"]),
        ("git checkout HEAD~1 -- f", &["f"]),
        ("git -C web restore f", &["web/f"]),
        ("git rm -q f", &["f"]),
        ("git rm --cached f", &[]),
        ("git mv a b", &["a", "b/?a"]),
        ("make && rm f; sudo rm g || rm -- -h", &["f", "g", "-h"]),
        ("sh -c 'cd d && echo x > f'; rm g", &["d/f", "g"]),
        ("bash -lc \"sed -i s/a/b/ f\"", &["f"]),
        ("eval 'rm f'", &["f"]),
        ("x=`echo y > f`; echo \"$(rm g)\"", &["f", "g"]),
        ("cd d && rm f && cd e && rm g", &["d/f", "d/e/g"]),
        ("(cd d; rm f); rm g", &["d/f", "g"]),
        ("cd \"$D\" && rm f /g", &["/g"]),
        ("cd - && rm f", &[]),
        ("for f in a b; do rm $f; done > log", &["log"]),
        (
            "if [[ -f a && -f b ]]; then rm a; else rm b; fi",
            &["a", "b"],
        ),
        ("tee f <<< x; diff <(cat a) <(tee g)", &["f", "g"]),
        ("rm *.o ~/x {a,b} $F build/", &["build/"]),
        ("rm \"a*\" 'b$c'", &["a*", "b$c"]),
        ("echo 'rm f > g' # > h", &[]),
        ("f() { rm x; }", &[]),
        ("rm f; a=(1 2)", &["f"]),
        ("echo 'unfinished > f", &[]),
        ("git stash && git reset --hard && git commit -m '> f'", &[]),
    ];

    #[test]
    fn a_line_shows_the_files_that_it_writes() {
        for (line, expected) in TABLE {
            let found = shell_writes(&commands(line)).into_iter();
            let found = found.map(|write| match write.name_below {
                Some(name) => format!("{}/?{name}", write.path),
                None => write.path,
            });
            assert_eq!(found.collect::<Vec<_>>(), *expected, "{line}");
        }
    }
}
