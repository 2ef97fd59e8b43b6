//! Missions as people read them.

use tenure_core::time::Timestamp;
use tenure_service::Roster;
use tenure_service::view::{MissionView, ParticipantView, PointerView};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{self, Cell, ago, count, table};

/// Prints what needs attention to stderr, which programs do not read.
pub fn warn(app: &App, warnings: &[String]) {
    if !app.style.json {
        for warning in warnings {
            output::warn(format!("warning: {warning}"));
        }
    }
}

/// What decided which mission is meant, for `-v`.
pub fn decision(app: &App, pointer: &PointerView) -> Lines {
    match (app.verbose, &pointer.mission) {
        (false, _) => Lines::default(),
        (true, Some(mission)) => format!("  {mission}: {}", pointer.evidence).into(),
        (true, None) => format!("  {}", pointer.evidence).into(),
    }
}

pub fn roster(roster: &Roster, app: &App, now: Timestamp) -> Lines {
    let mission = &roster.mission;
    let mut text = Lines::from(format!(
        "{}: {}, {} live, {} driving",
        mission.id,
        count(mission.participants, "participant"),
        mission.live,
        mission.driving
    ));
    let rows: Vec<Vec<Cell>> = roster
        .participants
        .iter()
        .map(|one| row(one, now))
        .collect();
    if !rows.is_empty() {
        let head = ["ROLE", "WHO", "FOCUS", "DRIVE", "STATE", "LAST ACTIVITY"];
        text.extend(&table(&head, &rows));
    }
    let mut told: Vec<&String> = Vec::new();
    for one in &roster.participants {
        let (who, others) = (&one.session.handle, &one.collides_with);
        if let (Some(focus), false, false) = (&one.focus, others.is_empty(), told.contains(&who)) {
            let all = others.join(", ");
            text.line(format!("collision: {who} and {all} both drive {focus}"));
            told.extend(others);
        }
    }
    text.extend(&decision(app, &roster.pointer));
    text
}

fn row(one: &ParticipantView, now: Timestamp) -> Vec<Cell> {
    let drive = if one.collides_with.is_empty() {
        one.drive.to_owned()
    } else {
        format!("{} !", one.drive)
    };
    let state = match one.state {
        "live" => "live".to_owned(),
        state => format!("{state}: {}", one.why),
    };
    vec![
        Cell::plain(one.role.clone()),
        Cell::plain(one.session.handle.clone()),
        Cell::plain(one.focus.clone().unwrap_or_else(|| "-".into())),
        Cell::plain(drive),
        Cell::state(state, one.state),
        Cell::plain(ago(one.last_activity_at, now)),
    ]
}

pub fn missions(missions: &[MissionView]) -> Lines {
    if missions.is_empty() {
        return "no missions; run `tenure mission join MISSION --role ROLE` to start one".into();
    }
    let now = tenure_host::clock::wall();
    let rows: Vec<Vec<Cell>> = missions
        .iter()
        .map(|one| {
            let last = one
                .last_activity_at
                .map_or("-".to_owned(), |at| ago(at, now));
            [
                one.id.clone(),
                one.participants.to_string(),
                one.live.to_string(),
                one.driving.to_string(),
                if one.joined { "yes" } else { "-" }.to_owned(),
                last,
            ]
            .map(Cell::plain)
            .to_vec()
        })
        .collect();
    let head = [
        "MISSION",
        "PARTICIPANTS",
        "LIVE",
        "DRIVING",
        "JOINED",
        "LAST ACTIVITY",
    ];
    table(&head, &rows)
}
