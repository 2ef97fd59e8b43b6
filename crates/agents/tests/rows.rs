//! Every agent's row is complete: both halves, its own settings, and captured events.

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};

use tenure_agents::install::Format;
use tenure_agents::{ADAPTERS, Adapter, Means, Note, TurnRequest, adapter};
use tenure_core::agent::AGENTS;
use tenure_core::agent_event::Happening;
use tenure_core::id::NativeId;

/// Rows with only one half, and why.
const ONE_HALF: &[(&str, &str)] = &[
    (
        "copilot",
        "it has no hooks of ours: it is known so that Claude's hooks, which it runs, are not taken for Claude's",
    ),
    ("generic", "any program: it has no looks"),
];

fn inside(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("events were captured");
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.expect("they can be read").path())
        .collect();
    all.sort();
    all
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().expect("it has a name");
    name.to_string_lossy().into_owned()
}

/// What was captured from each version of an agent: its row, and the events.
fn captured() -> Vec<(&'static Adapter, Vec<PathBuf>)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/fixtures");
    let row = |dir: &PathBuf| {
        let folder = name_of(dir);
        let name = folder.rsplit_once('-').map(|(name, _)| name);
        name.and_then(adapter)
            .unwrap_or_else(|| panic!("{folder} is not NAME-VERSION of an agent"))
    };
    let folders = inside(&fixtures);
    folders.iter().map(|dir| (row(dir), inside(dir))).collect()
}

#[test]
fn an_agent_has_both_halves_or_says_why_not() {
    let has_looks = |name: &str| AGENTS.iter().any(|spec| spec.name == name);
    let names = AGENTS.iter().map(|spec| spec.name);
    for name in names.chain(ADAPTERS.iter().map(|row| row.name)) {
        let is_whole = has_looks(name) && adapter(name).is_some();
        let excused = ONE_HALF.iter().any(|(known, _)| *known == name);
        assert!(is_whole != excused, "{name} has both halves: {is_whole}");
    }
    for (index, row) in ADAPTERS.iter().enumerate() {
        let first = ADAPTERS.iter().position(|other| other.name == row.name);
        assert_eq!(first, Some(index), "{} has two rows", row.name);
    }
}

/// Core decides which agents can be resumed, the other half with which command.
#[test]
fn both_halves_agree_on_who_can_be_resumed() {
    let id = NativeId::parse("7f3c").expect("it is an id");
    let resume = TurnRequest {
        resume: Some(&id),
        address: None,
        prompt: None,
        flags: &[],
    };
    for spec in AGENTS {
        let line = adapter(spec.name).and_then(|row| row.command(&resume));
        assert_eq!(spec.resumes, line.is_some(), "{}", spec.name);
    }
}

#[test]
fn an_agents_settings_are_its_own() {
    let mut files = Vec::new();
    for row in ADAPTERS {
        let Some(settings) = &row.settings else {
            assert!(row.is_any_program, "{}: nothing makes it call us", row.name);
            continue;
        };
        match &settings.format {
            Format::Hooks(format) => {
                assert_eq!(format.agent, row.name);
                assert!(std::ptr::eq(format.events, row.events), "{}", row.name);
                assert!(format.asked().count() > 0, "{}", row.name);
            }
            Format::Script(_) | Format::Package(_) => {}
        }
        for dir in [settings.home, settings.project] {
            assert!(dir.contains(row.name), "{}: {dir}", row.name);
        }
        let file = (settings.home, settings.file);
        assert!(!files.contains(&file), "{file:?} is two agents'");
        files.push(file);
    }
}

/// Without these, the start of a session goes unnoticed, it does not learn its identity, and no tool is ever
/// blocked.
#[test]
fn a_row_has_the_events_that_a_session_needs() {
    let id = NativeId::parse("7f3c").expect("it is an id");
    let resume = TurnRequest {
        resume: Some(&id),
        address: None,
        prompt: None,
        flags: &[],
    };
    for row in ADAPTERS.iter().filter(|row| !row.is_any_program) {
        let name = row.name;
        for means in [Means::Start, Means::BeforeTool, Means::AfterTool] {
            let found = row.events.iter().any(|event| event.means == means);
            assert!(found, "{name}: no event means {means:?}");
        }
        let heard = |event: &&tenure_agents::EventSpec| event.notes.contains(&Note::ModelReads);
        assert!(row.events.iter().find(heard).is_some(), "{name}");
        let line = row.command(&resume).unwrap_or_default();
        assert!(line.iter().any(|word| word == "7f3c"), "{name}: {line:?}");
        assert!(!row.is_unknown(0, ""), "{name}");
    }
}

#[test]
fn what_was_captured_means_what_the_row_says() {
    let captured = captured();
    for row in ADAPTERS {
        let has_hooks = row
            .settings
            .as_ref()
            .is_some_and(|own| own.hooks().is_some());
        let is_captured = captured.iter().any(|(other, _)| other.name == row.name);
        assert_eq!(has_hooks, is_captured, "{}", row.name);
    }
    for (row, file) in captured
        .iter()
        .flat_map(|(row, files)| files.iter().map(move |file| (row, file)))
    {
        let what = format!("{} {}", row.name, name_of(file));
        let report = row.read(&std::fs::read(file).expect("it can be read"));
        assert!(name_of(file).starts_with(&report.name), "{what}");
        assert!(report.native_id.is_some() && report.dir.is_some(), "{what}");
        let Some(event) = row.events.iter().find(|event| event.name == report.name) else {
            assert_eq!(report.what, Happening::Other, "{what}");
            continue;
        };
        let means = match report.what {
            Happening::Start | Happening::Fork => Means::Start,
            Happening::End { .. } => Means::End,
            Happening::Leaves => Means::Leaves,
            Happening::SubagentStart => Means::SubagentStart,
            Happening::SubagentStop => Means::SubagentStop,
            Happening::Other => match report.tool.as_ref().map(|tool| tool.before) {
                Some(true) => Means::BeforeTool,
                Some(false) => Means::AfterTool,
                None => Means::Other,
            },
        };
        // What a compaction ends was no subagent.
        if event.means != Means::SubagentStop || means != Means::Other {
            assert_eq!(means, event.means, "{what}");
        }
        if let Some(tool) = report
            .tool
            .filter(|_| name_of(file).contains("shell") || name_of(file).contains("Bash"))
        {
            assert!(tool.command.is_some(), "{what}: a shell's command");
        }
    }
}
