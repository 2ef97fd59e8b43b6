//! Changes to a participant: one named field each, so that two changes to different fields never undo each
//! other.

use super::name::{Drive, Focus, Role};
use super::record::Participant;
use crate::id::Malformed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Role(Role),
    Focus(Option<Focus>),
    Drive(Drive),
}

impl Change {
    /// A change to the field with this name. An unknown field is refused, and so is one that cannot be changed.
    pub fn named(field: &str, value: &str) -> Result<Self, Malformed> {
        Ok(match field {
            "role" => Change::Role(Role::parse(value)?),
            "focus" => Change::Focus(Focus::parse(value)?),
            "drive" => Change::Drive(Drive::parse(value)?),
            "joined_at" | "last_activity_at" | "participant_id" | "mission" | "session" => {
                return Err(Malformed::new(
                    "field",
                    field,
                    "it cannot be changed; role, focus and drive can",
                ));
            }
            _ => {
                return Err(Malformed::new(
                    "field",
                    field,
                    "expected role, focus or drive",
                ));
            }
        })
    }

    /// Makes the change; returns the old and new value if they differ.
    pub fn apply(&self, participant: &mut Participant) -> Option<String> {
        let (field, before, after) = match self {
            Change::Role(role) => {
                let before = std::mem::replace(&mut participant.role, role.clone());
                ("role", before.to_string(), role.to_string())
            }
            Change::Focus(focus) => {
                let before = std::mem::replace(&mut participant.focus, focus.clone());
                ("focus", shown(before.as_ref()), shown(focus.as_ref()))
            }
            Change::Drive(drive) => {
                let before = std::mem::replace(&mut participant.drive, *drive);
                ("drive", before.as_str().into(), drive.as_str().into())
            }
        };
        (before != after).then(|| format!("{field} {before} -> {after}"))
    }
}

/// A focus, or `none`.
pub fn shown(focus: Option<&Focus>) -> String {
    focus.map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SessionId;
    use crate::mission::{MissionId, ParticipantId};
    use crate::time::Timestamp;

    fn participant() -> Participant {
        Participant {
            mission: MissionId::parse("m").expect("an id"),
            session: SessionId::mint(0, [1; 10]),
            participant: ParticipantId::mint(0, [1; 10]),
            role: Role::parse("developer").expect("a role"),
            joined_at: Timestamp(10),
            active_at: Timestamp(20),
            drive: Drive::Inactive,
            focus: None,
            revision: 1,
        }
    }

    #[test]
    fn an_unknown_field_is_refused_by_its_name() {
        for field in [
            "colour",
            "",
            "Focus",
            "joined_at",
            "participant_id",
            "revision",
        ] {
            let error = Change::named(field, "x").expect_err(field);
            assert!(error.to_string().contains(field), "{error}");
        }
    }

    #[test]
    fn a_change_touches_its_own_field_alone() {
        for (field, value, said) in [
            ("role", "reviewer", "role developer -> reviewer"),
            ("focus", "wp:1", "focus none -> wp:1"),
            ("drive", "active", "drive inactive -> active"),
        ] {
            let mut changed = participant();
            let change = Change::named(field, value).expect(field);
            assert_eq!(change.apply(&mut changed).as_deref(), Some(said));
            assert_eq!(change.apply(&mut changed), None, "once is enough");
            let untouched = participant();
            assert_eq!(changed.joined_at, untouched.joined_at);
            assert_eq!(changed.participant, untouched.participant);
            let same = [
                changed.role == untouched.role,
                changed.focus == untouched.focus,
                changed.drive == untouched.drive,
            ];
            assert_eq!(same.iter().filter(|same| !**same).count(), 1, "{field}");
        }
    }
}
