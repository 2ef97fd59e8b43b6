//! The program that a run starts: the real one, not the script that starts it.
//!
//! A script between the runner and the agent hides the agent's process: signals end the script, but
//! the agent continues. If the agent's row knows the way from its script to its program, that
//! program is started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use tenure_service::answer::Problem;

use tenure_app::supervise::cannot_run;
use tenure_app::unfinished::Unfinished;

/// Resolves the program of a command, its first word: on `path`, or relative to `dir` if it is a
/// path.
pub(super) fn resolve(
    words: &mut [OsString],
    path: Option<&OsStr>,
    dir: &Path,
    below_script: &[&str],
) -> Result<(), Unfinished> {
    let Some(first) = words.first_mut() else {
        // The settings refuse an agent without a command.
        return Ok(());
    };
    let found = find(first, path, dir).map_err(|error| cannot_run(first, &error))?;
    *first = behind_script(&found, below_script)
        .unwrap_or(found)
        .into_os_string();
    Ok(())
}

/// Whether a run in this directory could start a program.
pub fn can_start(program: &str, dir: &Path) -> Result<(), Problem> {
    let program = OsStr::new(program);
    let path = tenure_host::env::var("PATH");
    match find(program, path.as_deref(), dir) {
        Ok(_) => Ok(()),
        Err(error) => Err(cannot_run(program, &error).problem),
    }
}

fn find(program: &OsStr, path: Option<&OsStr>, dir: &Path) -> io::Result<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        let whole = dir.join(program);
        return executable(&whole).map(|()| whole);
    }
    let mut denied = None;
    let named = path.map(|path| path.as_bytes()).unwrap_or_default();
    for part in named.split(|byte| *byte == b':') {
        let whole = dir.join(OsStr::from_bytes(part)).join(program);
        match executable(&whole) {
            Ok(()) => return Ok(whole),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied = Some(error),
            Err(_) => {}
        }
    }
    Err(denied.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

fn executable(path: &Path) -> io::Result<()> {
    let found = fs_err::metadata(path)?;
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    if !found.is_file() {
        return Err(denied());
    }
    access(path, Access::EXEC_OK).map_err(|_| denied())
}

/// The program that a script starts, by patterns relative to the script's directory.
fn behind_script(script: &Path, patterns: &[&str]) -> Option<PathBuf> {
    if patterns.is_empty() {
        return None;
    }
    let script = fs_err::canonicalize(script).ok()?;
    let start = tenure_host::read::start(&script, 2).ok()?;
    if start != b"#!" {
        return None;
    }
    let dir = script.parent()?;
    patterns.iter().find_map(|pattern| matching(dir, pattern))
}

/// The first executable file that matches a pattern; `*` is any one name, or the rest of one.
fn matching(dir: &Path, pattern: &str) -> Option<PathBuf> {
    let mut open = vec![dir.to_owned()];
    for part in pattern.split('/') {
        let mut next = Vec::new();
        for at in open {
            match part {
                "." | "" => next.push(at),
                ".." => next.extend(at.parent().map(Path::to_owned)),
                any if any.ends_with('*') => {
                    let begin = any.trim_end_matches('*').as_bytes();
                    let entries = fs_err::read_dir(&at).into_iter().flatten().flatten();
                    let fits =
                        entries.filter(|entry| entry.file_name().as_bytes().starts_with(begin));
                    next.extend(fits.map(|entry| entry.path()));
                }
                name => next.push(at.join(name)),
            }
        }
        next.sort();
        open = next;
    }
    open.into_iter().find(|file| executable(file).is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use tenure_app::unfinished::By;

    fn program(path: &Path, text: &str) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
        fs_err::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn resolved(word: &str, path: &Path, below: &[&str]) -> Result<PathBuf, By> {
        let mut words = [OsString::from(word)];
        let done = resolve(&mut words, Some(path.as_os_str()), Path::new("/"), below);
        done.map(|()| PathBuf::from(&words[0]))
            .map_err(|failed| failed.by)
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        program(&bin.join("mine"), "#!/bin/sh\n");
        fs_err::write(bin.join("text"), "").unwrap();
        fs_err::set_permissions(bin.join("text"), PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(resolved("mine", &bin, &[]), Ok(bin.join("mine")));
        let named = bin.join("mine");
        assert_eq!(resolved(named.to_str().unwrap(), &bin, &[]), Ok(named));
        assert_eq!(resolved("none", &bin, &[]), Err(By::MissingProgram));
        if !rustix::process::geteuid().is_root() {
            assert_eq!(resolved("text", &bin, &[]), Err(By::UnusableProgram));
        }
        assert_eq!(resolved("bin", dir.path(), &[]), Err(By::UnusableProgram));
    }

    #[test]
    fn the_real_program_is_started_and_not_its_script() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(dir.path()).unwrap();
        let (bin, package) = (root.join("bin"), root.join("lib/node_modules/agent"));
        program(&package.join("bin/agent.js"), "#!/usr/bin/env node\n");
        let real = package.join("vendor/x86_64/agent");
        program(&real, "\u{7f}ELF");
        fs_err::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(package.join("bin/agent.js"), bin.join("agent")).unwrap();
        let below = ["../vendor/*/agent"];
        assert_eq!(resolved("agent", &bin, &below), Ok(real.clone()));
        let by_platform = root.join("lib/node_modules/agent-linux-x64/bin/agent");
        program(&by_platform, "\u{7f}ELF");
        let beside = ["../../agent-linux-*/bin/agent"];
        assert_eq!(resolved("agent", &bin, &beside), Ok(by_platform));
        // If PATH has the program itself, it is started directly.
        let direct = real.parent().unwrap();
        assert_eq!(resolved("agent", direct, &below), Ok(real.clone()));
        fs_err::remove_file(real).unwrap();
        assert_eq!(resolved("agent", &bin, &below), Ok(bin.join("agent")));
    }
}
