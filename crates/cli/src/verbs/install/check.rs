//! `install --check`: the state of every place, the usual ones and those in the register.

use std::path::Path;

use serde_json::{Value, json};
use tenure_agents::install::{StatusLine, word_of};
use tenure_host::read;

use crate::exit::Exit;
use crate::hooks_setup::add;
use crate::hooks_setup::git_hooks::{GitHooks, GitHooksReport};
use crate::hooks_setup::place::InstallScope;
use crate::hooks_setup::plan::{MAX_LENGTH, Plan, SetupTarget, State, hash};
use crate::hooks_setup::register::{Edit, GIT, Kind, Register, without_links};
use crate::hooks_setup::undo::{Group, grouped};
use crate::output::{Cell, CliError, Outcome, Output, table};

/// The listed edits of these agents; of all where none is named.
pub fn elsewhere(register: &Register, names: &[String]) -> Vec<Edit> {
    let is_meant = |edit: &&Edit| names.is_empty() || names.contains(&edit.agent);
    register.edits().iter().filter(is_meant).cloned().collect()
}

struct Row {
    cells: Vec<Cell>,
    json: Value,
    notes: Vec<String>,
    is_well: bool,
}

pub fn checked(
    mut plans: Vec<Plan>,
    git: Option<GitHooks>,
    elsewhere: Vec<Edit>,
    wanted: &SetupTarget,
    register: &Register,
) -> Outcome {
    for plan in &mut plans {
        plan.tell_who_runs_another(register);
    }
    let is_usual = |group: &Group| {
        let same = |plan: &Plan| {
            plan.place.agent == group.place.agent
                && without_links(&plan.place.file()) == without_links(&group.place.file())
        };
        plans.iter().any(same)
    };
    let (gits, others): (Vec<Edit>, Vec<Edit>) = elsewhere
        .into_iter()
        .partition(|edit| edit.kind == Kind::Git);
    let mut gits: Vec<GitHooks> = gits.iter().map(GitHooks::of).collect();
    if let Some(here) = git {
        gits.retain(|other| without_links(other.dir()) != without_links(here.dir()));
        gits.insert(0, here);
    }
    let mut rows = Vec::new();
    let others: Vec<Group> = grouped(others)
        .into_iter()
        .filter(|group| !is_usual(group))
        .collect();
    rows.extend(plans.iter().map(row));
    for group in others {
        if group.place.scope == InstallScope::Plugin {
            rows.push(plugin_row(&group));
        } else if group.edits.iter().any(|edit| edit.kind != Kind::Sandbox) {
            let Group { place, .. } = group;
            let mut plan = Plan::install(place, wanted)?;
            plan.tell_who_runs_another(register);
            rows.push(row(&plan));
        }
    }
    for git in &gits {
        rows.push(git_row(git, &wanted.program)?);
    }
    Ok(shown(rows))
}

fn shown(rows: Vec<Row>) -> Output {
    let all_well = rows.iter().all(|row| row.is_well);
    let (mut cells, mut agents, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        cells.push(row.cells);
        agents.push(row.json);
        notes.extend(row.notes);
    }
    let mut text = table(&["AGENT", "STATE", "MODE", "SCOPE", "FILE"], &cells);
    for note in notes {
        add(&mut text, &note);
    }
    if !all_well {
        add(&mut text, "run `tenure install` to set them up");
    }
    let exit = if all_well { Exit::DONE } else { Exit::REFUSED };
    Output::new("agents", &agents, text).exit(exit)
}

fn row(plan: &Plan) -> Row {
    let is_there = matches!(plan.state, State::Installed | State::Outdated);
    let place = &plan.place;
    let mode = plan.mode.filter(|_| is_there).map_or("-", word_of);
    let mut json = plan.json(plan.state);
    json["changed"] = Value::from(false);
    json["files"] = Value::Array(Vec::new());
    let mut notes = Vec::new();
    let status_line = plan.status_line.filter(|_| is_there);
    notes.extend(status_line.map(|whose| status_line_note(place.agent, whose)));
    if is_there && plan.mcp == Some(true) {
        notes.push(format!("{}: the MCP server is installed", place.agent));
    }
    if let Some(gone) = &plan.gone {
        let agent = place.agent;
        notes.push(format!(
            "{agent}: no hook runs: {gone} is gone; run `tenure install {agent}` to use this tenure"
        ));
    }
    if is_there {
        json["notes"] = Value::from(plan.notes.clone());
        notes.extend(
            plan.notes
                .iter()
                .map(|note| format!("{}: {note}", place.agent)),
        );
    } else {
        json["mode"] = Value::Null;
        json["notes"] = Value::Array(Vec::new());
    }
    Row {
        cells: cells(
            place.agent,
            plan.state,
            mode,
            place.scope.word(),
            &place.file(),
        ),
        json,
        notes,
        is_well: matches!(plan.state, State::Installed | State::NotFound),
    }
}

fn status_line_note(agent: &str, whose: StatusLine) -> String {
    match whose {
        StatusLine::Ours => format!("{agent}: the status line is installed"),
        StatusLine::Another => format!(
            "{agent}: another status line is set; call `tenure statusline {agent}` from it to show both"
        ),
        StatusLine::Absent => format!(
            "{agent}: the status line is not installed; run `tenure install {agent} --statusline` to add it"
        ),
    }
}

/// A plugin is unchanged, edited by someone else, or gone.
fn plugin_row(group: &Group) -> Row {
    let as_written = |edit: &Edit| {
        let text = read::text(&edit.file, MAX_LENGTH).unwrap_or_default();
        edit.hashes.contains(&hash(&text))
    };
    let place = &group.place;
    let state = match (place.found, group.edits.iter().all(as_written)) {
        (false, _) => State::NotFound,
        (true, true) => State::Installed,
        (true, false) => State::Outdated,
    };
    let json = json!({
        "agent": place.agent,
        "state": state.word().replace(' ', "_"),
        "found": place.found,
        "scope": place.scope.word(),
        "file": place.dir,
        "mode": null,
        "trust": null,
        "changed": false,
        "files": [],
        "notes": [],
    });
    Row {
        cells: cells(place.agent, state, "-", place.scope.word(), &place.dir),
        json,
        notes: Vec::new(),
        is_well: state != State::Outdated,
    }
}

fn git_row(git: &GitHooks, program: &str) -> Result<Row, CliError> {
    let state = if git.dir().parent().is_some_and(Path::is_dir) {
        git.state(program)?
    } else {
        State::NotFound
    };
    Ok(Row {
        cells: cells(GIT, state, "-", "project", git.dir()),
        json: git.json(state, &GitHooksReport::nothing()),
        notes: Vec::new(),
        is_well: matches!(state, State::Installed | State::NotFound),
    })
}

fn cells(agent: &str, state: State, mode: &str, scope: &str, file: &Path) -> Vec<Cell> {
    let colour = match state {
        State::Installed => "live",
        State::Outdated => "unknown",
        State::NotInstalled => "dead",
        State::NotFound => "ended",
    };
    vec![
        Cell::plain(agent),
        Cell::state(state.word(), colour),
        Cell::plain(mode),
        Cell::plain(scope),
        Cell::plain(file.display().to_string()),
    ]
}
