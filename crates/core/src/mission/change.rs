//! Changes to a participant: one named field each, so that two changes to different fields never undo each
//! other.

use super::name::{ApiUrl, Drive, Focus, MissionRunId, Role};
use super::record::Participant;
use crate::id::Malformed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissionChange {
    Role(Role),
    Focus(Option<Focus>),
    Drive(Drive),
    RunId(Option<MissionRunId>),
    ApiUrl(Option<ApiUrl>),
    /// Its token is set or cleared. The token itself is in a file, never in the store.
    Token {
        is_set: bool,
    },
}

/// Reads a value that may be `none`.
fn unless_none<T>(
    value: &str,
    parse: impl Fn(&str) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    (value != "none").then(|| parse(value)).transpose()
}

impl MissionChange {
    /// A change to the field with this name. An unknown field is refused, and so is one that cannot be changed.
    pub fn named(field: &str, value: &str) -> Result<Self, Malformed> {
        Ok(match field {
            "role" => MissionChange::Role(Role::parse(value)?),
            "focus" => MissionChange::Focus(Focus::parse(value)?),
            "drive" => MissionChange::Drive(Drive::parse(value)?),
            "run_id" => MissionChange::RunId(unless_none(value, MissionRunId::parse)?),
            "api_url" => MissionChange::ApiUrl(unless_none(value, ApiUrl::parse)?),
            "joined_at" | "last_activity_at" | "participant_id" | "mission" | "session" => {
                return Err(Malformed::new(
                    "field",
                    field,
                    "it cannot be changed; role, focus, drive, run_id and api_url can",
                ));
            }
            _ => {
                return Err(Malformed::new(
                    "field",
                    field,
                    "expected role, focus, drive, run_id or api_url",
                ));
            }
        })
    }

    /// Makes the change; returns the old and new value if they differ.
    pub fn apply(&self, participant: &mut Participant) -> Option<String> {
        let (field, before, after) = match self {
            MissionChange::Token { is_set: true } => return Some("set a token".to_owned()),
            MissionChange::Token { is_set: false } => return Some("cleared its token".to_owned()),
            MissionChange::Role(role) => {
                let before = std::mem::replace(&mut participant.role, role.clone());
                ("role", before.to_string(), role.to_string())
            }
            MissionChange::Focus(focus) => {
                let before = std::mem::replace(&mut participant.focus, focus.clone());
                ("focus", shown(before.as_ref()), shown(focus.as_ref()))
            }
            MissionChange::RunId(run) => {
                let before = std::mem::replace(&mut participant.run_id, run.clone());
                ("run_id", shown(before.as_ref()), shown(run.as_ref()))
            }
            MissionChange::ApiUrl(url) => {
                let before = std::mem::replace(&mut participant.api_url, url.clone());
                ("api_url", shown(before.as_ref()), shown(url.as_ref()))
            }
            MissionChange::Drive(drive) => {
                let before = std::mem::replace(&mut participant.drive, *drive);
                ("drive", before.as_str().into(), drive.as_str().into())
            }
        };
        (before != after).then(|| format!("{field} {before} -> {after}"))
    }
}

/// A value, or `none`.
pub fn shown<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
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
            run_id: None,
            api_url: None,
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
            let error = MissionChange::named(field, "x").expect_err(field);
            assert!(error.to_string().contains(field), "{error}");
        }
    }

    #[test]
    fn a_change_touches_its_own_field_alone() {
        for (field, value, said) in [
            ("role", "reviewer", "role developer -> reviewer"),
            ("focus", "wp:1", "focus none -> wp:1"),
            ("drive", "active", "drive inactive -> active"),
            ("run_id", "r-7", "run_id none -> r-7"),
            (
                "api_url",
                "https://api.example.com/v1",
                "api_url none -> https://api.example.com/v1",
            ),
        ] {
            let mut changed = participant();
            let change = MissionChange::named(field, value).expect(field);
            assert_eq!(change.apply(&mut changed).as_deref(), Some(said));
            assert_eq!(change.apply(&mut changed), None, "once is enough");
            let untouched = participant();
            assert_eq!(changed.joined_at, untouched.joined_at);
            assert_eq!(changed.participant, untouched.participant);
            let same = [
                changed.role == untouched.role,
                changed.focus == untouched.focus,
                changed.drive == untouched.drive,
                changed.run_id == untouched.run_id,
                changed.api_url == untouched.api_url,
            ];
            assert_eq!(same.iter().filter(|same| !**same).count(), 1, "{field}");
        }
    }

    #[test]
    fn a_run_id_and_an_address_are_well_formed_and_none_clears_them() {
        for (field, value) in [
            ("run_id", ""),
            ("run_id", "two words"),
            ("api_url", "api.example.com"),
            ("api_url", "ftp://api.example.com"),
            ("api_url", "https://"),
            ("api_url", "https://a b"),
        ] {
            assert!(
                MissionChange::named(field, value).is_err(),
                "{field} {value}"
            );
        }
        let secret = MissionChange::named("api_url", "https://ann:hunter2@api.example.com");
        let said = secret.expect_err("a password").to_string();
        assert!(
            said.contains("token -") && !said.contains("hunter2"),
            "{said}"
        );
        assert_eq!(
            MissionChange::named("run_id", "none"),
            Ok(MissionChange::RunId(None))
        );
    }
}
