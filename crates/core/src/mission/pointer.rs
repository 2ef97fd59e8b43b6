//! Which mission is selected: the one that is given, else the pointer of the session, the repository, the user.

use super::check::{MissionFault, join};
use super::name::MissionId;
use crate::hint::Hint;
use crate::id::SessionId;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointerScope {
    Session(SessionId),
    /// A repository, in all its worktrees.
    Repo(String),
    User(String),
}

impl PointerScope {
    /// Its kind, as the store and the JSON write it.
    pub fn kind(&self) -> &'static str {
        match self {
            PointerScope::Session(_) => "session",
            PointerScope::Repo(_) => "repo",
            PointerScope::User(_) => "user",
        }
    }

    pub fn name(&self) -> String {
        match self {
            PointerScope::Session(id) => id.to_string(),
            PointerScope::Repo(name) | PointerScope::User(name) => name.clone(),
        }
    }

    /// Its name for people.
    pub fn phrase(&self) -> String {
        match self {
            PointerScope::Session(_) => "this session's active mission".into(),
            PointerScope::Repo(repo) => format!("the active mission of {repo}"),
            PointerScope::User(_) => "this user's active mission".into(),
        }
    }

    /// How to clear it.
    fn clear(&self) -> Hint {
        let args = ["use", "--clear", "--for", self.kind()];
        Hint::run("mission", args, format!("to clear {}", self.phrase()))
    }
}

/// A pointer as stored: its mission is text until it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    pub scope: PointerScope,
    pub mission: String,
    pub at: Timestamp,
}

/// How a pointer's mission relates to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    Joined,
    /// It exists, but the caller does not take part.
    NotJoined,
    Missing,
}

/// The mission of a pointer, or why the pointer is ignored.
pub fn judge(pointer: &Pointer, membership: Membership) -> Result<MissionId, MissionFault> {
    let fault = |why: String, hints: Vec<Hint>| MissionFault {
        mission: None,
        subject: pointer.scope.phrase(),
        field: "pointer",
        value: pointer.mission.clone(),
        why,
        hints,
    };
    let id = match MissionId::parse(&pointer.mission) {
        Ok(id) => id,
        Err(error) => return Err(fault(error.why, vec![pointer.scope.clear()])),
    };
    match membership {
        Membership::Joined => Ok(id),
        Membership::NotJoined => {
            let hints = vec![join(id.as_str()), pointer.scope.clear()];
            Err(fault("this session has not joined it".into(), hints))
        }
        Membership::Missing => Err(fault(
            "this mission does not exist".into(),
            vec![pointer.scope.clear()],
        )),
    }
}

/// What decided the selection, and which pointers were ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    pub mission: Option<MissionId>,
    /// `flag`, `session`, `repo` or `user`.
    pub by: &'static str,
    pub evidence: String,
    /// Pointers that were ignored.
    pub passed_over: Vec<MissionFault>,
}

/// Selects the mission. `pointers` are in order of precedence.
pub fn resolve(named: Option<&MissionId>, pointers: &[(Pointer, Membership)]) -> Resolution {
    if let Some(mission) = named {
        return Resolution {
            mission: Some(mission.clone()),
            by: "flag",
            evidence: format!("--mission {mission}"),
            passed_over: Vec::new(),
        };
    }
    let mut passed_over = Vec::new();
    for (pointer, membership) in pointers {
        match judge(pointer, *membership) {
            Ok(mission) => {
                return Resolution {
                    mission: Some(mission),
                    by: pointer.scope.kind(),
                    evidence: format!("{}, set {}", pointer.scope.phrase(), pointer.at),
                    passed_over,
                };
            }
            Err(fault) => passed_over.push(fault),
        }
    }
    Resolution {
        mission: None,
        by: "none",
        evidence: "no mission is active".into(),
        passed_over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers(worth: [Option<(&str, Membership)>; 3]) -> Vec<(Pointer, Membership)> {
        let scopes = [
            PointerScope::Session(SessionId::mint(0, [1; 10])),
            PointerScope::Repo("acme/web".into()),
            PointerScope::User("1000".into()),
        ];
        let made = scopes.into_iter().zip(worth).filter_map(|(scope, worth)| {
            let (mission, membership) = worth?;
            let mission = mission.to_owned();
            let at = Timestamp(0);
            Some((Pointer { scope, mission, at }, membership))
        });
        made.collect()
    }

    fn meant(
        named: Option<&str>,
        worth: [Option<(&str, Membership)>; 3],
    ) -> (Option<String>, &'static str) {
        let named = named.map(|text| MissionId::parse(text).expect("an id"));
        let found = resolve(named.as_ref(), &pointers(worth));
        (found.mission.map(|id| id.to_string()), found.by)
    }

    #[test]
    fn the_flag_goes_before_session_repository_and_user() {
        let joined = |name| Some((name, Membership::Joined));
        let all = [joined("s"), joined("r"), joined("u")];
        assert_eq!(meant(Some("f"), all), (Some("f".into()), "flag"));
        assert_eq!(meant(None, all), (Some("s".into()), "session"));
        assert_eq!(
            meant(None, [None, all[1], all[2]]),
            (Some("r".into()), "repo")
        );
        assert_eq!(
            meant(None, [None, None, all[2]]),
            (Some("u".into()), "user")
        );
        assert_eq!(meant(None, [None; 3]), (None, "none"));
    }

    #[test]
    fn a_pointer_that_is_not_worth_following_is_said_and_passed_over() {
        let found = resolve(
            None,
            &pointers([
                Some(("../x", Membership::Missing)),
                Some(("gone", Membership::Missing)),
                Some(("other", Membership::NotJoined)),
            ]),
        );
        assert_eq!(found.mission, None);
        let said: Vec<_> = found
            .passed_over
            .iter()
            .map(|fault| fault.value.as_str())
            .collect();
        assert_eq!(said, ["../x", "gone", "other"]);
        for (fault, scope) in found.passed_over.iter().zip(["session", "repo", "user"]) {
            let last = fault.hints.last().expect("a way out");
            assert_eq!(last.args, ["use", "--clear", "--for", scope]);
        }
        let next = meant(
            None,
            [
                Some(("gone", Membership::Missing)),
                Some(("r", Membership::Joined)),
                None,
            ],
        );
        assert_eq!(next, (Some("r".into()), "repo"));
    }
}
