//! The mission of a session as people read it.

use tenure_service::Membership;

use crate::lines::Lines;

/// The active mission of a session, and its part in it.
pub fn membership(mission: &Membership) -> Lines {
    let mut text = Lines::default();
    let mut row = |name: &str, value: &str| {
        text.line(format!("  {name:<13} {value}"));
    };
    if let Some(one) = &mission.participant {
        row(
            "mission",
            &format!("{} ({})", one.mission, mission.pointer.evidence),
        );
        row("role", &one.role);
        row("focus", one.focus.as_deref().unwrap_or("none"));
        row("drive", one.drive);
        if !one.collides_with.is_empty() {
            row("collides", &one.collides_with.join(", "));
        }
    }
    for fault in mission.pointer.passed_over.iter().chain(&mission.faults) {
        row("but", &fault.to_string());
    }
    text
}
