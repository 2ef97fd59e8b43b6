//! What will be done to one agent's settings: worked out whole before anything is written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_agents::Adapter;
use tenure_agents::install::trust::{Trust, advice, trust};
use tenure_agents::install::{
    Format, HookEntry, HookLine, HooksFileError, HooksFormat, Package, Script, StatusLine, sandbox,
    word_of,
};
use tenure_app::hooked;
use tenure_app::settings_change::{SettingsChange, backup_of};
use tenure_core::write_conflict::GuardMode;
use tenure_host::settings_file::{SettingsError, SettingsFile};
use tenure_service::answer::{Class, Hint};

use super::agent_command::AgentCommand;
use super::place::{self, InstallScope, InstallTarget};
use super::register::Register;
use super::running;
use crate::output::CliError;

/// No settings are longer.
pub const MAX_LENGTH: u64 = 16 << 20;

/// How an agent's settings stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All is there, for this very tenure.
    Installed,
    /// Something of ours is there, but not all, or for another tenure.
    Outdated,
    /// Nothing of ours.
    NotInstalled,
    /// No such agent here.
    NotFound,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Installed => "installed",
            State::Outdated => "outdated",
            State::NotInstalled => "not installed",
            State::NotFound => "not found",
        }
    }
}

/// What will be done for one agent, and how things stand.
#[derive(Debug)]
pub struct Plan {
    pub place: InstallTarget,
    pub state: State,
    /// The mode that is installed, or will be.
    pub mode: Option<GuardMode>,
    /// What will be done.
    pub changes: Vec<SettingsChange>,
    /// What an agent that reviews hooks thinks of ours, before.
    pub trust: Option<Trust>,
    /// Whose status line there will be, for an agent that draws one.
    pub status_line: Option<StatusLine>,
    /// Whether there will be an entry for the MCP server, for an agent that tenure adds one to.
    pub mcp: Option<bool>,
    /// Whether hooks will wait for messages, for an agent with such hooks.
    pub wake: Option<bool>,
    /// Whether hooks will wait for answers from elsewhere, for an agent that can be answered so.
    pub answers: Option<bool>,
    /// Whether the agent's settings turn hooks off.
    pub is_off: bool,
    /// The tenure that its hooks run, before, if there is none any more.
    pub gone: Option<String>,
    /// Events with more than one hook of ours, before.
    pub doubled: Vec<String>,
    /// Command lines of the agent that will be run: after its files are written, or before they are removed.
    pub commands: Vec<AgentCommand>,
    /// What the user should know of what will be done.
    pub will: Vec<String>,
    /// What the user should know of how things stand.
    pub notes: Vec<String>,
}

/// What is wanted: this tenure, perhaps with a mode.
#[derive(Debug, Clone)]
pub struct SetupTarget {
    /// The tenure that the hooks run.
    pub program: String,
    /// None: the mode that is there.
    pub mode: Option<GuardMode>,
    /// The directory that sandboxes must let us write to.
    pub state_dir: String,
    /// Whether a status line is added if there is none; ours is kept up to date anyway.
    pub status_line: bool,
    /// The same for an entry for the MCP server.
    pub mcp: bool,
    /// Whether hooks wait for messages that start a turn; none: as it is there.
    pub wake: Option<bool>,
    /// Whether hooks wait for answers from elsewhere. None: as it is there.
    pub answers: Option<bool>,
}

impl SetupTarget {
    fn line(&self, there: Option<(GuardMode, bool)>) -> HookLine {
        let (mode, answers) = there.unzip();
        HookLine {
            program: self.program.clone(),
            mode: self.mode.or(mode).unwrap_or_default(),
            answers: self.answers.or(answers).unwrap_or_default(),
        }
    }
}

impl Plan {
    /// What installing would do; no change if everything is there.
    pub fn install(place: InstallTarget, wanted: &SetupTarget) -> Result<Self, CliError> {
        let path = place.file();
        let file = read(&path)?;
        let text = file.text().unwrap_or_default().to_owned();
        let program;
        let (mut doubled, mut wake) = (Vec::new(), None);
        let (there, after, status_line) = match &place.settings.format {
            Format::Hooks(format) => {
                let entries = format.entries(&text).map_err(|e| refused(&path, &e))?;
                program = entries.first().map(|entry| entry.line.program.clone());
                let answers = entries.iter().any(|entry| entry.line.answers);
                let there = entries.first().map(|entry| (entry.line.mode, answers));
                doubled = doubled_events(&entries);
                let line = wanted.line(there);
                let there_waits = format.has_waiting(&text).map_err(|e| refused(&path, &e))?;
                wake = there_waits.map(|waits| wanted.wake.unwrap_or(waits));
                let after = format
                    .install_all(&text, &line, wake == Some(true))
                    .map_err(|e| refused(&path, &e))?;
                let (after, status_line) = with_status_line(format, &path, after, wanted)?;
                (there, after, status_line)
            }
            Format::Script(script) | Format::Package(Package { script, .. }) => {
                let found = ours(script, &file, place.agent)?;
                program = found.as_ref().map(|line| line.program.clone());
                let there = found.map(|line| (line.mode, line.answers));
                (there, (script.text)(&wanted.line(there)), None)
            }
        };
        let line = wanted.line(there);
        let is_answerable = tenure_agents::adapter(place.agent).is_some_and(Adapter::is_answerable);
        let off = switched_off(&place, &path, &text);
        let mut plan = Self {
            state: State::NotInstalled,
            mode: Some(line.mode),
            changes: vec![SettingsChange {
                // Before the first change, not before every one.
                keep: place.settings.hooks().is_some() && there.is_none(),
                file,
                after: Some(after),
            }],
            trust: None,
            status_line,
            mcp: None,
            wake,
            answers: is_answerable.then_some(line.answers),
            is_off: !off.is_empty(),
            gone: None,
            doubled,
            commands: Vec::new(),
            will: Vec::new(),
            notes: off,
            place,
        };
        if let Some(gone) = program.filter(|program| hooked::is_gone(program)) {
            plan.gone = Some(gone);
        }
        if let (Some(script), None) = (plan.place.settings.script(), there) {
            plan.will.push(script.note.to_owned());
        }
        if let Some(package) = plan.place.settings.package() {
            plan.install_package(package)?;
        }
        if let Some(config) = plan.place.sandbox()? {
            plan.install_sandbox(&config, &text, wanted)?;
        }
        plan.install_mcp(wanted)?;
        plan.changes.retain(|change| !change.is_none());
        plan.state = match (there, plan.is_nothing(), plan.place.found) {
            (_, true, _) => State::Installed,
            (Some(_), false, _) => State::Outdated,
            (None, _, true) => State::NotInstalled,
            (None, _, false) => State::NotFound,
        };
        Ok(plan)
    }

    /// What an agent with a sandbox needs besides hooks: a place to write to, and the user's trust.
    fn install_sandbox(
        &mut self,
        path: &Path,
        hooks: &str,
        wanted: &SetupTarget,
    ) -> Result<(), CliError> {
        let file = read(path)?;
        let config = file.text().unwrap_or_default().to_owned();
        let dir = &wanted.state_dir;
        let allowed = sandbox::allow(&config, dir).map_err(|e| refused(path, &e))?;
        match self.place.scope {
            InstallScope::User => {
                if allowed != config {
                    let path = path.display().to_string();
                    self.will.push(sandbox::note(&path, dir));
                }
                self.changes.push(SettingsChange {
                    file,
                    after: Some(allowed),
                    keep: true,
                });
            }
            InstallScope::Project(_) | InstallScope::Plugin => {
                self.notes.extend(sandbox::project_notes(allowed == config));
            }
        }
        let format = self.place.settings.hooks();
        let entries = format.and_then(|format| format.entries(hooks).ok());
        let entries = entries.unwrap_or_default();
        if !entries.is_empty() {
            self.trust = Some(trust(&config, &names_of(&self.place.file()), &entries));
        }
        let will_change = self.changes.first().is_some_and(|change| !change.is_none());
        self.notes.extend(advice(self.trust, will_change));
        Ok(())
    }

    /// The entry for the MCP server, after everything else in its file.
    fn install_mcp(&mut self, wanted: &SetupTarget) -> Result<(), CliError> {
        let settings = self.place.settings;
        let (Some(path), Some(servers)) = (self.place.mcp_file()?, &settings.mcp) else {
            return Ok(());
        };
        let same = |change: &SettingsChange| change.file.path() == path;
        let at = match self.changes.iter().position(same) {
            Some(at) => at,
            None => {
                let file = match read(&path) {
                    // What tenure is not to edit may be anything.
                    Err(_) if !wanted.mcp => return Ok(()),
                    file => file?,
                };
                let after = file.text().map(str::to_owned);
                let keep = false;
                self.changes.push(SettingsChange { file, after, keep });
                self.changes.len() - 1
            }
        };
        let change = &mut self.changes[at];
        let text = change.after.clone().unwrap_or_default();
        let there = servers.program(&text);
        let is_there = match there {
            Ok(program) => program.is_some(),
            Err(_) if !wanted.mcp => false,
            Err(refusal) => return Err(refused(&path, &refusal)),
        };
        self.mcp = Some(is_there || wanted.mcp);
        if is_there || wanted.mcp {
            change.keep |= !is_there;
            let with = servers.install(&text, &wanted.program);
            change.after = Some(with.map_err(|e| refused(&path, &e))?);
        }
        Ok(())
    }

    /// Adds which running agents do not run the mode that is installed.
    pub fn tell_who_runs_another(&mut self, register: &Register) {
        if let Some(mode) = self.mode {
            self.notes
                .extend(running::notes(&self.place, mode, register));
        }
    }

    /// The other files of a plugin directory, and the commands that make the agent load it.
    fn install_package(&mut self, package: &Package) -> Result<(), CliError> {
        let main = self.place.file();
        for (name, text) in package.others {
            self.changes.push(SettingsChange {
                file: read(&main.with_file_name(name))?,
                after: Some((*text).to_owned()),
                keep: false,
            });
        }
        let dir = self.place.package_dir();
        let config = read(&self.place.dir.join(package.config))?;
        if (package.is_added)(config.text().unwrap_or_default(), &dir) {
            return Ok(());
        }
        if place::is_on_path(self.place.agent) {
            let lines = (package.add)(&dir).into_iter();
            let of = |words| AgentCommand::of(package.program, words);
            self.commands = lines.map(of).collect();
        } else {
            let agent = self.place.agent;
            self.notes.push(format!(
                "{} was not found, so nothing loads the plugin yet; run `tenure install {agent}` once it is there",
                package.program
            ));
        }
        Ok(())
    }

    /// Whether there is nothing to do.
    pub fn is_nothing(&self) -> bool {
        self.changes.is_empty() && self.commands.is_empty()
    }

    pub fn apply(&self) -> Result<(), CliError> {
        let removes = self.changes.iter().any(|change| change.after.is_none());
        if removes {
            self.run_commands()?;
        }
        for change in &self.changes {
            change.apply().map_err(unusable)?;
        }
        if removes { Ok(()) } else { self.run_commands() }
    }

    fn run_commands(&self) -> Result<(), CliError> {
        self.commands.iter().try_for_each(AgentCommand::run)
    }

    /// Where things stand, for programs.
    pub fn json(&self, state: State) -> Value {
        let files: Vec<Value> = self
            .changes
            .iter()
            .map(|change| {
                let path = change.file.path();
                let copy = Some(backup_of(path)).filter(|copy| copy.exists());
                json!({"file": path, "change": change.word(), "backup": copy})
            })
            .collect();
        json!({
            "agent": self.place.agent,
            "state": state.word().replace(' ', "_"),
            "found": self.place.found,
            "scope": self.place.scope.word(),
            "file": self.place.file(),
            "mode": self.mode.map(word_of),
            "trust": self.trust.map(Trust::word),
            "gone": self.gone,
            "doubled": self.doubled,
            "status_line": self.status_line.map(StatusLine::word),
            "mcp": self.mcp.map(|is_there| if is_there { "installed" } else { "not_installed" }),
            "wake": self.wake,
            "answers": self.answers,
            "changed": !self.is_nothing(),
            "files": files,
            "notes": self.will.iter().chain(&self.notes).collect::<Vec<_>>(),
        })
    }

    /// What was done, a line for each file.
    pub fn done(&self) -> Vec<String> {
        let line = |change: &SettingsChange| {
            let path = change.file.path();
            let copy = backup_of(path);
            let kept = if change.keep && copy.exists() {
                format!(" (backup: {})", copy.display())
            } else {
                String::new()
            };
            format!("{} {}{kept}", change.word(), path.display())
        };
        let ran = self.commands.iter().map(|one| format!("ran {one}"));
        self.changes.iter().map(line).chain(ran).collect()
    }
}

fn doubled_events(entries: &[HookEntry]) -> Vec<String> {
    let mut doubled = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let is_second = entries[..at].iter().any(|other| other.event == entry.event);
        if is_second && !doubled.contains(&entry.event) {
            doubled.push(entry.event.clone());
        }
    }
    doubled
}

/// The text with our status line, if that is wanted or there already.
fn with_status_line(
    format: &HooksFormat,
    path: &Path,
    text: String,
    wanted: &SetupTarget,
) -> Result<(String, Option<StatusLine>), CliError> {
    let whose = format.status_line(&text).map_err(|e| refused(path, &e))?;
    let adds = match whose {
        Some(StatusLine::Ours) => true,
        Some(StatusLine::Absent) => wanted.status_line,
        Some(StatusLine::Another) if wanted.status_line => {
            return Err(own_status_line(format.agent, path));
        }
        Some(StatusLine::Another) | None => false,
    };
    if !adds {
        return Ok((text, whose));
    }
    let with = format.install_status_line(&text, &wanted.program);
    let with = with.map_err(|e| refused(path, &e))?;
    Ok((with, Some(StatusLine::Ours)))
}

fn own_status_line(agent: &str, path: &Path) -> CliError {
    let message = format!(
        "{} already sets another status line; nothing was changed",
        path.display()
    );
    let hint = Hint::run(
        "statusline",
        [agent],
        "from that status line's command, with the same stdin, to show both",
    );
    CliError::new(Class::Invalid, "invalid", message, hint)
}

/// What the agent itself does not do with our hooks.
fn switched_off(place: &InstallTarget, path: &Path, text: &str) -> Vec<String> {
    let (Some(format), Some(off)) = (place.settings.hooks(), &place.settings.off) else {
        return Vec::new();
    };
    if format.is_off(text, off) {
        vec![format!(
            "no hook runs while {} is {} in {}",
            off.path.join("."),
            off.value,
            path.display()
        )]
    } else {
        Vec::new()
    }
}

fn ours(script: &Script, file: &SettingsFile, agent: &str) -> Result<Option<HookLine>, CliError> {
    let Some(text) = file.text() else {
        return Ok(None);
    };
    match (script.read)(text) {
        Some(line) => Ok(Some(line)),
        None => Err(CliError::new(
            Class::Invalid,
            "invalid",
            format!(
                "{} exists and was not written by tenure; nothing was changed",
                file.path().display()
            ),
            Hint::run("install", [agent], "after you renamed that file"),
        )),
    }
}

/// The names that an agent may know a file by.
pub(super) fn names_of(path: &Path) -> Vec<String> {
    let real = fs_err::canonicalize(path).ok();
    let named = [Some(path.to_owned()), real];
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    named.into_iter().flatten().map(text).collect()
}

pub fn read(path: &Path) -> Result<SettingsFile, CliError> {
    SettingsFile::read(path).map_err(unusable)
}

/// A file that cannot be edited as it stands.
pub fn refused(path: &Path, refusal: &HooksFileError) -> CliError {
    let message = format!("{}, {refusal}; the file was not changed", path.display());
    let mut failure = CliError::new(
        Class::Invalid,
        "invalid",
        message,
        Hint::step("fix the file, then run the same command again"),
    );
    let place = [
        ("file", json!(path)),
        ("line", json!(refusal.line)),
        ("column", json!(refusal.column)),
    ];
    for (name, value) in place {
        failure.problem.data.insert(name.to_owned(), value);
    }
    failure
}

/// What a file is compared by.
pub fn hash(text: &str) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn io_trouble(error: &std::io::Error) -> CliError {
    let hint = Hint::step("fix or move the file, then run the same command again");
    CliError::new(Class::Invalid, "invalid", error.to_string(), hint)
}

#[allow(clippy::needless_pass_by_value)] // for map_err
pub fn unusable(error: SettingsError) -> CliError {
    let hint = match &error {
        SettingsError::Changed { .. } => "run the same command again",
        SettingsError::OtherOwner { .. } => "run it as the user who owns the file",
        SettingsError::DanglingLink { .. } => {
            "create the file that the link points to, or remove the link"
        }
        _ => "fix or move the file, then run the same command again",
    };
    let hint = Hint::step(hint);
    CliError::new(Class::Invalid, "invalid", error.to_string(), hint)
}
