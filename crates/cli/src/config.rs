//! Settings, each with where it came from.
//!
//! Later layers win: defaults, /etc/tenure/config.toml, the user's config.toml, the environment. A
//! project's `.tenure.toml` may set only what cannot move state, run commands or loosen a guard; anything
//! else there is ignored and said by `tenure config`, because a cloned repository is not trusted.
//! A file that does not parse, or a value that is malformed, is an error that names file and key.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tenure_core::policy::Policy;
use tenure_core::time::Span;
use tenure_host::read;
use tenure_service::answer::Class;

use crate::mirrors::setting::{self, Mirror};
use crate::output::Trouble;

/// No file of settings is longer.
const LONGEST: u64 = 1 << 20;

/// One setting that exists.
struct Known {
    key: &'static str,
    variable: &'static str,
    default: &'static str,
    /// Whether a project's file may set it.
    project: bool,
    kind: Kind,
    about: &'static str,
}

/// What a setting's value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Path,
    /// A span of time, such as `10m`.
    Span,
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Several texts, none with a comma.
    List,
}

const KNOWN: &[Known] = &[
    Known {
        key: "store",
        variable: "TENURE_STORE",
        default: "",
        project: false,
        kind: Kind::Path,
        about: "the database file; by default tenure.db in the state directory",
    },
    Known {
        key: "lease",
        variable: "TENURE_LEASE",
        default: "10m",
        project: false,
        kind: Kind::Span,
        about: "how long a session counts as living where nobody can tell",
    },
    Known {
        key: "lock_delay",
        variable: "TENURE_LOCK_DELAY",
        default: "15s",
        project: false,
        kind: Kind::Span,
        about: "how much longer its claims stay its own after that",
    },
    Known {
        key: "stalled_after",
        variable: "TENURE_STALLED_AFTER",
        default: "15m",
        project: true,
        kind: Kind::Span,
        about: "silence in one turn after which a session is shown as stalled",
    },
    Known {
        key: "agent.brief",
        variable: "TENURE_AGENT_BRIEF",
        default: "true",
        project: true,
        kind: Kind::Switch,
        about: "whether a model is told at its start who it is and who else works here",
    },
    Known {
        key: "ps.unmanaged",
        variable: "TENURE_PS_UNMANAGED",
        default: "true",
        project: true,
        kind: Kind::Switch,
        about: "whether agents that run without hooks are shown",
    },
    Known {
        key: "guard.mode",
        variable: "TENURE_GUARD_MODE",
        default: "",
        project: false,
        kind: Kind::Word(&["observe", "warn", "block"]),
        about: "what is done about a tool under another session's feet; by default as installed",
    },
    Known {
        key: "guard.require_claim",
        variable: "TENURE_GUARD_REQUIRE_CLAIM",
        default: "",
        project: false,
        kind: Kind::Path,
        about: "what a claim must look like for a file to be written at all, such as issue:*",
    },
    Known {
        key: "guard.on_error",
        variable: "TENURE_GUARD_ON_ERROR",
        default: "open",
        project: false,
        kind: Kind::Word(&["open", "closed"]),
        about: "whether a write waits where nobody can tell whether it may go ahead",
    },
    Known {
        key: "missions.roles",
        variable: "TENURE_MISSIONS_ROLES",
        default: "",
        project: true,
        kind: Kind::List,
        about: "the roles that a participant may have; any, where none is listed",
    },
];

/// A setting and where it came from.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Setting {
    /// Its name.
    pub key: &'static str,
    pub value: String,
    /// The layer that decided: `default`, a file, or a variable.
    pub origin: String,
    pub about: &'static str,
}

/// A line of a project's file that does not count.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Ignored {
    pub file: String,
    /// The key, or what is wrong with the file.
    pub key: String,
    /// Why it does not count.
    pub why: String,
}

/// All settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// In their documented order.
    pub settings: Vec<Setting>,
    /// What a project's file said in vain.
    pub ignored: Vec<Ignored>,
    /// Files that show sessions to other tools.
    pub mirrors: Vec<Mirror>,
}

/// Reads the environment; given in by main so that tests and layers agree.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Config {
    /// Loads every layer.
    pub fn load(env: Env<'_>, project_root: Option<&Path>) -> Result<Self, Trouble> {
        let mut config = Self::defaults();
        config.read_file(Path::new("/etc/tenure/config.toml"), false)?;
        if let Some(path) = user_file(env) {
            config.read_file(&path, false)?;
        }
        if let Some(root) = project_root {
            config.read_file(&root.join(".tenure.toml"), true)?;
        }
        for known in KNOWN {
            if let Some(value) = env(known.variable).filter(|value| !value.is_empty()) {
                let why = "it is not UTF-8 text";
                let text = value.into_string();
                let text = text.map_err(|_| malformed(known.variable, known.key, why))?;
                config.set(known, text, known.variable.to_owned())?;
            }
        }
        Ok(config)
    }

    fn defaults() -> Self {
        let settings = KNOWN
            .iter()
            .map(|known| Setting {
                key: known.key,
                value: known.default.to_owned(),
                origin: "default".to_owned(),
                about: known.about,
            })
            .collect();
        Self {
            settings,
            ignored: Vec::new(),
            mirrors: Vec::new(),
        }
    }

    fn set(&mut self, known: &Known, value: String, origin: String) -> Result<(), Trouble> {
        check(known, &value).map_err(|why| malformed(&origin, known.key, &why))?;
        if let Some(setting) = self
            .settings
            .iter_mut()
            .find(|setting| setting.key == known.key)
        {
            setting.value = value;
            setting.origin = origin;
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, project: bool) -> Result<(), Trouble> {
        let origin = path.display().to_string();
        let table = match read_table(path) {
            Ok(Some(table)) => table,
            Ok(None) => return Ok(()),
            Err(why) if project => {
                self.ignore(&origin, "the whole file", why);
                return Ok(());
            }
            Err(why) => return Err(malformed(&origin, "the file", &why)),
        };
        for (key, value) in flat(table) {
            if key == "mirror" && !project {
                let found = setting::parse(&value, &origin);
                let found = found.map_err(|why| malformed(&origin, "mirror", &why))?;
                self.mirrors.extend(found);
                continue;
            }
            let known = KNOWN.iter().find(|known| known.key == key);
            match known {
                Some(known) if !project || known.project => {
                    let Some(text) = known.kind.text(&value) else {
                        let why = known.kind.expected();
                        if project {
                            self.ignore(&origin, &key, why);
                            continue;
                        }
                        return Err(malformed(&origin, &key, &why));
                    };
                    match self.set(known, text, origin.clone()) {
                        Err(trouble) if project => {
                            self.ignore(&origin, &key, trouble.problem.message)
                        }
                        other => other?,
                    }
                }
                Some(_) => self.ignore(&origin, &key, "a project's file may not set it".into()),
                None if project && key.split('.').next() == Some("mirror") => {
                    self.ignore(&origin, &key, "a project's file may not set it".into());
                }
                None if project => self.ignore(&origin, &key, "it is not a setting".into()),
                None => {
                    let names: Vec<&str> = KNOWN.iter().map(|known| known.key).collect();
                    let why = format!("it is not a setting; there are {}", names.join(", "));
                    return Err(malformed(&origin, &key, &why));
                }
            }
        }
        Ok(())
    }

    fn ignore(&mut self, file: &str, key: &str, why: String) {
        self.ignored.push(Ignored {
            file: file.to_owned(),
            key: key.to_owned(),
            why,
        });
    }

    /// The value of a setting.
    fn get(&self, key: &str) -> &str {
        let found = self.settings.iter().find(|setting| setting.key == key);
        found.map_or("", |setting| setting.value.as_str())
    }

    fn span(&self, key: &str) -> std::time::Duration {
        let parsed = self.get(key).parse::<Span>();
        parsed.map_or_else(|_| std::time::Duration::ZERO, |span| span.0)
    }

    /// The times that decide where nobody can tell.
    pub fn policy(&self) -> Policy {
        Policy {
            lease: self.span("lease"),
            lock_delay: self.span("lock_delay"),
            stalled_after: self.span("stalled_after"),
        }
    }

    /// The text of a setting, if it was set.
    pub fn text(&self, key: &str) -> Option<&str> {
        Some(self.get(key)).filter(|text| !text.is_empty())
    }

    /// Whether a switch is on.
    pub fn is_on(&self, key: &str) -> bool {
        self.get(key) == "true"
    }

    /// Whether writes are blocked when the store is unavailable.
    pub fn closes_on_error(&self) -> bool {
        self.get("guard.on_error") == "closed"
    }

    /// The roles that a participant of a mission may have; none listed means any.
    pub fn roles(&self) -> Vec<String> {
        let listed = self.get("missions.roles").split(',').map(str::trim);
        listed
            .filter(|role| !role.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Where the store is, if that was set.
    pub fn store(&self) -> Option<&str> {
        Some(self.get("store")).filter(|store| !store.is_empty())
    }

    /// Fills in a value that is derived, for showing.
    pub fn derive(&mut self, key: &str, value: String, origin: String) {
        if let Some(setting) = self
            .settings
            .iter_mut()
            .find(|s| s.key == key && s.value.is_empty())
        {
            setting.value = value;
            setting.origin = origin;
        }
    }
}

fn check(known: &Known, value: &str) -> Result<(), String> {
    match known.kind {
        Kind::Path | Kind::List => Ok(()),
        Kind::Span => value.parse::<Span>().map(|_| ()).map_err(|error| error.why),
        Kind::Switch if matches!(value, "true" | "false") => Ok(()),
        Kind::Word(words) if words.contains(&value) => Ok(()),
        Kind::Switch | Kind::Word(_) => Err(known.kind.expected()),
    }
}

impl Kind {
    /// The text of a value of this kind.
    fn text(self, value: &toml::Value) -> Option<String> {
        match self {
            Kind::Switch => value.as_bool().map(|on| on.to_string()),
            Kind::Path | Kind::Span | Kind::Word(_) => value.as_str().map(str::to_owned),
            Kind::List => {
                let texts = value.as_array()?.iter().map(toml::Value::as_str);
                let texts = texts.collect::<Option<Vec<&str>>>()?;
                let plain = |text: &&str| !text.trim().is_empty() && !text.contains(',');
                texts.iter().all(plain).then(|| texts.join(", "))
            }
        }
    }

    fn expected(self) -> String {
        match self {
            Kind::Switch => "expected true or false".to_owned(),
            Kind::List => "expected a list of strings in quotes, without commas in them".to_owned(),
            Kind::Path | Kind::Span => "expected a string in quotes".to_owned(),
            Kind::Word(words) => format!("expected one of {}", words.join(", ")),
        }
    }
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
    let text = match read::text(path, LONGEST) {
        Ok(text) => text,
        Err(error) if read::is_absent(&error) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    text.parse::<toml::Table>()
        .map(Some)
        .map_err(|error| error.message().to_owned())
}

/// The user's file: `$XDG_CONFIG_HOME/tenure/config.toml`, else `~/.config/tenure/config.toml`.
pub fn user_file(env: Env<'_>) -> Option<PathBuf> {
    let config_home = env("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let base = config_home.or_else(|| {
        let home = env("HOME").filter(|home| !home.is_empty())?;
        Some(PathBuf::from(home).join(".config"))
    })?;
    Some(base.join("tenure").join("config.toml"))
}

fn malformed(origin: &str, key: &str, why: &str) -> Trouble {
    let message = format!("{key} in {origin} is not valid: {why}");
    Trouble::new(
        Class::Usage,
        "config",
        message,
        "tenure config shows every setting and where it came from",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(user: &str, project: &str, variables: &[(&str, &str)]) -> Result<Config, Trouble> {
        let dir = tempfile::tempdir().unwrap();
        let xdg = dir.path().join("xdg");
        fs_err::create_dir_all(xdg.join("tenure")).unwrap();
        fs_err::write(xdg.join("tenure/config.toml"), user).unwrap();
        fs_err::write(dir.path().join(".tenure.toml"), project).unwrap();
        let env = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some(xdg.clone().into_os_string()),
            _ => variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value)),
        };
        Config::load(&env, Some(dir.path()))
    }

    #[test]
    fn later_layers_win_and_say_where_they_are() {
        let config = load(
            "lease = \"5m\"\nlock_delay = \"1s\"",
            "",
            &[("TENURE_LEASE", "2m")],
        )
        .unwrap();
        assert_eq!(config.policy().lease.as_secs(), 120);
        assert_eq!(config.policy().lock_delay.as_secs(), 1);
        let origin = |key: &str| {
            config
                .settings
                .iter()
                .find(|s| s.key == key)
                .unwrap()
                .origin
                .clone()
        };
        assert_eq!(origin("lease"), "TENURE_LEASE");
        assert!(origin("lock_delay").ends_with("config.toml"));
        assert_eq!(origin("stalled_after"), "default");
    }

    #[test]
    fn f_h16_a_projects_file_cannot_move_state() {
        let project =
            "store = \"/tmp/evil.db\"\nlease = \"1ms\"\nstalled_after = \"1m\"\nrun = \"evil\"";
        let config = load("", project, &[]).unwrap();
        assert_eq!(config.store(), None);
        assert_eq!(config.policy().lease.as_secs(), 600);
        assert_eq!(config.policy().stalled_after.as_secs(), 60);
        let ignored: Vec<&str> = config.ignored.iter().map(|i| i.key.as_str()).collect();
        assert_eq!(ignored, ["lease", "run", "store"]);
        assert!(load("", "not toml", &[]).is_ok());
    }

    #[test]
    fn mirrors_are_the_users_alone_to_set() {
        let mirror = "[[mirror]]\npath = \"/tmp/x\"";
        assert_eq!(load(mirror, "", &[]).unwrap().mirrors.len(), 1);
        let config = load("", mirror, &[]).unwrap();
        assert_eq!((config.mirrors.len(), config.ignored.len()), (0, 1));
        let config = load("", "[mirror]\npath = \"/tmp/x\"", &[]).unwrap();
        assert_eq!((config.mirrors.len(), config.ignored.len()), (0, 1));
        for bad in ["[[mirror]]\nformat = \"xml\"", "[mirror]\npath = \"/x\""] {
            assert!(
                load(bad, "", &[])
                    .unwrap_err()
                    .problem
                    .message
                    .contains("mirror"),
                "{bad}"
            );
        }
    }

    #[test]
    fn roles_are_a_list() {
        let roles = |user: &str, env: &[(&str, &str)]| load(user, "", env).unwrap().roles();
        assert_eq!(roles("", &[]), [""; 0]);
        assert_eq!(
            roles("[missions]\nroles = [\"a\", \"b c\"]", &[]),
            ["a", "b c"]
        );
        assert_eq!(roles("", &[("TENURE_MISSIONS_ROLES", "x,y")]), ["x", "y"]);
        for bad in [
            "roles = \"a\"",
            "roles = [1]",
            "roles = [\"\"]",
            "roles = [\"a,b\"]",
        ] {
            assert!(
                load(&format!("[missions]\n{bad}"), "", &[]).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_bad_value_names_file_and_key() {
        for (user, word) in [
            ("lease = \"-5m\"", "lease"),
            ("lease = 5", "lease"),
            ("leese = \"5m\"", "leese"),
            ("x", "the file"),
        ] {
            let trouble = load(user, "", &[]).unwrap_err();
            assert!(
                trouble.problem.message.contains(word)
                    && trouble.problem.message.contains("config.toml"),
                "{}",
                trouble.problem.message
            );
            assert_eq!(trouble.problem.class, Class::Usage);
        }
        assert!(load("", "", &[("TENURE_LEASE", "100y")]).is_err());
    }
}
