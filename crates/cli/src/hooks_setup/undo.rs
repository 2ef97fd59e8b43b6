//! Undoing edits: our part goes, what others wrote stays byte for byte.
//!
//! An edit may be half made (a kill), not made at all, undone already, or edited since; each is undone as far as
//! something of ours is there. Besides the text, these are removed: the copy from before the first change, if it equals
//! the file now; files that a killed writer left next to it; directories that we made, if they are empty.

use std::io::ErrorKind;
use std::path::Path;

use tenure_agents::install::trust::forget;
use tenure_agents::install::{Edited, Format, sandbox};
use tenure_app::settings_change::{SettingsChange, backup_of};
use tenure_host::file::remove_leftovers;
use tenure_host::read::{text, whole};
use tenure_host::settings_file::SettingsFile;

use super::agent_command::AgentCommand;
use super::place::{InstallScope, InstallTarget};
use super::plan::{MAX_LENGTH, Plan, State, hash, io_trouble, names_of, read, refused};
use super::register::{Edit, FileOwner, Kind, Register, without_links};
use crate::output::CliError;

/// The edits of one agent in one place.
#[derive(Debug)]
pub struct Group {
    pub place: InstallTarget,
    pub edits: Vec<Edit>,
}

/// Puts edits together that are of one place; those of one file stay apart, to be undone one after the other.
pub fn grouped(edits: Vec<Edit>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for edit in edits {
        let Some(place) = place_of(&edit) else {
            continue;
        };
        let fits = |group: &&mut Group| {
            group.place.agent == place.agent
                && group.place.scope == place.scope
                && without_links(&group.place.dir) == without_links(&place.dir)
                && group.edits.iter().all(|other| other.real != edit.real)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.edits.push(edit),
            None => groups.push(Group {
                place,
                edits: vec![edit],
            }),
        }
    }
    groups
}

/// The place of an edit of an agent's settings.
fn place_of(edit: &Edit) -> Option<InstallTarget> {
    let dir = edit.place.clone();
    let scope = match (edit.kind, edit.owner) {
        (Kind::Git, _) => return None,
        (Kind::Plugin, _) => InstallScope::Plugin,
        (_, FileOwner::User) => InstallScope::User,
        (_, FileOwner::Project) => InstallScope::Project(dir.parent().unwrap_or(&dir).to_owned()),
    };
    InstallTarget::known(&edit.agent, scope, dir)
}

/// The edits that `install` makes in an agent's place, whether or not they are listed.
pub fn usual_edits(place: &InstallTarget, state_dir: &str) -> Result<Vec<Edit>, CliError> {
    let owner = match place.scope {
        InstallScope::Project(_) => FileOwner::Project,
        _ => FileOwner::User,
    };
    let kind = match place.settings.format {
        Format::Hooks(_) => Kind::Hooks,
        Format::Script(_) | Format::Package(_) => Kind::Script,
    };
    let mut edits = vec![Edit::of(
        place.agent,
        kind,
        owner,
        &place.dir,
        &place.file(),
    )];
    let others = place.settings.package().map_or(&[][..], |own| own.others);
    for (name, _) in others {
        let file = place.file().with_file_name(name);
        edits.push(Edit::of(place.agent, kind, owner, &place.dir, &file));
    }
    if let Some(config) = place.sandbox()?.filter(|_| owner == FileOwner::User) {
        let edit = Edit::of(place.agent, Kind::Sandbox, owner, &place.dir, &config);
        edits.push(Edit {
            root: Some(state_dir.to_owned()),
            ..edit
        });
    }
    Ok(edits)
}

/// The entry for the MCP server, if it is there.
fn mcp_entry(place: &InstallTarget) -> Result<Option<Edit>, CliError> {
    let edit = mcp_edit(place)?;
    let is_there = |edit: &Edit| {
        let text = text(&edit.file, MAX_LENGTH).unwrap_or_default();
        let servers = place.settings.mcp.as_ref();
        servers.is_some_and(|servers| matches!(servers.program(&text), Ok(Some(_))))
    };
    Ok(edit.filter(is_there))
}

/// The edit that adds it.
pub fn mcp_edit(place: &InstallTarget) -> Result<Option<Edit>, CliError> {
    let file = place.mcp_file()?;
    Ok(file.map(|file| Edit::of(place.agent, Kind::Mcp, FileOwner::User, &place.dir, &file)))
}

/// The usual edits of a place with what the register knows of them; what it does not know made no directory.
pub fn known_edits(
    place: &InstallTarget,
    state_dir: &str,
    register: &Register,
) -> Result<Vec<Edit>, CliError> {
    // What was added last goes first.
    let mut edits: Vec<Edit> = mcp_entry(place)?.into_iter().collect();
    edits.extend(usual_edits(place, state_dir)?);
    for edit in &mut edits {
        edit.dirs.clear();
        if let Some(known) = register.edits().iter().find(|known| known.is(edit)) {
            edit.join(known);
        }
    }
    Ok(edits)
}

impl Plan {
    /// What undoing these edits would do.
    pub fn undo(group: &Group) -> Result<Self, CliError> {
        let place = group.place.clone();
        let mut changes = Vec::new();
        for edit in &group.edits {
            let mut targets = vec![edit.file.clone()];
            // A link that leads elsewhere now: the file that was edited still has our part.
            if without_links(&edit.file) != edit.real {
                targets.push(edit.real.clone());
            }
            for target in targets {
                changes.extend(undo_in(edit, &place, &target)?);
            }
        }
        forget_trust(&place, group, &mut changes)?;
        changes.retain(|change| !change.is_none());
        let commands = remove_package(&place)?;
        let state = match (changes.is_empty() && commands.is_empty(), place.found) {
            (false, _) => State::Installed,
            (true, true) => State::NotInstalled,
            (true, false) => State::NotFound,
        };
        Ok(Self {
            place,
            state,
            mode: None,
            changes,
            trust: None,
            status_line: None,
            mcp: None,
            wake: None,
            answers: None,
            gone: None,
            doubled: Vec::new(),
            is_off: false,
            commands,
            will: Vec::new(),
            notes: Vec::new(),
        })
    }
}

/// The commands that remove a plugin from the agent's settings, if these name it.
fn remove_package(place: &InstallTarget) -> Result<Vec<AgentCommand>, CliError> {
    let Some(package) = place.settings.package() else {
        return Ok(Vec::new());
    };
    let config = read(&place.dir.join(package.config))?;
    if !(package.is_named)(config.text().unwrap_or_default(), &place.package_dir()) {
        return Ok(Vec::new());
    }
    let command = |words: &&[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        AgentCommand::of(package.program, words.collect())
    };
    Ok(package.remove.iter().map(command).collect())
}

/// Removes what Codex stores about our hooks from the same file as its sandbox settings.
fn forget_trust(
    place: &InstallTarget,
    group: &Group,
    changes: &mut [SettingsChange],
) -> Result<(), CliError> {
    let Some(config) = place.sandbox()? else {
        return Ok(());
    };
    let is_hooks = |edit: &&Edit| edit.kind == Kind::Hooks;
    let Some(hooks) = group.edits.iter().find(is_hooks) else {
        return Ok(());
    };
    let before = text(&hooks.file, MAX_LENGTH).unwrap_or_default();
    let format = place.settings.hooks();
    let entries = format.and_then(|format| format.entries(&before).ok());
    let entries = entries.unwrap_or_default();
    let is_config = |change: &&mut SettingsChange| change.file.path() == config;
    if let Some(change) = changes.iter_mut().find(is_config)
        && let Some(text) = &change.after
    {
        let left = forget(text, &names_of(&hooks.file), &entries);
        let is_ours = left.trim().is_empty() && !backup_of(&config).exists();
        change.after = (!is_ours).then_some(left);
    }
    Ok(())
}

/// Removes what an undone edit left beside its file; returns what it removed, and what it kept. A copy that
/// differs from the file is the only one of its content, so it stays.
pub fn tidy(edit: &Edit) -> Result<Vec<String>, CliError> {
    let mut removed = Vec::new();
    if edit.kind != Kind::Git {
        for file in [&edit.file, &edit.real] {
            let copy = backup_of(file);
            leftovers(file)?;
            leftovers(&copy)?;
            if is_litter(&copy, file) {
                fs_err::remove_file(&copy).map_err(|error| io_trouble(&error))?;
                removed.push(format!("removed {}", copy.display()));
            } else if copy.exists() && !removed.iter().any(|line| line.starts_with("kept")) {
                removed.push(format!(
                    "kept the backup {}: it differs from the file now",
                    copy.display()
                ));
            }
        }
    }
    let mut dirs = edit.dirs.clone();
    // The innermost first.
    dirs.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
    for dir in dirs {
        match fs_err::remove_dir(&dir) {
            Ok(()) => removed.push(format!("removed {}", dir.display())),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory => {}
                _ => return Err(io_trouble(&error)),
            },
        }
    }
    Ok(removed)
}

/// A copy of what is there anyway.
fn is_litter(copy: &Path, file: &Path) -> bool {
    let plain = fs_err::symlink_metadata(copy).is_ok_and(|found| found.is_file());
    plain
        && match (whole(copy, MAX_LENGTH), whole(file, MAX_LENGTH)) {
            (Ok(copy), Ok(file)) => copy == file,
            _ => false,
        }
}

fn leftovers(file: &Path) -> Result<(), CliError> {
    match remove_leftovers(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_trouble(&error)),
        _ => Ok(()),
    }
}

/// What undoing an edit does to one file.
fn undo_in(
    edit: &Edit,
    place: &InstallTarget,
    path: &Path,
) -> Result<Option<SettingsChange>, CliError> {
    let file = read(path)?;
    let Some(text) = file.text() else {
        return Ok(None);
    };
    let same = || Edited::Text(text.to_owned());
    let (edited, nothing) = match (edit.kind, &place.settings.format) {
        (Kind::Hooks, Format::Hooks(format)) => {
            let edited = format.uninstall(text).map_err(|e| refused(path, &e))?;
            (edited, "{}\n")
        }
        (Kind::Mcp, _) => {
            let servers = place.settings.mcp.as_ref();
            let edited = servers.map_or_else(|| Ok(same()), |servers| servers.uninstall(text));
            (
                edited.map_err(|e| refused(path, &e))?,
                place.settings.blank(),
            )
        }
        (Kind::Sandbox, _) => {
            let root = edit.root.as_deref().unwrap_or_default();
            let edited = sandbox::disallow(text, root).map_err(|e| refused(path, &e))?;
            (edited, "")
        }
        (Kind::Script, Format::Script(script)) if (script.read)(text).is_some() => {
            (Edited::Nothing, "")
        }
        (Kind::Script, Format::Package(own))
            if (own.script.read)(text).is_some() || (own.is_other)(text) =>
        {
            (Edited::Nothing, "")
        }
        (Kind::Plugin, _) if edit.hashes.contains(&hash(text)) => (Edited::Nothing, ""),
        // Someone edited our plugin: only the hooks are ours now.
        (Kind::Plugin, Format::Hooks(format)) if path.ends_with("hooks.json") => {
            (format.uninstall(text).unwrap_or_else(|_| same()), "{}\n")
        }
        (Kind::Hooks | Kind::Script | Kind::Plugin | Kind::Git, _) => (same(), ""),
    };
    Ok(Some(undone(file, edited, nothing)))
}

/// A file as it is after our part is gone from it.
fn undone(file: SettingsFile, edited: Edited, nothing: &str) -> SettingsChange {
    // A copy from before shows that the file was there before us.
    let before = text(&backup_of(file.path()), MAX_LENGTH).ok();
    let after = match (edited, before) {
        (Edited::Text(text), _) => Some(text),
        (Edited::Nothing, None) => None,
        (Edited::Nothing, Some(before)) if before.trim().is_empty() => Some(before),
        (Edited::Nothing, Some(_)) => Some(nothing.to_owned()),
    };
    SettingsChange {
        file,
        after,
        keep: false,
    }
}
