//! `install AGENT --plugin DIR`: the hooks as a plugin directory, for the agent that reads one.

use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_agents::Adapter;
use tenure_agents::install::{HookLine, HooksFormat, plugin, word_of};
use tenure_app::place::current_dir;
use tenure_core::text;
use tenure_host::settings_file::SettingsFile;
use tenure_service::answer::{Class, Hint};

use crate::hooks_setup::place::{InstallScope, InstallTarget};
use crate::hooks_setup::plan::{SetupTarget, hash, read};
use crate::hooks_setup::register::{Edit, FileOwner, Kind, Register};
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// The agents that read a plugin directory, and how their hooks are written there.
fn readers() -> Vec<(&'static str, &'static HooksFormat)> {
    let reader = |row: &'static Adapter| {
        let settings = row.settings.as_ref().filter(|found| found.has_plugin)?;
        Some((row.name, settings.hooks()?))
    };
    tenure_agents::ADAPTERS.iter().filter_map(reader).collect()
}

pub fn run(
    dir: &Path,
    agents: &[String],
    wanted: &SetupTarget,
    dry_run: bool,
    register: &mut Register,
) -> Outcome {
    let readers = readers();
    let is_meant = |name: &&str| agents.iter().all(|agent| agent == name);
    let Some((agent, format)) = readers.iter().find(|(name, _)| is_meant(name)) else {
        let names: Vec<&str> = readers.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        return Err(CliError::new(
            Class::Usage,
            "usage",
            format!("--plugin works only with {names}"),
            Hint::run(
                "install",
                [names.as_str(), "--plugin", "DIR"],
                "to write the plugin",
            ),
        ));
    };
    let dir: PathBuf = current_dir()?.join(dir).components().collect();
    let line = HookLine {
        program: wanted.program.clone(),
        mode: wanted.mode.unwrap_or_default(),
        answers: false,
    };
    let files = plugin::files(format, &line, env!("CARGO_PKG_VERSION")).map_err(|refusal| {
        CliError::new(
            Class::Internal,
            "internal",
            refusal.to_string(),
            Hint::step("please report this message"),
        )
    })?;
    let manifest = read(&dir.join(plugin::MANIFEST))?;
    let is_ours = manifest.text().is_some_and(plugin::is_ours);
    let mut changes: Vec<(SettingsFile, String)> = Vec::new();
    let mut edits = Vec::new();
    for (name, text) in files {
        let file = read(&dir.join(name))?;
        if file.text().is_some() && !is_ours {
            let message = format!(
                "{} already exists, and {} is not a plugin written by tenure; nothing was changed",
                file.path().display(),
                dir.display()
            );
            let hint = Hint::step("pass another directory to --plugin");
            return Err(CliError::new(Class::Invalid, "invalid", message, hint));
        }
        edits.push(edit(agent, &dir, &file, &text));
        if file.text() != Some(&text) {
            changes.push((file, text));
        }
    }
    if !dry_run {
        register.note(edits)?;
    }
    for (file, text) in changes.iter().filter(|_| !dry_run) {
        file.write(text)
            .map_err(crate::hooks_setup::plan::unusable)?;
    }
    Ok(shown(agent, format, &dir, &line, &changes, dry_run))
}

/// What will be written to one file, and what is in it of ours before that.
fn edit(agent: &str, dir: &Path, file: &SettingsFile, text: &str) -> Edit {
    let edit = Edit::of(agent, Kind::Plugin, FileOwner::User, dir, file.path());
    let there = file.text().map(hash);
    Edit {
        hashes: [Some(hash(text)), there].into_iter().flatten().collect(),
        ..edit
    }
}

fn shown(
    agent: &str,
    format: &HooksFormat,
    dir: &Path,
    line: &HookLine,
    changes: &[(SettingsFile, String)],
    dry_run: bool,
) -> Output {
    let paths: Vec<&Path> = changes.iter().map(|(file, _)| file.path()).collect();
    let done = match (dry_run, paths.is_empty()) {
        (_, true) => "is up to date",
        (true, _) => "would be written",
        (false, _) => "was written",
    };
    let place = dir.display().to_string();
    let typed = text::shell(&place);
    let place = text::name(&place);
    let mut text = Lines::from(format!("the plugin in {place} {done}; to use it:"));
    for command in plugin::commands(&typed) {
        text.line(format!("  {command}"));
    }
    let mut notes = Vec::new();
    if is_in_settings(agent, format) {
        notes.push(format!(
            "the hooks are also in your settings; run `tenure uninstall {agent} --user` to remove them there"
        ));
    }
    for note in &notes {
        crate::hooks_setup::add(&mut text, note);
    }
    let part = json!({
        "agent": agent,
        "state": "installed",
        "scope": "plugin",
        "file": dir,
        "mode": word_of(line.mode),
        "changed": !paths.is_empty(),
        "files": paths,
        "notes": notes,
    });
    Output::new("agents", &[part], text).with("dry_run", &dry_run)
}

/// Whether the same hooks are in the user's settings.
fn is_in_settings(agent: &str, format: &HooksFormat) -> bool {
    let place = InstallTarget::all(&InstallScope::User, |name| name == agent)
        .ok()
        .and_then(|all| all.into_iter().next());
    let text = place
        .and_then(|place| read(&place.file()).ok())
        .and_then(|file| file.text().map(str::to_owned));
    text.is_some_and(|text| format.entries(&text).is_ok_and(|found| !found.is_empty()))
}
