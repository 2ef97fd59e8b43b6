//! Settings and the files of the state directory: readable by their owner alone, owned by this user, with room.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tenure_app::settings::user_dir;
use tenure_host::env;
use tenure_service::answer::Problem;

use crate::code::Code;
use crate::finding::{Finding, Found, Repair, several};
use crate::patient::Patient;

/// Less room than this is soon none.
const LITTLE_ROOM: u64 = 64 << 20;
/// How deep below the state directory files are looked at.
const DEPTH: usize = 4;
/// How many names a finding lists.
const NAMED: usize = 8;

pub fn settings(patient: &mut Patient) -> Found {
    let problem = patient.settings.as_ref().err();
    Ok(problem.map(unreadable).into_iter().collect())
}

fn unreadable(problem: &Problem) -> Finding {
    Finding::error(
        Code::SettingsUnreadable,
        "the settings cannot be read, so nothing works",
    )
    .seen(&problem.message)
    .advise("correct that file; `tenure config` lists the settings")
}

pub fn ignored(patient: &mut Patient) -> Found {
    let Ok((settings, _)) = &patient.settings else {
        return Ok(Vec::new());
    };
    let ignored = settings.ignored.iter().map(|one| {
        Finding::warning(
            Code::SettingIgnored,
            format!("the setting {} in {} is ignored", one.key, one.file),
        )
        .seen(&one.why)
        .advise("remove it, or move it to your own config.toml")
    });
    Ok(ignored.collect())
}

/// A settings file that others can write can name commands that run as this user.
pub fn settings_modes(_: &mut Patient) -> Found {
    let dir = user_dir(&env::var);
    let files = dir
        .into_iter()
        .flat_map(|dir| ["config.toml", "dispatch.toml"].map(|name| dir.join(name)));
    Ok(files
        .filter_map(|file| {
            let mode = mode_of(&file)?;
            (mode & 0o022 != 0).then(|| {
                Finding::error(
                    Code::SettingsWritable,
                    format!(
                        "others can write {}, which can name commands",
                        file.display()
                    ),
                )
                .seen(format!("its mode is {mode:04o}"))
                .repaired_by(Repair::Mode(vec![(file, mode & !0o022)]))
            })
        })
        .collect())
}

fn mode_of(path: &Path) -> Option<u32> {
    let found = fs_err::symlink_metadata(path).ok()?;
    (!found.is_symlink()).then(|| found.mode() & 0o7777)
}

pub fn state_directory(patient: &mut Patient) -> Found {
    let dir = patient.dir()?;
    let open = mode_of(&dir).filter(|mode| mode & 0o077 != 0);
    Ok(open
        .map(|mode| {
            let what = format!("others can enter the state directory {}", dir.display());
            Finding::error(Code::StateDirOpen, what)
                .seen(format!("its mode is {mode:04o}"))
                .repaired_by(Repair::Mode(vec![(dir, mode & 0o7700)]))
        })
        .into_iter()
        .collect())
}

/// Everything in the state directory, without following links.
fn inside(dir: &Path, depth: usize, found: &mut Vec<(PathBuf, std::fs::Metadata)>) {
    let Ok(entries) = fs_err::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(meta) = fs_err::symlink_metadata(&path) else {
            continue;
        };
        // Working copies of runs are their agents' own.
        if meta.is_dir() && depth > 0 && entry.file_name() != "places" {
            inside(&path, depth - 1, found);
        }
        found.push((path, meta));
    }
}

/// Of the state directory, what tenure itself writes directly below it.
pub fn modes(patient: &mut Patient) -> Found {
    let mut all = Vec::new();
    inside(&patient.dir()?, 0, &mut all);
    let open: Vec<(PathBuf, u32)> = all
        .into_iter()
        .filter(|(_, meta)| meta.is_file() && meta.mode() & 0o077 != 0)
        .map(|(path, meta)| (path, meta.mode() & 0o7700))
        .collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let mut finding = Finding::warning(
        Code::FileModes,
        format!(
            "the modes of {} of the state directory let others in",
            several(open.len(), "file")
        ),
    );
    for (path, _) in open.iter().take(NAMED) {
        finding = finding.seen(path.display().to_string());
    }
    Ok(vec![finding.repaired_by(Repair::Mode(open))])
}

pub fn owners(patient: &mut Patient) -> Found {
    let user = rustix::process::geteuid().as_raw();
    let mut all = Vec::new();
    inside(&patient.dir()?, DEPTH, &mut all);
    let foreign: Vec<_> = all.iter().filter(|(_, meta)| meta.uid() != user).collect();
    let Some((first, meta)) = foreign.first() else {
        return Ok(Vec::new());
    };
    let what = format!(
        "another user owns {} of the state directory",
        several(foreign.len(), "file")
    );
    Ok(vec![
        Finding::error(Code::ForeignOwner, what)
            .seen(format!(
                "{} belongs to user {}",
                first.display(),
                meta.uid()
            ))
            .advise(format!(
                "as root: chown -R {user} {}",
                patient.dir()?.display()
            )),
    ])
}

pub fn free_space(patient: &mut Patient) -> Found {
    let dir = patient.dir()?;
    let Ok(said) = rustix::fs::statvfs(&dir) else {
        return Ok(Vec::new());
    };
    let free = said.f_bavail.saturating_mul(said.f_frsize);
    if said.f_blocks == 0 || free >= LITTLE_ROOM {
        return Ok(Vec::new());
    }
    let what = format!("the disk of {} is almost full", dir.display());
    Ok(vec![
        Finding::warning(Code::DiskFull, what)
            .seen(format!("{} KiB are free", free >> 10))
            .advise("make room; nothing is stored on a full disk"),
    ])
}
