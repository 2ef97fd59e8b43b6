//! Participants that work on the same focus.

use std::collections::{BTreeMap, BTreeSet};

use super::name::{Drive, Focus};
use super::record::{Participant, StoredParticipant};
use crate::id::SessionId;

/// A participant, and whether its session is gone: ended, proved dead, or expired and not checkable.
#[derive(Debug, Clone, Copy)]
pub struct ParticipantState<'a> {
    pub participant: &'a Participant,
    pub gone: bool,
}

impl<'a> ParticipantState<'a> {
    /// What it works on: nothing if its session is gone.
    pub fn drives(&self) -> Option<&'a Focus> {
        match (self.gone, self.participant.drive) {
            (false, Drive::Active) => self.participant.focus.as_ref(),
            (true, _) | (false, Drive::Inactive) => None,
        }
    }

    /// Whether both work on the same focus.
    pub fn collides_with(&self, other: &ParticipantState<'_>) -> bool {
        self.participant.session != other.participant.session
            && self.drives().is_some()
            && self.drives() == other.drives()
    }
}

/// Who works on each focus of a mission. An invalid row works on nothing.
pub fn drivers(
    rows: &[StoredParticipant],
    is_gone: impl Fn(SessionId) -> bool,
) -> BTreeMap<(&str, &str), BTreeSet<SessionId>> {
    let mut drivers: BTreeMap<(&str, &str), BTreeSet<SessionId>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !is_gone(row.session)) {
        let focus = row.focus.as_deref().unwrap_or("none");
        let drives = Drive::parse(&row.drive) == Ok(Drive::Active)
            && matches!(Focus::parse(focus), Ok(Some(_)));
        if drives {
            let of_focus = drivers.entry((&row.mission, focus)).or_default();
            of_focus.insert(row.session);
        }
    }
    drivers
}

/// The sessions among these rows that work on the same focus as another. An invalid row works on nothing.
pub fn colliding(
    rows: &[StoredParticipant],
    is_gone: impl Fn(SessionId) -> bool,
) -> BTreeSet<SessionId> {
    let several = drivers(rows, is_gone)
        .into_values()
        .filter(|all| all.len() > 1);
    several.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mission::{MissionId, ParticipantId, Role};
    use crate::time::Timestamp;

    fn participant(n: u8, focus: Option<&str>, drive: Drive) -> Participant {
        Participant {
            mission: MissionId::parse("m").expect("an id"),
            session: SessionId::mint(0, [n; 10]),
            participant: ParticipantId::mint(0, [n; 10]),
            role: Role::parse("developer").expect("a role"),
            joined_at: Timestamp(0),
            active_at: Timestamp(0),
            drive,
            focus: focus.and_then(|text| Focus::parse(text).expect("a focus")),
            run_id: None,
            api_url: None,
            revision: 0,
        }
    }

    #[test]
    fn of_many_those_collide_that_drive_one_focus() {
        let rows = [
            participant(1, Some("wp:1"), Drive::Active).stored(),
            participant(2, Some("wp:1"), Drive::Active).stored(),
            participant(3, Some("wp:1"), Drive::Inactive).stored(),
            participant(4, Some("wp:2"), Drive::Active).stored(),
            participant(5, None, Drive::Active).stored(),
            participant(6, None, Drive::Active).stored(),
        ];
        let id = |n: u8| SessionId::mint(0, [n; 10]);
        let found = colliding(&rows, |_| false);
        assert_eq!(found, BTreeSet::from([id(1), id(2)]));
        assert_eq!(colliding(&rows, |one| one == id(2)), BTreeSet::new());
    }

    #[test]
    fn only_two_that_live_and_drive_one_focus_collide() {
        let first = participant(1, Some("wp:1"), Drive::Active);
        let first = ParticipantState {
            participant: &first,
            gone: false,
        };
        assert!(!first.collides_with(&first), "nobody collides with itself");
        for (focus, drive, gone, collides) in [
            (Some("wp:1"), Drive::Active, false, true),
            (Some("wp:1"), Drive::Active, true, false),
            (Some("wp:1"), Drive::Inactive, false, false),
            (Some("wp:2"), Drive::Active, false, false),
            (Some("step:1"), Drive::Active, false, false),
            (None, Drive::Active, false, false),
        ] {
            let other = participant(2, focus, drive);
            let other = ParticipantState {
                participant: &other,
                gone,
            };
            assert_eq!(
                first.collides_with(&other),
                collides,
                "{focus:?} {drive:?} {gone}"
            );
            assert_eq!(
                other.collides_with(&first),
                collides,
                "{focus:?} {drive:?} {gone}"
            );
        }
        let idle = [1, 2].map(|n| participant(n, None, Drive::Active));
        let [a, b] = [0, 1].map(|n| ParticipantState {
            participant: &idle[n],
            gone: false,
        });
        assert!(!a.collides_with(&b), "no focus is nothing to collide about");
    }
}
