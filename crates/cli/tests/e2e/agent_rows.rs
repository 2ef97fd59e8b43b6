//! What must hold for every agent that has a row, the newest too.

use std::path::{Path, PathBuf};

use tenure_agents::Adapter;
use tenure_testkit::Env;

use crate::env;
use crate::support::hook::{captured, only, send};

/// The rows with settings.
fn rows() -> impl Iterator<Item = &'static Adapter> {
    let rows = tenure_agents::ADAPTERS.iter();
    rows.filter(|row| row.settings.is_some())
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("it can be read").flatten();
    let inside = |path: PathBuf| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    };
    entries.flat_map(|entry| inside(entry.path())).collect()
}

/// An environment in which no agent is to be found.
fn bare() -> Env {
    let mut env = env();
    env.set("PATH", "/nowhere");
    env
}

#[test]
fn installing_for_one_agent_touches_its_own_settings_alone() {
    for row in rows() {
        let env = bare();
        let settings = row.settings.as_ref().expect("it has some");
        env.tenure(&["install", row.name]).ok();
        let own = env.home().join(settings.home);
        for file in files(&env.home()) {
            assert!(file.starts_with(&own), "{}: {}", row.name, file.display());
        }
        let text = std::fs::read_to_string(own.join(settings.file)).expect("it was made");
        let calls = text.contains(&format!("hook {}", row.name));
        let calls_by_words = text.contains(&format!("\"hook\",\"{}\"", row.name));
        assert!(calls || calls_by_words, "{text}");
        env.tenure(&["uninstall", row.name]).ok();
        assert_eq!(files(&env.home()), Vec::<PathBuf>::new(), "{}", row.name);
    }
}

#[test]
fn every_agent_is_in_the_help_and_the_completions() {
    let env = bare();
    for words in [
        &["install", "--help"][..],
        &["uninstall", "--help"],
        &["hook", "--help"],
        &["__complete", "fish", "--", "install", ""],
    ] {
        let shown = env.tenure(words).ok();
        for row in rows() {
            assert!(shown.stdout.contains(row.name), "{}: {shown}", row.name);
        }
    }
}

/// The start that was captured from each agent is a session of the process that sent it, and the file that it
/// names is its transcript.
#[test]
fn a_captured_start_is_a_session() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for folder in std::fs::read_dir(fixtures).expect("they are there") {
        let folder = folder.expect("it can be read").file_name();
        let folder = folder.to_str().expect("it is text");
        let (name, _) = folder.rsplit_once('-').expect("NAME-VERSION");
        let env = env();
        let agent = env.agent(name);
        let id = "9e376dfe-0fed-4fb8-bcfe-3760d9492ad2";
        send(
            &agent,
            name,
            &captured(&env, &format!("{folder}/SessionStart.startup"), id),
        );
        let session = only(&env);
        assert_eq!(session["agent"], name, "{session:#}");
        assert_eq!(session["native_id"], id, "{session:#}");
        assert_eq!(session["process"]["pid"], agent.pid(), "{session:#}");
        assert_eq!(session["activity"], "idle", "{session:#}");
        let log = env.tenure(&["log", "--json"]).ok();
        assert!(!log.stdout.contains("contamination"), "{log}");
    }
}
