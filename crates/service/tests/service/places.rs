//! A place is a path on a machine: on a store that several machines use, the same path on two of them is two places.

use tenure_core::agent_event::Happening;
use tenure_core::git_move::GitMove;
use tenure_core::id::HostId;
use tenure_core::mission::{MissionId, Role};
use tenure_core::session::Workdir;
use tenure_core::worktree_changes::Fate;
use tenure_core::write_conflict::GuardMode;
use tenure_service::{
    ActFor, GuardPolicy, HandledEvent, JoinRequest, ListRequest, MissionPlace, PointRequest,
    PointerOwner, RegisterRequest, ToolUse, Vouched,
};

use super::locks::event;
use super::{Rig, Who, kind};

const ROOT: &str = "/workspace";

/// Two sessions in the same path, on one machine or on two.
fn two_in_one_path(on_two_machines: bool, remote: Option<&str>) -> (Rig, [Who; 2]) {
    let mut rig = Rig::new();
    rig.store.is_shared = true;
    rig.world.has_repository(ROOT, remote);
    let (ann, mut bob) = (rig.here(&[20]), rig.here(&[30]));
    if on_two_machines {
        bob.world.observer.host = HostId::new("another");
        bob.world.observer.boot.id = "another boot".into();
    }
    for (who, native) in [(&ann, "a"), (&bob, "b")] {
        let request = RegisterRequest {
            workdir: Workdir {
                dir: ROOT.to_owned(),
                repo: Some(remote.unwrap_or("/workspace/.git").to_owned()),
                branch: None,
            },
            ..rig.request(who, native)
        };
        rig.call(who, |service| service.register(&request)).unwrap();
    }
    (rig, [ann, bob])
}

/// Why a tool of the second session is stopped, after the first one used the same.
fn blocked(rig: &mut Rig, [ann, bob]: &[Who; 2], tool: &ToolUse) -> Option<String> {
    uses(rig, (ann, "a"), tool);
    uses(rig, (bob, "b"), tool).advice.block
}

/// The answer to the event of a tool.
fn uses(rig: &mut Rig, (who, native): (&Who, &str), tool: &ToolUse) -> HandledEvent {
    let event = tenure_service::AgentEvent {
        dir: ROOT.into(),
        tool: Some(tool.clone()),
        ..event(who, native, Happening::Other)
    };
    rig.call(who, |service| service.handle_event(&event))
        .unwrap()
}

/// Writes a file that others may write too.
fn writes() -> ToolUse {
    ToolUse {
        writes: vec![format!("{ROOT}/a.rs")],
        policy: GuardPolicy {
            mode: GuardMode::Warn,
            require_claim: None,
        },
        ..tool()
    }
}

fn tool() -> ToolUse {
    ToolUse {
        policy: GuardPolicy {
            mode: GuardMode::Block,
            require_claim: None,
        },
        answer_is_read: true,
        ..ToolUse::default()
    }
}

#[test]
fn a_file_that_another_machine_wrote_under_the_same_path_is_another_file() {
    for (on_two_machines, is_blocked) in [(false, true), (true, false)] {
        let (mut rig, both) = two_in_one_path(on_two_machines, Some("acme/web"));
        let writes = ToolUse {
            writes: vec![format!("{ROOT}/a.rs")],
            ..tool()
        };
        let why = blocked(&mut rig, &both, &writes);
        assert_eq!(why.is_some(), is_blocked, "{why:?}");
    }
}

#[test]
fn a_checkout_moves_no_worktree_of_another_machine() {
    for (on_two_machines, is_blocked) in [(false, true), (true, false)] {
        let (mut rig, both) = two_in_one_path(on_two_machines, Some("acme/web"));
        let checkout = ToolUse {
            moves: Some(GitMove {
                command: "git checkout".to_owned(),
                dir: None,
            }),
            ..tool()
        };
        let why = blocked(&mut rig, &both, &checkout);
        assert_eq!(why.is_some(), is_blocked, "{why:?}");
    }
}

#[test]
fn path_claims_of_two_machines_meet_only_through_a_remote() {
    let own = |who: &Who, remote: Option<&str>| match remote {
        Some(remote) => format!("path:{remote}:src/a.rs"),
        None => format!(
            "path:@{}{ROOT}/.git:src/a.rs",
            who.world.observer.host.label()
        ),
    };
    for (remote, on_two_machines, expected) in [
        (None, false, "overlaps"),
        (None, true, "granted"),
        (Some("acme/web"), true, "held"),
    ] {
        let (mut rig, [ann, bob]) = two_in_one_path(on_two_machines, remote);
        let name = own(&ann, remote).replace("a.rs", if remote.is_some() { "a.rs" } else { "**" });
        rig.claim(&ann, &name).unwrap();
        let second = rig.claim(&bob, &own(&bob, remote));
        assert_eq!(kind(second), expected, "{remote:?} {on_two_machines}");
    }
}

#[test]
fn a_path_that_is_reserved_on_another_machine_may_be_written_here() {
    for (on_two_machines, is_blocked) in [(false, true), (true, false)] {
        let (mut rig, [ann, bob]) = two_in_one_path(on_two_machines, None);
        let label = ann.world.observer.host.label();
        rig.claim(&ann, &format!("path:@{label}{ROOT}/.git:**"))
            .unwrap();
        let event = tenure_service::AgentEvent {
            dir: ROOT.into(),
            tool: Some(ToolUse {
                writes: vec![format!("{ROOT}/a.rs")],
                ..tool()
            }),
            ..event(&bob, "b", Happening::Other)
        };
        let answer = rig.call(&bob, |service| service.handle_event(&event));
        let why = answer.unwrap().advice.block;
        assert_eq!(why.is_some(), is_blocked, "{why:?}");
    }
}

#[test]
fn sessions_that_write_the_same_path_on_two_machines_do_not_collide() {
    for (on_two_machines, expected) in [(false, 2), (true, 0)] {
        let (mut rig, both) = two_in_one_path(on_two_machines, Some("acme/web"));
        blocked(&mut rig, &both, &writes());
        let listed = rig.call(&both[0], |service| service.list(&ListRequest::default()));
        let listed = listed.unwrap().items;
        let collide = listed.iter().filter(|one| one.rank == Some("collides"));
        assert_eq!(collide.count(), expected, "{listed:?}");
    }
}

#[test]
fn a_session_that_returns_is_told_of_no_write_on_another_machine() {
    for (on_two_machines, is_told) in [(false, true), (true, false)] {
        let (mut rig, [ann, bob]) = two_in_one_path(on_two_machines, Some("acme/web"));
        uses(&mut rig, (&ann, "a"), &writes());
        rig.clock.advance(super::TICK);
        uses(&mut rig, (&bob, "b"), &writes());
        ann.dies();
        let again = rig.here(&[21]);
        let start = tenure_service::AgentEvent {
            dir: ROOT.into(),
            ..event(&again, "a", Happening::Start)
        };
        let answer = rig.call(&again, |service| service.handle_event(&start));
        let brief = answer.unwrap().brief.expect("it is told what changed");
        let files = brief.worktree_changes.files;
        let by_other =
            |(name, fate): &(String, Fate)| name == "a.rs" && matches!(fate, Fate::WrittenBy(_));
        assert_eq!(files.iter().any(by_other), is_told, "{files:?}");
    }
}

#[test]
fn the_active_mission_of_a_repository_is_shared_only_through_a_remote() {
    for (remote, on_two_machines, is_shared) in [
        (None, false, true),
        (None, true, false),
        (Some("acme/web"), true, true),
    ] {
        let (mut rig, both) = two_in_one_path(on_two_machines, remote);
        let here = MissionPlace {
            repo: Some(remote.unwrap_or("/workspace/.git").to_owned()),
            user: "user".into(),
            roles: Vec::new(),
        };
        let mission = MissionId::parse("launch").unwrap();
        let (me, mut before) = (ActFor::default(), None);
        for who in &both {
            let join = JoinRequest {
                mission: mission.clone(),
                role: Role::parse("developer").unwrap(),
                participant: None,
            };
            let point = PointRequest {
                whose: PointerOwner::Repo,
                mission: Some(mission.clone()),
            };
            rig.call(who, |service| service.join_mission(&me, &here, &join))
                .unwrap();
            let pointed = rig.call(who, |service| service.point_to_mission(&me, &here, &point));
            before = pointed.unwrap().before;
        }
        assert_eq!(before.is_some(), is_shared, "{remote:?} {on_two_machines}");
    }
}

#[test]
fn a_transcript_of_another_machine_under_the_same_path_is_another_file() {
    // The name fits both conversations.
    const PATH: &str = "/t/b-a.jsonl";
    for (on_two_machines, expected) in [(false, "invalid"), (true, "granted")] {
        let (mut rig, both) = two_in_one_path(on_two_machines, Some("acme/web"));
        let mut last = "none";
        for (who, native) in both.iter().zip(["a", "b-a"]) {
            let handle = rig.register(who, native).session.handle;
            let kept = rig.call(who, |service| service.keep_transcript(&handle, PATH));
            if kept.is_ok() {
                let found = rig.call(who, |service| service.transcript(&handle));
                let Vouched::File(file) = found.unwrap() else {
                    panic!("the path is stored");
                };
                assert_eq!(file.path, PATH);
            }
            last = kind(kept);
        }
        assert_eq!(last, expected);
    }
}
