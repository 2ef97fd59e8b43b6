//! Settings, each with its origin.
//!
//! Later layers win: defaults, /etc/tenure/config.toml, the user's config.toml, the environment. A
//! project's `.tenure.toml` may set only what cannot move state, run commands or loosen a guard;
//! anything else there is ignored and listed by `tenure config`, because a cloned repository is not
//! trusted. A file that does not parse, or a malformed value, is an error that names file and key.

mod agents;
pub mod kept_store;
mod known;
pub mod notify;
pub mod repo;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_agents::Adapter;
use tenure_agents::run::Configured;
use tenure_core::policy::Policy;
use tenure_core::run::budget::Budgets;
use tenure_core::run::retention::Retention;
use tenure_core::time::Span;
use tenure_core::write_conflict::GuardMode;
use tenure_host::git::{self, Worktree};
use tenure_host::read;
use tenure_service::answer::{Class, Hint, Problem};

use crate::mirror::setting::{self, Mirror};
use crate::private_file::{self, SettingsFault};
use known::KNOWN;
use notify::NotifyChannel;
use repo::Repo;

/// The kind of problem of settings that cannot be used.
pub const CONFIG_FAULT: &str = "config";
/// The longest settings file.
const MAX_LENGTH: u64 = 1 << 20;
/// The settings of the machine.
const SYSTEM_FILE: &str = "/etc/tenure/config.toml";

/// The definition of a setting.
struct SettingSpec {
    key: &'static str,
    default: &'static str,
    /// Whether a project's file may set it.
    project: bool,
    value: Value,
    about: &'static str,
}

impl SettingSpec {
    /// The variable of `guard.mode` is `TENURE_GUARD_MODE`.
    fn variable(&self) -> String {
        format!("TENURE_{}", self.key.replace('.', "_").to_uppercase())
    }
}

/// The type of a setting's value, and where it is stored.
#[derive(Clone, Copy)]
enum Value {
    Text(fn(&mut Settings) -> &mut Option<String>),
    /// A span of time, such as `10m`.
    Span(fn(&mut Settings) -> &mut Duration),
    Count(fn(&mut Settings) -> &mut usize),
    /// `true` or `false`.
    Switch(fn(&mut Settings) -> &mut bool),
    /// A mode of the guard.
    Mode(fn(&mut Settings) -> &mut Option<GuardMode>),
    /// `open` or `closed`.
    OnError(fn(&mut Settings) -> &mut bool),
    /// A number greater than zero.
    Amount(fn(&mut Settings) -> &mut Option<f64>),
    /// Several texts without commas.
    List(fn(&mut Settings) -> &mut Vec<String>),
    /// The same, of names of agents that can do something.
    Agents(fn(&mut Settings) -> &mut Vec<String>, fn(&Adapter) -> bool),
}

/// A setting for display.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct Setting {
    pub key: &'static str,
    pub value: String,
    /// The layer that decided: `default`, a file, or a variable.
    pub origin: String,
    pub about: &'static str,
}

/// A setting of a project's file that is ignored.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct Ignored {
    pub file: String,
    /// The key, or what is wrong with the file.
    pub key: String,
    /// Why it is ignored.
    pub why: String,
}

/// All settings.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Where the store is, if set.
    pub store: Option<String>,
    /// Whether TENURE_STORE says so.
    is_from_variable: bool,
    /// The store that a settings file names.
    filed_store: Option<String>,
    /// The times that decide when liveness is unknown.
    pub policy: Policy,
    /// Whether commands start a keeper for a store that several machines use.
    pub keeper: bool,
    /// How long a hook waits for a store that several machines use.
    pub hook_wait: Duration,
    /// Whether a model gets a brief at its start.
    pub brief: bool,
    /// Whether agents without hooks are shown.
    pub unmanaged: bool,
    /// Whether titles are taken from prompts, and stored.
    pub titles: bool,
    /// The command that focuses a window outside tmux.
    pub goto_command: Option<String>,
    /// The reaction to a tool that conflicts with another session, if set.
    pub guard_mode: Option<GuardMode>,
    /// The pattern of the claim that a session needs to write any file.
    pub require_claim: Option<String>,
    /// Whether writes are blocked when the store is unavailable.
    pub closes_on_error: bool,
    /// Whether OpenClaw's database is repaired after a key took over another's session id.
    pub openclaw_heal: bool,
    /// The roles that a mission participant may have; an empty list means any.
    pub roles: Vec<String>,
    /// Files that show sessions to other tools.
    pub mirrors: Vec<Mirror>,
    /// The user's channels for notifications.
    pub notify: Vec<NotifyChannel>,
    /// The user's settings for repositories; later ones win.
    pub repos: Vec<Repo>,
    /// Agents that the user defines, by name.
    pub agents: BTreeMap<String, Configured>,
    /// In which sessions messages start turns.
    pub wake: Wake,
    /// How long an agent may take to stop before it is killed.
    pub stop_grace: Duration,
    /// How long the files of runs are kept.
    pub retention: Retention,
    /// How long sessions are kept after their end; zero keeps all.
    pub keep_ended: Duration,
    /// What runs may use.
    pub budgets: Budgets,
    /// The agents whose questions may be answered from elsewhere.
    pub answers: Vec<String>,
    /// How long a question waits for such an answer; see [`Settings::answer_wait`].
    answers_wait: Duration,
    /// All settings except mirrors, repositories and agents, in their documented order, each with
    /// its origin.
    pub listed: Vec<Setting>,
    /// Settings of a project's file that are ignored.
    pub ignored: Vec<Ignored>,
}

/// In which sessions messages start turns, and whose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wake {
    /// The agents; none while it is switched off.
    pub agents: Vec<String>,
    /// Whether messages of agents' sessions do it too.
    pub from_agents: bool,
}

impl Wake {
    /// Whether messages start turns in sessions of this agent.
    pub fn is_on(&self, agent: &str) -> bool {
        self.agents.iter().any(|name| name == agent)
    }
}

/// Reads the environment; passed in by main, so that tests and layers see the same.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Settings {
    /// The settings without a project's file.
    pub fn of_user() -> Result<Self, Problem> {
        Self::load(&tenure_host::env::var, None)
    }

    /// The settings of a process with this environment, outside any project.
    pub fn of_environment(env: Env<'_>) -> Result<Self, Problem> {
        Self::load(env, None)
    }

    /// Whether one of the user's settings files may name a store on a server.
    pub(crate) fn may_name_server() -> bool {
        let user = user_file(&tenure_host::env::var);
        let files = [Some(PathBuf::from(SYSTEM_FILE)), user];
        files.into_iter().flatten().any(|file| {
            // An unreadable file fails when it is loaded.
            read::text(&file, MAX_LENGTH).is_ok_and(|text| {
                let forms = ["postgres", "host=", "host =", "dbname=", "dbname ="];
                forms.iter().any(|form| text.contains(form))
            })
        })
    }

    /// The settings in the worktree with this root.
    pub fn of_project(root: Option<&Path>) -> Result<Self, Problem> {
        Self::load(&tenure_host::env::var, root)
    }

    /// Whether words of a session in this directory may be stored. Its project may forbid it, so the project's file is
    /// read; its faults are ignored.
    pub fn keeps_titles(&self, dir: &Path) -> bool {
        let forbids = |worktree: Worktree| {
            Self::of_project(Some(&worktree.root)).is_ok_and(|project| !project.titles)
        };
        self.titles && !git::worktree(dir).is_some_and(forbids)
    }

    /// Whether the user trusts the repository of this worktree. Outside a repository nothing is
    /// trusted. The store is opened by `known`, only where the answer depends on it.
    pub fn trusts(
        &self,
        worktree: Option<&Worktree>,
        known: impl FnOnce(&str) -> Result<Vec<String>, Problem>,
    ) -> Result<bool, Problem> {
        match worktree {
            Some(worktree) => repo::is_trusted(&self.repos, worktree, known),
            None => Ok(false),
        }
    }

    /// The host of a repository, by the one name that its aliases and mirrors share.
    pub fn lead_host(&self, name: &str, host: &str) -> String {
        repo::lead_host(&self.repos, name, host)
    }

    /// Loads every layer.
    fn load(env: Env<'_>, project_root: Option<&Path>) -> Result<Self, Problem> {
        let mut all = Self::default();
        for known in KNOWN {
            all.listed.push(Setting {
                key: known.key,
                value: String::new(),
                origin: "default".to_owned(),
                about: known.about,
            });
            if !known.default.is_empty() {
                let set = all.set(known, known.default.to_owned(), "default");
                set.map_err(|why| malformed("default", known.key, &why))?;
            }
        }
        all.read_file(Path::new(SYSTEM_FILE), false)?;
        if let Some(path) = user_file(env) {
            all.read_file(&path, false)?;
        }
        if let Some(root) = project_root {
            all.read_file(&root.join(".tenure.toml"), true)?;
        }
        all.filed_store = all.store.clone();
        for known in KNOWN {
            let variable = known.variable();
            if let Some(value) = env(&variable).filter(|value| !value.is_empty()) {
                let text = value.into_string();
                let text = text.map_err(|_| "it is not UTF-8 text".to_owned());
                text.and_then(|text| all.set(known, text, &variable))
                    .map_err(|why| malformed(&variable, known.key, &why))?;
            }
        }
        all.is_from_variable = env("TENURE_STORE").is_some_and(|value| !value.is_empty());
        Ok(all)
    }

    /// How long a question waits for an answer from elsewhere: less than its hook may run.
    pub fn answer_wait(&self) -> Duration {
        const MAX: Duration = Duration::from_secs(570);
        self.answers_wait.min(MAX)
    }

    /// The same with the store that a settings file names, if TENURE_STORE names another.
    pub fn as_filed(&self) -> Option<Self> {
        let filed = self.filed_store.as_ref();
        let filed =
            filed.filter(|filed| self.is_from_variable && self.store.as_ref() != Some(filed));
        filed.map(|filed| Self {
            store: Some(filed.clone()),
            ..self.clone()
        })
    }

    fn set(&mut self, known: &SettingSpec, value: String, origin: &str) -> Result<(), String> {
        known.value.set(self, &value)?;
        self.show(known.key, value, origin);
        Ok(())
    }

    /// Sets the displayed value and origin of a setting.
    pub(crate) fn show(&mut self, key: &str, value: String, origin: &str) {
        if let Some(setting) = self.listed.iter_mut().find(|setting| setting.key == key) {
            setting.value = value;
            setting.origin = origin.to_owned();
        }
    }

    /// Displays another text for a setting's value.
    pub(crate) fn show_value(&mut self, key: &str, value: String) {
        if let Some(setting) = self.listed.iter_mut().find(|setting| setting.key == key) {
            setting.value = value;
        }
    }

    fn read_file(&mut self, path: &Path, project: bool) -> Result<(), Problem> {
        let origin = path.display().to_string();
        let table = if project {
            match read_table(path) {
                Ok(table) => table.unwrap_or_default(),
                Err(why) => {
                    self.ignore(&origin, "the whole file", why);
                    return Ok(());
                }
            }
        } else {
            read_own(path)?
        };
        for (key, value) in flat(table) {
            match self.read_value(&key, &value, &origin, project) {
                Err(why) if project => self.ignore(&origin, &key, why),
                read => read.map_err(|why| malformed(&origin, &key, &why))?,
            }
        }
        Ok(())
    }

    fn read_value(
        &mut self,
        key: &str,
        value: &toml::Value,
        origin: &str,
        project: bool,
    ) -> Result<(), String> {
        let known = KNOWN.iter().find(|known| known.key == key);
        let is_mirror = key.split('.').next() == Some("mirror");
        let is_notify = key.split('.').next() == Some("notify");
        let repository = key.strip_prefix("repo.");
        let agent = key.strip_prefix("agents.");
        match known {
            Some(known) if !project || known.project => {
                let text = known.value.text(value);
                let text = text.ok_or_else(|| known.value.expected())?;
                if project && known.key == "privacy.titles" && text != "false" {
                    return Err("a project's file may only set this to false".to_owned());
                }
                self.set(known, text, origin)
            }
            None if key == "mirror" && !project => {
                self.mirrors.extend(setting::parse(value, origin)?);
                Ok(())
            }
            None if key == "notify" && !project => {
                let channels = notify::parse(value, origin, &self.notify)?;
                self.notify.extend(channels);
                Ok(())
            }
            // Its settings have names of their own.
            None if is_notify && !project => Err(notify::BRACKETS.to_owned()),
            None if repository.is_some() && !project => {
                let name = repository.unwrap_or_default();
                self.repos.push(repo::parse(name, value, origin)?);
                Ok(())
            }
            None if agent.is_some() && !project => {
                let name = agent.unwrap_or_default();
                let described = agents::parse(name, value)?;
                self.agents.insert(name.to_owned(), described);
                Ok(())
            }
            None if !project
                || !(is_mirror || is_notify || repository.is_some() || agent.is_some()) =>
            {
                let names: Vec<&str> = KNOWN.iter().map(|known| known.key).collect();
                Err(format!(
                    "unknown setting; expected one of {}",
                    names.join(", ")
                ))
            }
            _ => Err("a project's file may not set this".to_owned()),
        }
    }

    fn ignore(&mut self, file: &str, key: &str, why: String) {
        self.ignored.push(Ignored {
            file: file.to_owned(),
            key: key.to_owned(),
            why,
        });
    }
}

impl Value {
    /// Stores a value, if it has the right type.
    fn set(self, all: &mut Settings, value: &str) -> Result<(), String> {
        match self {
            Value::Text(of) => *of(all) = Some(value.to_owned()).filter(|text| !text.is_empty()),
            Value::Span(of) => *of(all) = value.parse::<Span>().map_err(|error| error.why)?.0,
            Value::Count(of) => *of(all) = value.parse().map_err(|_| self.expected())?,
            Value::Switch(of) => *of(all) = value.parse().map_err(|_| self.expected())?,
            Value::Mode(of) => {
                *of(all) = Some(GuardMode::parse(value).ok_or_else(|| self.expected())?);
            }
            Value::OnError(of) => {
                *of(all) = match value {
                    "open" => false,
                    "closed" => true,
                    _ => return Err(self.expected()),
                }
            }
            Value::Amount(of) => *of(all) = Some(amount(value).ok_or_else(|| self.expected())?),
            Value::Agents(of, can) => {
                let (listed, known) = (listed(value), tenure_agents::names(can));
                if !listed.iter().all(|name| known.contains(&name.as_str())) {
                    return Err(self.expected());
                }
                *of(all) = listed;
            }
            Value::List(of) => {
                *of(all) = listed(value);
            }
        }
        Ok(())
    }

    /// The text of a value in a file.
    fn text(self, value: &toml::Value) -> Option<String> {
        match self {
            Value::Switch(_) => value.as_bool().map(|on| on.to_string()),
            Value::Count(_) => value.as_integer().map(|count| count.to_string()),
            Value::Amount(_) => match value {
                toml::Value::Integer(number) => Some(number.to_string()),
                toml::Value::Float(number) => Some(number.to_string()),
                _ => None,
            },
            Value::List(_) | Value::Agents(..) => {
                let texts = value.as_array()?.iter().map(toml::Value::as_str);
                let texts = texts.collect::<Option<Vec<&str>>>()?;
                let plain = |text: &&str| !text.trim().is_empty() && !text.contains(',');
                texts.iter().all(plain).then(|| texts.join(", "))
            }
            _ => value.as_str().map(str::to_owned),
        }
    }

    fn expected(self) -> String {
        let expected = match self {
            Value::Agents(_, can) => {
                let names = tenure_agents::names(can);
                return format!("expected a list of any of {}", names.join(", "));
            }
            Value::Switch(_) => "true or false",
            Value::Count(_) => "a number that is not negative",
            Value::Amount(_) => "a number above 0, without quotes",
            Value::List(_) => "a list of strings in quotes, without commas in them",
            Value::Text(_) | Value::Span(_) => "a string in quotes",
            Value::Mode(_) => "one of observe, warn, block",
            Value::OnError(_) => "one of open, closed",
        };
        format!("expected {expected}")
    }
}

/// The texts of a list.
fn listed(value: &str) -> Vec<String> {
    let texts = value.split(',').map(str::trim);
    let texts = texts.filter(|one| !one.is_empty());
    texts.map(str::to_owned).collect()
}

/// A valid amount of money.
pub fn amount(text: &str) -> Option<f64> {
    let amount: f64 = text.parse().ok()?;
    (amount.is_finite() && amount > 0.0).then_some(amount)
}

/// Settings in a section are named `section.key`.
fn flat(table: toml::Table) -> Vec<(String, toml::Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::Table(section) => {
                let inner = section.into_iter();
                found.extend(inner.map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => found.push((key, value)),
        }
    }
    found
}

fn read_table(path: &Path) -> Result<Option<toml::Table>, String> {
    let text = match read::text(path, MAX_LENGTH) {
        Ok(text) => text,
        Err(error) if read::is_absent(&error) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    parse_table(path, &text).map(Some)
}

fn parse_table(path: &Path, text: &str) -> Result<toml::Table, String> {
    text.parse::<toml::Table>()
        .map_err(|error| format!("{} is not valid ({})", path.display(), error.message()))
}

/// A settings file of the user or the machine. It can name commands, so others must not be able to write it.
fn read_own(path: &Path) -> Result<toml::Table, Problem> {
    let refused = |fault: &SettingsFault| {
        let why = match fault {
            SettingsFault::Io(error) => error.to_string(),
            fault => format!("{}: {fault}", path.display()),
        };
        let mut problem = unusable(format!("cannot use the settings: {why}"));
        if let Some(step) = fault.step(path) {
            problem.hints = vec![Hint::step(step)];
        }
        problem
    };
    let own = match private_file::settings_text(path, MAX_LENGTH) {
        Ok(own) => own,
        Err(SettingsFault::Io(error)) if read::is_absent(&error) => return Ok(toml::Table::new()),
        Err(fault) => return Err(refused(&fault)),
    };
    let table = parse_table(path, &own.text)
        .map_err(|why| unusable(format!("cannot use the settings: {why}")))?;
    // The machine's file is for its users: a group may be meant to read it.
    let is_system = path == Path::new(SYSTEM_FILE);
    let others = if is_system { 0o004 } else { 0o044 };
    let mut values = table.values();
    if own.mode & others != 0 && values.any(has_password) {
        return Err(refused(&SettingsFault::Readable { mode: own.mode }));
    }
    Ok(table)
}

/// Whether an address with a password is in a value.
fn has_password(value: &toml::Value) -> bool {
    match value {
        toml::Value::String(text) => {
            let address = text.split_once("://").map(|(_, rest)| rest);
            let user = address.and_then(|rest| rest.split(['/', '?']).next()?.rsplit_once('@'));
            let in_user = user.and_then(|(user, _)| user.split_once(':'));
            in_user.is_some_and(|(_, password)| !password.is_empty())
                || address.is_some_and(|rest| rest.contains("password="))
        }
        toml::Value::Array(values) => values.iter().any(has_password),
        toml::Value::Table(values) => values.values().any(has_password),
        _ => false,
    }
}

/// The user's settings file.
fn user_file(env: Env<'_>) -> Option<PathBuf> {
    Some(user_dir(env)?.join("config.toml"))
}

/// The user's settings directory: `$XDG_CONFIG_HOME/tenure`, else `~/.config/tenure`.
pub fn user_dir(env: Env<'_>) -> Option<PathBuf> {
    let config_home = env("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let base = config_home.or_else(|| {
        let home = env("HOME").filter(|home| !home.is_empty())?;
        Some(PathBuf::from(home).join(".config"))
    })?;
    Some(base.join("tenure"))
}

fn malformed(origin: &str, key: &str, why: &str) -> Problem {
    unusable(format!("{key} in {origin} is not valid: {why}"))
}

fn unusable(message: String) -> Problem {
    let hint = Hint::step("correct the setting, then run the same command again");
    Problem::new(Class::Usage, CONFIG_FAULT, message, hint)
}

#[cfg(test)]
mod tests;
