//! What an agent may take from the repository that it works in.
//!
//! A repository that the user's settings do not trust gives an agent no orders: no hooks, servers or settings
//! of its own. Most agents take a flag for that. Gemini's counts only while folder trust is on: where the
//! user switched that off, a run is refused. Codex reads it from its config.toml, so the directory is
//! written down there as untrusted before Codex first starts in it. The file is the user's and Codex writes to
//! it too: it is changed under a lock of ours, in one step, and only if it is still what was read. Qwen Code takes
//! it from settings of the machine: a run gives it a file of its own, unless the machine has one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_agents::install::OffSwitch;
use tenure_agents::install::project_trust::{Distrust, distrust};
use tenure_agents::run::{MachineSettings, OwnFile};
use tenure_core::id::AgentName;
use tenure_host::git::Worktree;
use tenure_host::kernel_lock::{LockDir, LockName, Patience, Sharing};
use tenure_host::settings_file::{SettingsError, SettingsFile};
use tenure_service::answer::{Class, Hint, Problem};

use tenure_app::settings::Env;
use tenure_app::settings::repo::trust_or;

const PATIENCE: Patience = Patience::AtMost(Duration::from_secs(30));
/// How many times the file is read again if another program changed it meanwhile.
const TRIES: usize = 20;
/// The longest settings file.
const MAX_LENGTH: u64 = 1 << 20;

/// Where an agent's own file is, according to its environment.
pub fn own_file(file: OwnFile, env: Env<'_>) -> Option<PathBuf> {
    let set = |name: &str| {
        env(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home = set(file.variable).or_else(|| Some(set("HOME")?.join(file.home)))?;
    Some(home.join(file.name))
}

/// Refuses a run if the user's own settings switch off what keeps a repository from instructing an
/// agent.
pub fn require_switch(
    agent: &AgentName,
    switch: &OffSwitch,
    of: Option<&Worktree>,
    env: Env<'_>,
) -> Result<(), Problem> {
    let settings = tenure_agents::adapter(agent.as_str()).and_then(|row| row.settings.as_ref());
    let Some((settings, format)) = settings.and_then(|one| Some((one, one.hooks()?))) else {
        return Ok(());
    };
    let own = OwnFile {
        variable: settings.variable.map_or("", |(name, _)| name),
        home: settings.home,
        name: settings.file,
    };
    // Without a home the agent has no settings either.
    let Some(file) = own_file(own, env) else {
        return Ok(());
    };
    let text = match tenure_host::read::text(&file, MAX_LENGTH) {
        Ok(text) => text,
        Err(error) if tenure_host::read::is_absent(&error) => return Ok(()),
        Err(error) => return Err(unreadable(agent, &file, &error)),
    };
    if !format.is_off(&text, switch) {
        return Ok(());
    }
    let (name, path) = (file.display(), switch.path.join("."));
    let message = format!(
        "the repository is not trusted, but {name} has {path} = {}, so {agent} would run what the repository tells it to",
        switch.value
    );
    let hint = trust_or(of, &format!("remove {path} from {name}"));
    Err(Problem::new(Class::Invalid, "untrusted", message, hint))
}

/// Gives an agent settings of the machine that keep a repository from giving it orders: the variables that name
/// them. Refused where the machine has settings without that.
pub fn machine_settings(
    agent: &AgentName,
    settings: &MachineSettings,
    (dir, of): (&Path, Option<&Worktree>),
    env: Env<'_>,
) -> Result<Vec<(OsString, OsString)>, Problem> {
    let at = |(variable, usual): (&str, &str)| {
        let named = env(variable).filter(|value| !value.is_empty());
        named.unwrap_or_else(|| usual.into())
    };
    let theirs = PathBuf::from(at(settings.file));
    match tenure_host::read::text(&theirs, MAX_LENGTH) {
        Ok(text) if is_on(agent, &text, settings.on) => return Ok(Vec::new()),
        Ok(_) => return Err(without(agent, &theirs, settings.on, of)),
        Err(error) if tenure_host::read::is_absent(&error) => {}
        Err(error) => return Err(unreadable(agent, &theirs, &error)),
    }
    let file = dir.join("machine-settings.json");
    tenure_host::file::write_private(&file, settings.text.as_bytes())
        .map_err(|error| unreadable(agent, &file, &error))?;
    Ok(vec![
        (settings.file.0.into(), file.into_os_string()),
        (settings.defaults.0.into(), at(settings.defaults)),
    ])
}

fn is_on(agent: &AgentName, text: &str, path: &[&str]) -> bool {
    let settings = tenure_agents::adapter(agent.as_str()).and_then(|row| row.settings.as_ref());
    let format = settings.and_then(|settings| settings.hooks());
    format.is_some_and(|format| format.is_on(text, path))
}

fn without(agent: &AgentName, file: &Path, path: &[&str], of: Option<&Worktree>) -> Problem {
    let (name, path) = (file.display(), path.join("."));
    let message = format!(
        "the repository is not trusted, but {name} does not have {path} = true, so {agent} would run what the repository tells it to"
    );
    let hint = trust_or(of, &format!("set {path} to true in {name}"));
    Problem::new(Class::Invalid, "untrusted", message, hint)
}

fn unreadable(agent: &AgentName, file: &Path, error: &std::io::Error) -> Problem {
    let name = file.display();
    let message = format!(
        "cannot tell whether {agent} would trust the directory, because {name} cannot be read: {error}"
    );
    let hint = Hint::step("correct it, then run the same command again");
    Problem::new(Class::Invalid, "untrusted", message, hint)
}

/// Makes Codex distrust these directories. Refused if its file already trusts one of them.
pub fn distrust_in(
    config: &Path,
    dirs: &[&str],
    of: Option<&Worktree>,
    locks: &LockDir,
) -> Result<(), Problem> {
    let lock = || {
        if let Some(dir) = config.parent() {
            tenure_host::file::make_dirs(dir).map_err(|error| unusable(&error))?;
        }
        let name = LockName::of_path(config).map_err(|error| unusable(&error))?;
        let held = locks.lock(&name, Sharing::Exclusive, PATIENCE);
        held.map_err(|error| unusable(&error))
    };
    let _held = lock()?;
    for _ in 0..TRIES {
        let file = SettingsFile::read(config).map_err(|error| unusable(&error))?;
        let mut text = file.text().unwrap_or_default().to_owned();
        let before = text.clone();
        for dir in dirs {
            text = with(config, text, dir, of)?;
        }
        if text == before {
            return Ok(());
        }
        match file.write(&text) {
            Ok(()) => return Ok(()),
            Err(SettingsError::Changed { .. }) => {}
            Err(error) => return Err(unusable(&error)),
        }
    }
    Err(unusable(&format!(
        "{} is being changed by another program",
        config.display()
    )))
}

/// The text of the file with this directory marked as untrusted.
fn with(config: &Path, text: String, dir: &str, of: Option<&Worktree>) -> Result<String, Problem> {
    match distrust(&text, dir) {
        Ok(Distrust::AsItIs) => Ok(text),
        Ok(Distrust::Text(text)) => Ok(text),
        Ok(Distrust::OtherLevel(level)) => Err(trusted_there(config, dir, &level, of)),
        Err(refusal) => Err(unusable(&format!("{}, {refusal}", config.display()))),
    }
}

fn trusted_there(config: &Path, dir: &str, level: &str, of: Option<&Worktree>) -> Problem {
    let file = config.display();
    let message = format!(
        "the repository is not trusted, but {file} marks {dir} as {level}, so Codex would run what the repository tells it to"
    );
    let hint = trust_or(of, &format!("remove [projects.\"{dir}\"] from {file}"));
    Problem::new(Class::Invalid, "untrusted", message, hint)
}

fn unusable(why: &dyn std::fmt::Display) -> Problem {
    let hint = Hint::step("correct it, then run the same command again");
    let message = format!("cannot tell Codex not to trust the directory: {why}");
    Problem::new(Class::Invalid, "untrusted", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, LockDir) {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("codex/config.toml");
        let locks = LockDir::open(&dir.path().join("locks")).unwrap();
        (dir, config, locks)
    }

    #[test]
    fn a_directory_is_written_down_once_and_the_file_stays_the_users() {
        let (_keep, config, locks) = place();
        let dirs = ["/w/issue-6", "/w/issue-6/sub"];
        distrust_in(&config, &dirs, None, &locks).unwrap();
        let made = fs_err::read_to_string(&config).unwrap();
        assert_eq!(
            made,
            "[projects.\"/w/issue-6\"]\ntrust_level = \"untrusted\"\n\n[projects.\"/w/issue-6/sub\"]\ntrust_level = \"untrusted\"\n"
        );
        distrust_in(&config, &dirs, None, &locks).unwrap();
        assert_eq!(fs_err::read_to_string(&config).unwrap(), made);
        let theirs = "# mine\nmodel = \"o3\"\n";
        fs_err::write(&config, theirs).unwrap();
        distrust_in(&config, &dirs[..1], None, &locks).unwrap();
        assert!(fs_err::read_to_string(&config).unwrap().starts_with(theirs));
    }

    #[test]
    fn f_r29_a_directory_that_codex_trusts_is_refused_and_nothing_changes() {
        let (_keep, config, locks) = place();
        fs_err::create_dir_all(config.parent().unwrap()).unwrap();
        let text = "[projects.\"/w/b\"]\ntrust_level = \"trusted\"\n";
        fs_err::write(&config, text).unwrap();
        let dirs = ["/w/a", "/w/b"];
        let problem = distrust_in(&config, &dirs, None, &locks).unwrap_err();
        assert_eq!(
            (problem.class, problem.kind.as_str()),
            (Class::Invalid, "untrusted")
        );
        assert!(
            problem.message.contains("/w/b as trusted"),
            "{}",
            problem.message
        );
        assert_eq!(fs_err::read_to_string(&config).unwrap(), text);
        fs_err::write(&config, "a = = 1\n").unwrap();
        assert!(distrust_in(&config, &dirs, None, &locks).is_err());
        assert_eq!(fs_err::read_to_string(&config).unwrap(), "a = = 1\n");
    }

    #[test]
    fn f_r29_an_agent_whose_user_switched_the_protection_off_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let gemini = AgentName::parse("gemini").unwrap();
        let home = dir.path().as_os_str().to_owned();
        let env = move |name: &str| (name == "HOME").then(|| home.clone());
        let switch = OffSwitch {
            path: &["security", "folderTrust", "enabled"],
            value: false,
        };
        let ask = || require_switch(&gemini, &switch, None, &env);
        ask().unwrap();
        let file = dir.path().join(".gemini/settings.json");
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(&file, r#"{"security":{"folderTrust":{"enabled":true}}}"#).unwrap();
        ask().unwrap();
        let off = "{\"security\":{ // not at home\n\"folderTrust\":{\"enabled\":false}}}";
        fs_err::write(&file, off).unwrap();
        let problem = ask().unwrap_err();
        assert_eq!(problem.kind, "untrusted");
        let named = "security.folderTrust.enabled = false";
        assert!(problem.message.contains(named), "{}", problem.message);
    }

    #[test]
    fn f_r29_settings_of_the_machine_stay_in_force() {
        let dir = tempfile::tempdir().unwrap();
        let qwen = AgentName::parse("qwen").unwrap();
        let theirs = dir.path().join("theirs.json");
        let settings = MachineSettings {
            file: ("SETTINGS", "/nowhere/settings.json"),
            defaults: ("DEFAULTS", "/nowhere/defaults.json"),
            text: "{}",
            on: &["security", "folderTrust", "enabled"],
        };
        let ask = |named: Option<&Path>| {
            let named = named.map(|file| file.as_os_str().to_owned());
            let env = move |name: &str| named.clone().filter(|_| name == "SETTINGS");
            machine_settings(&qwen, &settings, (dir.path(), None), &env)
        };
        let ours = dir.path().join("machine-settings.json");
        let given: Vec<(OsString, OsString)> = vec![
            ("SETTINGS".into(), ours.clone().into()),
            ("DEFAULTS".into(), "/nowhere/defaults.json".into()),
        ];
        assert_eq!(ask(None).unwrap(), given);
        assert_eq!(fs_err::read_to_string(&ours).unwrap(), "{}");
        assert_eq!(ask(Some(&theirs)).unwrap(), given);
        fs_err::write(&theirs, "{\"ui\": {}} // of the machine").unwrap();
        let problem = ask(Some(&theirs)).unwrap_err();
        assert_eq!(problem.kind, "untrusted");
        let named = "security.folderTrust.enabled = true";
        assert!(problem.message.contains(named), "{}", problem.message);
        fs_err::write(
            &theirs,
            r#"{"security": {"folderTrust": {"enabled": true}}}"#,
        )
        .unwrap();
        assert_eq!(ask(Some(&theirs)).unwrap(), []);
    }

    const FILE: OwnFile = OwnFile {
        variable: "CODEX_HOME",
        home: ".codex",
        name: "config.toml",
    };

    #[test]
    fn the_file_is_where_codex_looks_for_it() {
        let at = |variables: &'static [(&'static str, &'static str)]| {
            own_file(FILE, &move |name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(at(&[("HOME", "/h")]), path("/h/.codex/config.toml"));
        assert_eq!(
            at(&[("HOME", "/h"), ("CODEX_HOME", "/c")]),
            path("/c/config.toml")
        );
        assert_eq!(
            at(&[("HOME", "/h"), ("CODEX_HOME", "")]),
            path("/h/.codex/config.toml")
        );
        assert_eq!(at(&[]), None);
    }
}
