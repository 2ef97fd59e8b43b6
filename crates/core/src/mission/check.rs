//! Faults in a stored participant or pointer: all of them at once, each with the field, the value and a remedy.

use serde::Serialize;

use super::name::{ApiUrl, Drive, Focus, MissionId, MissionRunId, ParticipantId, Role};
use super::record::{Participant, StoredParticipant};
use crate::hint::Hint;
use crate::id::Malformed;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Fault")]
pub struct MissionFault {
    /// The mission, if it belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mission: Option<String>,
    /// Where it is: a session's handle, a file, a pointer.
    pub subject: String,
    pub field: &'static str,
    /// The stored value.
    pub value: String,
    /// The rule that it breaks, or the fact that it contradicts.
    pub why: String,
    /// Remedies.
    pub hints: Vec<Hint>,
}

impl std::fmt::Display for MissionFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MissionFault {
            subject,
            field,
            value,
            why,
            ..
        } = self;
        if value == subject {
            return write!(f, "{subject}: {why}");
        }
        match *field {
            "pointer" => write!(f, "{subject} {value:?}: {why}"),
            field => write!(f, "{subject}, {field} {value:?}: {why}"),
        }
    }
}

/// What a row is checked against, besides itself.
#[derive(Debug, Clone, Copy)]
pub struct Against<'a> {
    /// The roles that the settings allow; empty means any.
    pub roles: &'a [String],
    /// Whether the store knows the mission that the row is stored under.
    pub mission_is_known: bool,
    /// The handle of the participant's session.
    pub handle: &'a str,
}

/// The earliest and the latest time that can be written as a date with a zone.
const TIMES: (i64, i64) = (-62_135_596_800_000, 253_402_207_200_000);

/// Parses a row, or returns all its faults.
pub fn participant(
    row: &StoredParticipant,
    against: Against<'_>,
) -> Result<Participant, Vec<MissionFault>> {
    let mut faults = Faults::of(row, against.handle);
    let mission = faults.read("mission", &row.mission, MissionId::parse);
    if mission.is_some() && !against.mission_is_known {
        faults.add(
            "mission",
            &row.mission,
            "this mission does not exist".into(),
        );
    }
    let participant = faults.read("participant_id", &row.participant, ParticipantId::parse);
    let role = faults.read("role", &row.role, Role::parse);
    if let Some(role) = &role
        && !role.is_listed(against.roles)
    {
        let why = format!("the settings allow only {}", against.roles.join(", "));
        faults.add("role", role.as_str(), why);
    }
    let drive = faults.read("drive", &row.drive, Drive::parse);
    let focus = match row.focus.as_deref() {
        None => Some(None),
        Some(text) => faults.read("focus", text, Focus::parse),
    };
    let run_id = match row.run_id.as_deref() {
        None => Some(None),
        Some(text) => faults.read("run_id", text, MissionRunId::parse).map(Some),
    };
    let api_url = match row.api_url.as_deref() {
        None => Some(None),
        Some(text) => faults.read("api_url", text, ApiUrl::parse).map(Some),
    };
    for (field, time) in [
        ("joined_at", row.joined_at),
        ("last_activity_at", row.active_at),
    ] {
        if time.0 < TIMES.0 || time.0 > TIMES.1 {
            let why = "it is outside the range of valid dates";
            faults.add(field, &time.to_string(), why.into());
        }
    }
    if row.joined_at > row.active_at {
        let why = format!("it is after last_activity_at, {}", row.active_at);
        faults.add("joined_at", &row.joined_at.to_string(), why);
    }
    let own = (mission, participant, role, drive, focus);
    match (own, run_id, api_url) {
        (
            (Some(mission), Some(participant), Some(role), Some(drive), Some(focus)),
            Some(run_id),
            Some(api_url),
        ) if faults.found.is_empty() => Ok(Participant {
            mission,
            session: row.session,
            participant,
            role,
            joined_at: row.joined_at,
            active_at: row.active_at,
            drive,
            focus,
            run_id,
            api_url,
            revision: row.revision,
        }),
        _ => Err(faults.found),
    }
}

struct Faults<'a> {
    row: &'a StoredParticipant,
    handle: &'a str,
    found: Vec<MissionFault>,
}

impl<'a> Faults<'a> {
    fn of(row: &'a StoredParticipant, handle: &'a str) -> Self {
        Self {
            row,
            handle,
            found: Vec::new(),
        }
    }

    fn add(&mut self, field: &'static str, value: &str, why: String) {
        let mission = &self.row.mission;
        self.found.push(MissionFault {
            mission: Some(mission.clone()),
            subject: self.handle.to_owned(),
            field,
            value: value.to_owned(),
            why,
            hints: vec![Hint::run(
                "mission",
                ["leave", mission],
                "to leave it, then join it again",
            )],
        });
    }

    fn read<T>(
        &mut self,
        field: &'static str,
        text: &str,
        parse: impl Fn(&str) -> Result<T, Malformed>,
    ) -> Option<T> {
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(field, text, error.why);
                None
            }
        }
    }
}

/// How to join a mission.
pub fn join(mission: &str) -> Hint {
    Hint::run("mission", ["join", mission, "--role", "ROLE"], "to join it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SessionId;
    use crate::time::Timestamp;

    fn row() -> StoredParticipant {
        StoredParticipant {
            mission: "041-login".into(),
            session: SessionId::mint(1_700_000_000_000, [7; 10]),
            participant: "01ARZ3NDEKTSV4RRFFQ69G5FAV".into(),
            role: "developer".into(),
            joined_at: Timestamp(1_700_000_000_000),
            active_at: Timestamp(1_700_000_060_000),
            drive: "active".into(),
            focus: Some("wp:WP01".into()),
            run_id: None,
            api_url: None,
            revision: 3,
        }
    }

    fn against(roles: &[String]) -> Against<'_> {
        Against {
            roles,
            mission_is_known: true,
            handle: "claude-k7qd",
        }
    }

    fn fields(row: &StoredParticipant) -> Vec<&'static str> {
        let found = participant(row, against(&[])).expect_err("it is wrong");
        found.iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn a_good_row_reads_and_is_kept_as_it_was() {
        let read = participant(&row(), against(&[])).expect("nothing is wrong");
        assert_eq!(read.stored(), row());
        let none = StoredParticipant {
            focus: None,
            ..row()
        };
        assert_eq!(
            participant(&none, against(&[]))
                .expect("no focus is fine")
                .focus,
            None
        );
    }

    #[test]
    fn each_rule_is_broken_by_its_own_field() {
        let times = [i64::MIN, i64::MAX];
        let cases = [
            (
                "mission",
                StoredParticipant {
                    mission: "../x".into(),
                    ..row()
                },
            ),
            (
                "participant_id",
                StoredParticipant {
                    participant: "short".into(),
                    ..row()
                },
            ),
            (
                "participant_id",
                StoredParticipant {
                    participant: "8ZZZZZZZZZZZZZZZZZZZZZZZZZ".into(),
                    ..row()
                },
            ),
            (
                "role",
                StoredParticipant {
                    role: "  ".into(),
                    ..row()
                },
            ),
            (
                "drive",
                StoredParticipant {
                    drive: "sideways".into(),
                    ..row()
                },
            ),
            (
                "focus",
                StoredParticipant {
                    focus: Some("wp:".into()),
                    ..row()
                },
            ),
            (
                "focus",
                StoredParticipant {
                    focus: Some("WP01".into()),
                    ..row()
                },
            ),
            (
                "joined_at",
                StoredParticipant {
                    joined_at: Timestamp(1_700_000_060_001),
                    ..row()
                },
            ),
            (
                "joined_at",
                StoredParticipant {
                    joined_at: Timestamp(times[0]),
                    ..row()
                },
            ),
            (
                "last_activity_at",
                StoredParticipant {
                    active_at: Timestamp(times[1]),
                    ..row()
                },
            ),
        ];
        for (field, broken) in cases {
            assert_eq!(fields(&broken), [field], "{broken:?}");
        }
    }

    #[test]
    fn everything_is_said_at_once_with_the_value_and_the_way_out() {
        let broken = StoredParticipant {
            participant: String::new(),
            role: String::new(),
            drive: "sideways".into(),
            focus: Some("step:".into()),
            joined_at: Timestamp(1_800_000_000_000),
            ..row()
        };
        assert_eq!(
            fields(&broken),
            ["participant_id", "role", "drive", "focus", "joined_at"]
        );
        let faults = participant(&broken, against(&[])).expect_err("it is wrong");
        for fault in &faults {
            let leave = [fault.hints[0].verb.unwrap_or_default()];
            let words = leave
                .into_iter()
                .chain(fault.hints[0].args.iter().map(String::as_str));
            assert!(words.eq(["mission", "leave", "041-login"]), "{fault:?}");
        }
        assert!(faults.iter().any(|fault| fault.value == "sideways"));
    }

    #[test]
    fn a_role_must_be_listed_and_a_mission_known() {
        let roles = ["reviewer".to_owned()];
        let faults = participant(&row(), against(&roles)).expect_err("it is not listed");
        assert_eq!((faults.len(), faults[0].field), (1, "role"));
        assert!(faults[0].why.contains("reviewer"), "{faults:?}");
        let unknown = Against {
            mission_is_known: false,
            ..against(&[])
        };
        let faults = participant(&row(), unknown).expect_err("there is no such mission");
        assert_eq!((faults.len(), faults[0].field), (1, "mission"));
    }

    #[test]
    fn activity_never_goes_backwards_or_before_the_joining() {
        let mut one = participant(&row(), against(&[])).expect("nothing is wrong");
        one.is_active_at(Timestamp(5));
        assert_eq!(one.active_at, Timestamp(1_700_000_060_000));
        one.is_active_at(Timestamp(1_700_000_060_007));
        assert_eq!(one.active_at, Timestamp(1_700_000_060_007));
        assert_eq!(one.joined_at, row().joined_at);
    }

    #[test]
    fn a_time_must_have_a_zone() {
        assert!("2026-11-15T08:00:00Z".parse::<Timestamp>().is_ok());
        assert!("2026-11-15T08:00:00+01:00".parse::<Timestamp>().is_ok());
        for bad in ["2026-11-15T08:00:00", "2026-11-15", "now", ""] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad:?} was accepted");
        }
    }
}
