//! What a verb needs of this machine: settings, state directory, store and caller, opened on demand.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tenure_core::id::Cursor;
use tenure_core::key::{self, Entry, Key};
use tenure_core::notice::{Channel, Notice};
use tenure_core::process::CallerFacts;
use tenure_core::reason::Reason;
use tenure_core::session::Place;
use tenure_core::store::Store;
use tenure_core::trample::Mode;
use tenure_host::git::{self, Worktree};
use tenure_host::kernel_lock::LockDir;
use tenure_host::machine::Machine;
use tenure_host::state_dir::{StateDir, StateDirError};
use tenure_host::{caller, clock, cwd};
use tenure_service::{GuardPolicy, Here, Naming, Service};
use tenure_store::{Patience, SqliteStore};

use crate::config::Config;
use crate::exit::Exit;
use crate::mirrors::setting::Mirror;
use crate::output::{Shown, Style, Trouble, warn};

/// The name of the database in the state directory.
const DATABASE: &str = "tenure.db";

/// What was typed before the verb, for every verb.
pub struct App {
    /// How to show things.
    pub style: Style,
    pub session: Option<String>,
    /// `-v`.
    pub verbose: bool,
    /// Whether the verb changes anything.
    pub changes: bool,
    /// The whole command line, for verbs that explain it.
    pub grammar: fn() -> clap::Command,
    /// Where the log stood when the store was first opened, where there are mirrors to keep up to date.
    pub mirrored: Cell<Option<Cursor>>,
}

/// An open store and everything that a service needs.
pub struct Opened {
    store: Box<dyn Store>,
    machine: Machine,
    facts: CallerFacts,
    config: Config,
    dir: PathBuf,
    repo: Option<String>,
}

impl Opened {
    /// Where the caller stands, for missions.
    pub fn here(&self) -> Here {
        Here {
            repo: self.repo.clone(),
            user: rustix::process::getuid().as_raw().to_string(),
            roles: self.config.roles(),
        }
    }

    /// The mirrors that the settings name.
    pub fn mirrors(&self) -> &[Mirror] {
        &self.config.mirrors
    }

    /// The directory of the store, whose files change when the store does.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The use cases for this caller.
    pub fn service(&mut self) -> Service<'_> {
        Service::new(
            self.store.as_mut(),
            &self.machine,
            &self.facts,
            self.config.policy(),
        )
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether a process is one that this command runs in.
    pub fn runs_in(&self, pid: u32) -> bool {
        let mut above = self.facts.chain.iter();
        above.any(|ancestor| ancestor.process.pid == pid)
    }
}

/// The store for a hook: opened late, bounded in time, and without what only other verbs need.
pub struct HookStore {
    config: Config,
    path: PathBuf,
    machine: Machine,
    facts: CallerFacts,
    until: Instant,
    store: Option<SqliteStore>,
}

impl HookStore {
    /// Finds out where the store is and what can be seen from here.
    pub fn prepare(config: Config, until: Instant) -> Result<Self, Trouble> {
        let path = store_path(&config)?;
        Self::at(config, path, until)
    }

    /// The same for who only looks; none where there is no store yet.
    pub fn prepare_existing(until: Instant) -> Result<Option<Self>, Trouble> {
        let config = user_settings()?;
        let path = store_path(&config)?;
        match path.exists() {
            true => Self::at(config, path, until).map(Some),
            false => Ok(None),
        }
    }

    fn at(config: Config, path: PathBuf, until: Instant) -> Result<Self, Trouble> {
        let machine = machine_of(&open_state_dir(&path)?)?;
        let facts = caller::variables(observer_of(&machine).clone());
        Ok(Self {
            config,
            path,
            machine,
            facts,
            until,
            store: None,
        })
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Reads what the project of a directory sets: only a start needs it, and it costs time.
    pub fn read_project(&mut self, dir: &str) {
        let Some(worktree) = git::worktree(Path::new(dir)) else {
            return;
        };
        // What the user set was read without fault just now, and a project's faults are ignored.
        if let Ok(config) = Config::load(&env, Some(&worktree.root)) {
            self.config = config;
        }
    }

    /// Whether a start is answered with a brief.
    pub fn wants_brief(&self) -> bool {
        self.config.is_on("agent.brief")
    }

    /// The same with everything that a verb has, where there are mirrors to keep up to date.
    pub fn with_mirrors(self, dir: &str) -> Option<Opened> {
        if self.config.mirrors.is_empty() {
            return None;
        }
        let worktree = git::worktree(Path::new(dir));
        let root = worktree.as_ref().map(|found| found.root.as_path());
        Some(Opened {
            store: Box::new(self.store?),
            machine: self.machine,
            facts: self.facts,
            config: Config::load(&env, root).unwrap_or(self.config),
            dir: self.path.parent()?.to_owned(),
            repo: worktree.as_ref().map(Worktree::repo),
        })
    }

    /// What the user wants of tools that write; the settings win over the hook's own line.
    pub fn guard(&self, line: Option<Mode>) -> GuardPolicy {
        GuardPolicy {
            mode: mode_of(&self.config, line),
            require_claim: self.config.text("guard.require_claim").map(str::to_owned),
        }
    }

    /// The use cases for the agent; the first call opens the store.
    pub fn open(&mut self) -> Result<Service<'_>, Trouble> {
        let store = match self.store.take() {
            Some(store) => store,
            None => {
                let boot = observer_of(&self.machine).boot.clone();
                let clock = Box::new(move || clock::now(&boot));
                let limit = Patience {
                    until: self.until,
                    pause: tenure_host::pause::for_a_while,
                };
                SqliteStore::open_until(&self.path, clock, Some(limit))
                    .map_err(|error| Trouble::from(tenure_service::error::Error::from(error)))?
            }
        };
        let store = self.store.insert(store);
        let policy = self.config.policy();
        let service = Service::new(store, &self.machine, &self.facts, policy);
        Ok(service.until(self.until))
    }
}

fn mode_of(config: &Config, line: Option<Mode>) -> Mode {
    let set = config.text("guard.mode").and_then(Mode::parse);
    set.or(line).unwrap_or_default()
}

/// What is done about a tool under another session's feet, where the store is out of reach.
pub fn guard_mode(line: Option<Mode>) -> Mode {
    user_settings().map_or(line.unwrap_or_default(), |config| mode_of(&config, line))
}

/// Whether the user wants writes to wait where nobody can tell whether they may go ahead.
pub fn closes_on_error() -> bool {
    user_settings().is_ok_and(|config| config.closes_on_error())
}

/// The settings without a project's.
pub fn user_settings() -> Result<Config, Trouble> {
    Config::load(&env, None)
}

/// Where the state directory is, whether or not it can be used.
pub fn state_path() -> Option<PathBuf> {
    let config = user_settings().ok()?;
    Some(store_path(&config).ok()?.parent()?.to_owned())
}

/// Reads the environment.
pub fn env(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

impl App {
    /// The whole command line, for verbs that explain it.
    pub fn command(&self) -> clap::Command {
        (self.grammar)()
    }

    /// The state directory, without its store.
    fn state_dir(&self) -> Result<StateDir, Trouble> {
        let (_, path) = config_and_store()?;
        open_state_dir(&path)
    }

    pub fn machine(&self) -> Result<Machine, Trouble> {
        machine_of(&self.state_dir()?)
    }

    /// The locks of the state directory.
    pub fn locks(&self) -> Result<LockDir, Trouble> {
        LockDir::open(&self.state_dir()?.path().join("locks")).map_err(|error| {
            let hint = "tenure config shows where state is kept";
            Trouble::new(Exit::STORE, "store_unavailable", error.to_string(), hint)
        })
    }

    /// Opens the store that the settings name.
    pub fn open(&self) -> Result<Opened, Trouble> {
        let worktree = worktree_here();
        let config = Config::load(&env, worktree.as_ref().map(|found| found.root.as_path()))?;
        let path = store_path(&config)?;
        let state = open_state_dir(&path)?;
        let machine = machine_of(&state)?;
        let boot = observer_of(&machine).boot.clone();
        let mut store = SqliteStore::open(&path, Box::new(move || clock::now(&boot)))
            .map_err(|error| Trouble::from(tenure_service::error::Error::from(error)))?;
        if let Some(news) = store.take_news() {
            warn(format!("warning: {news}"));
        }
        let facts = caller::facts(
            observer_of(&machine).clone(),
            cwd::name().to_string_lossy().into_owned(),
            worktree.as_ref().map(Worktree::repository),
        );
        let mut opened = Opened {
            store: Box::new(store),
            machine,
            facts,
            config,
            dir: state.path().to_owned(),
            repo: worktree.as_ref().map(Worktree::repo),
        };
        if let Some(found) = &worktree {
            let root = found.root.to_string_lossy();
            opened.service().mend_tree_locks(&root);
        }
        if !opened.mirrors().is_empty() && self.mirrored.get().is_none() {
            let newest = opened.service().newest_event()?.value;
            self.mirrored.set(Some(newest));
        }
        Ok(opened)
    }

    /// Shows an answer, and keeps which notices it told.
    pub fn show(&self, shown: &Shown) -> Exit {
        let showed = self.style.show(shown);
        self.delivered(&shown.notices, showed.channel);
        showed.end(self.changes)
    }

    /// Shows a failure, and keeps which notices it told.
    pub fn show_trouble(&self, trouble: &Trouble) -> Exit {
        let showed = self.style.show_trouble(trouble);
        self.delivered(&trouble.notices, showed.channel);
        showed.end(false)
    }

    /// Keeps that notices were written to a channel. Where that fails, they are told again.
    pub fn delivered(&self, notices: &[Notice], channel: Channel) {
        let lost = matches!(channel, Channel::Nowhere | Channel::Quiet);
        if notices.is_empty() || lost {
            return;
        }
        let kept = self.open().and_then(|mut opened| {
            let kept = opened.service().delivered(notices, channel);
            kept.map_err(Trouble::from)
        });
        if let (Err(trouble), true) = (kept, self.verbose) {
            warn(format!(
                "warning: notices will be told again: {}",
                trouble.message
            ));
        }
    }

    /// How many a list shows: people get some unless they say otherwise, programs all.
    pub fn limit(&self, asked: Option<usize>, people: usize) -> usize {
        let otherwise = if self.style.json { 0 } else { people };
        asked.unwrap_or(otherwise)
    }

    /// Who the caller says it acts for.
    pub fn naming(&self, reason: Option<&Reason>) -> Naming {
        Naming {
            session: self.session.clone(),
            reason: reason.cloned(),
        }
    }

    /// Reads a key, completing short forms from the repository of this directory.
    pub fn key(&self, typed: &str) -> Result<Key, Trouble> {
        self.keys(&[typed.to_owned()])
            .map(|mut keys| keys.remove(0))
    }

    /// Reads several keys; one that is malformed spoils all.
    pub fn keys(&self, typed: &[String]) -> Result<Vec<Key>, Trouble> {
        let found = worktree_here();
        let worktree = found.as_ref().map(|found| key::Worktree {
            repository: found.repository(),
            root: found.root.to_string_lossy().into_owned(),
            dir: below_root(found),
        });
        let here = key::Here {
            worktree: worktree.as_ref(),
            exists: cwd::current().is_some(),
            look: &|path| look(found.as_ref(), path),
        };
        let mut keys = Vec::with_capacity(typed.len());
        for text in typed {
            let read = Key::complete(text, &here)?;
            if let Some(note) = read.note.filter(|_| !self.style.json && !self.style.quiet) {
                warn(format!("note: {note}"));
            }
            keys.push(read.key);
        }
        Ok(keys)
    }
}

/// The worktree of the current directory.
fn worktree_here() -> Option<Worktree> {
    git::worktree(&cwd::current()?)
}

/// The current directory, from the root of its worktree.
fn below_root(worktree: &Worktree) -> String {
    let whole = cwd::current().and_then(|dir| fs_err::canonicalize(dir).ok());
    let below = whole.and_then(|dir| Some(dir.strip_prefix(&worktree.root).ok()?.to_owned()));
    below.unwrap_or_default().to_string_lossy().into_owned()
}

/// What stands at a path. A root whose name is not text is found by its bytes.
fn look(worktree: Option<&Worktree>, path: &str) -> Entry {
    let root = worktree.map(|found| (found.root.to_string_lossy(), &found.root));
    let inside = root.and_then(|(text, root)| {
        let below = path.strip_prefix(text.as_ref())?.strip_prefix('/')?;
        Some(root.join(below))
    });
    match fs_err::metadata(inside.unwrap_or_else(|| PathBuf::from(path))) {
        Ok(found) if found.is_dir() => Entry::Directory,
        Ok(_) => Entry::Other,
        Err(_) => Entry::Nothing,
    }
}

fn observer_of(machine: &Machine) -> &tenure_core::process::Observer {
    tenure_core::world::World::observer(machine)
}

fn machine_of(state: &StateDir) -> Result<Machine, Trouble> {
    Machine::new(state.host().clone()).map_err(|error| {
        let message = format!("cannot see the processes of this machine: {error}");
        Trouble::new(Exit::INTERNAL, "internal", message, "tenure needs /proc")
    })
}

/// The settings and the store's path, for `tenure config`.
pub fn config_and_store() -> Result<(Config, PathBuf), Trouble> {
    let worktree = worktree_here();
    let mut config = Config::load(&env, worktree.as_ref().map(|found| found.root.as_path()))?;
    let path = store_path(&config)?;
    let origin = if env("TENURE_HOME").is_some_and(|home| !home.is_empty()) {
        "TENURE_HOME"
    } else {
        "default"
    };
    config.derive("store", path.display().to_string(), origin.to_owned());
    Ok((config, path))
}

fn store_path(config: &Config) -> Result<PathBuf, Trouble> {
    let default = StateDir::locate(&env).map_err(state_trouble);
    let Some(named) = config.store() else {
        return Ok(default?.join(DATABASE));
    };
    if env("TENURE_TEST").is_some_and(|value| value == "1") {
        default?;
    }
    if named.contains("://") {
        let scheme = named.split("://").next().unwrap_or_default();
        let message =
            format!("this version of tenure keeps its state in SQLite only, not in {scheme}");
        return Err(Trouble::new(
            Exit::STORE,
            "store_unavailable",
            message,
            "set store to the path of a file",
        ));
    }
    let path = PathBuf::from(named);
    if path.is_absolute() {
        return Ok(path);
    }
    match cwd::current() {
        Some(dir) => Ok(dir.join(path)),
        None => Err(Trouble::new(
            Exit::STORE,
            "store_unavailable",
            format!(
                "the store {named} is a relative path, and the current directory no longer exists"
            ),
            "change to a directory that exists, or give the store an absolute path",
        )),
    }
}

fn open_state_dir(store: &Path) -> Result<StateDir, Trouble> {
    let dir = store.parent().unwrap_or(Path::new("/"));
    StateDir::open(dir).map_err(state_trouble)
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn state_trouble(error: StateDirError) -> Trouble {
    Trouble::new(
        Exit::STORE,
        "store_unavailable",
        error.to_string(),
        error.hint(),
    )
}

/// The directory that we run in, for what cannot be done without one.
pub fn current_dir() -> Result<PathBuf, Trouble> {
    cwd::current().ok_or_else(|| {
        let message = format!(
            "the current directory {} no longer exists",
            cwd::name().display()
        );
        Trouble::new(
            Exit::NOT_FOUND,
            "not_found",
            message,
            "change to a directory that exists",
        )
    })
}

/// Where something works that runs in this directory; one that was deleted keeps its name.
pub fn place_here() -> Place {
    match place(&cwd::name()) {
        Ok(place) => place,
        Err(_) => Place {
            dir: cwd::name().to_string_lossy().into_owned(),
            ..Place::default()
        },
    }
}

/// Where something works: a directory with its repository and branch.
pub fn place(dir: &Path) -> Result<Place, Trouble> {
    let whole = fs_err::canonicalize(dir).map_err(|error| {
        Trouble::new(
            Exit::NOT_FOUND,
            "not_found",
            error.to_string(),
            "give --dir a directory that exists",
        )
    })?;
    if !whole.is_dir() {
        let message = format!("{} is not a directory", whole.display());
        return Err(Trouble::new(
            Exit::USAGE,
            "usage",
            message,
            "give --dir a directory that exists",
        ));
    }
    let worktree: Option<Worktree> = git::worktree(&whole);
    Ok(Place {
        dir: whole.to_string_lossy().into_owned(),
        repo: worktree.as_ref().map(Worktree::repo),
        branch: worktree.and_then(|found| found.branch),
    })
}
