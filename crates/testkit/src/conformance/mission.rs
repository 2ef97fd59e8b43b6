//! Missions, participants, pointers, and mirror failures.

use tenure_core::mirror_failure::MirrorFailure;
use tenure_core::mission::pointer::PointerScope;
use tenure_core::mission::{
    ApiUrl, Drive, Focus, MissionId, MissionRunId, Participant, ParticipantId, Role,
};
use tenure_core::store::Store;
use tenure_core::time::Timestamp;

use super::sample::*;

fn mission(text: &str) -> MissionId {
    MissionId::parse(text).unwrap()
}

fn participant(name: &str, n: u32) -> Participant {
    Participant {
        mission: mission(name),
        session: id(n),
        participant: ParticipantId::mint(EPOCH, [u8::try_from(n).unwrap(); 10]),
        role: Role::parse("developer").unwrap(),
        joined_at: Timestamp(EPOCH + i64::from(n)),
        active_at: Timestamp(EPOCH + 10),
        drive: Drive::Inactive,
        focus: None,
        run_id: None,
        api_url: None,
        revision: 0,
    }
}

fn joined(store: &mut dyn Store, rows: &[Participant]) {
    write(store, |tx| {
        for row in rows {
            tx.make_mission(&row.mission, Timestamp(EPOCH)).unwrap();
            tx.insert_participant(row).unwrap();
        }
    });
}

pub fn a_mission_is_made_once(store: &mut dyn Store) {
    write(store, |tx| {
        tx.make_mission(&mission("b"), Timestamp(EPOCH)).unwrap();
        tx.make_mission(&mission("a"), Timestamp(EPOCH + 1))
            .unwrap();
        tx.make_mission(&mission("b"), Timestamp(EPOCH + 2))
            .unwrap();
    });
    read(store, |tx| {
        let all = tx.list_missions().unwrap();
        let all: Vec<_> = all
            .iter()
            .map(|one| (one.id.as_str(), one.created_at))
            .collect();
        assert_eq!(all, [("a", Timestamp(EPOCH + 1)), ("b", Timestamp(EPOCH))]);
        assert_eq!(
            tx.mission("b").unwrap().unwrap().created_at,
            Timestamp(EPOCH)
        );
        assert_eq!(tx.mission("c").unwrap(), None);
    });
}

pub fn a_participant_reads_back_with_every_field(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let full = Participant {
        drive: Drive::Active,
        focus: Focus::parse("wp:041/WP01").unwrap(),
        run_id: Some(MissionRunId::parse("r-7").unwrap()),
        api_url: Some(ApiUrl::parse("https://api.example.com").unwrap()),
        revision: 7,
        ..participant("m", 1)
    };
    joined(
        store,
        &[full.clone(), participant("m", 2), participant("n", 1)],
    );
    read(store, |tx| {
        assert_eq!(tx.participant("m", id(1)).unwrap(), Some(full.stored()));
        assert_eq!(tx.participant("n", id(2)).unwrap(), None);
        let of = |rows: Vec<tenure_core::mission::StoredParticipant>| {
            rows.into_iter()
                .map(|row| (row.mission, row.session))
                .collect::<Vec<_>>()
        };
        let (m, n) = ("m".to_owned(), "n".to_owned());
        assert_eq!(
            of(tx.participants("m").unwrap()),
            [(m.clone(), id(1)), (m.clone(), id(2))]
        );
        assert_eq!(
            of(tx.participations(id(1)).unwrap()),
            [(m, id(1)), (n, id(1))]
        );
        assert_eq!(tx.all_participants().unwrap().len(), 3);
        assert_eq!(tx.participants("").unwrap(), []);
    });
}

pub fn rows_of_several_sessions_are_found_in_one_look(store: &mut dyn Store) {
    with_sessions(store, [1, 2, 3]);
    let rows = [("m", 1), ("n", 1), ("m", 2), ("m", 3)].map(|(name, n)| participant(name, n));
    joined(store, &rows);
    read(store, |tx| {
        let found = tx.participations_of(&[id(1), id(2)]).unwrap();
        assert_eq!(
            found,
            rows[..3]
                .iter()
                .map(Participant::stored)
                .collect::<Vec<_>>()
        );
        assert_eq!(tx.participations_of(&[]).unwrap(), []);
    });
}

pub fn a_participant_is_changed_by_comparing_its_revision(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let before = participant("m", 1);
    joined(store, std::slice::from_ref(&before));
    let after = Participant {
        role: Role::parse("reviewer").unwrap(),
        joined_at: Timestamp(EPOCH + 999),
        active_at: Timestamp(EPOCH + 20),
        drive: Drive::Active,
        focus: Focus::parse("step:4").unwrap(),
        run_id: Some(MissionRunId::parse("r-8").unwrap()),
        api_url: Some(ApiUrl::parse("http://localhost:8080/v1").unwrap()),
        ..before.clone()
    };
    write(store, |tx| tx.update_participant(&after).unwrap());
    conflict(store, |tx| tx.update_participant(&after));
    read(store, |tx| {
        let expected = Participant {
            joined_at: before.joined_at,
            revision: 1,
            ..after.clone()
        };
        assert_eq!(tx.participant("m", id(1)).unwrap(), Some(expected.stored()));
    });
    let nobody = participant("m", 2);
    conflict(store, |tx| tx.update_participant(&nobody));
}

pub fn a_session_and_a_participant_id_are_in_a_mission_once(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    joined(store, &[participant("m", 1)]);
    let again = Participant {
        participant: ParticipantId::mint(EPOCH, [9; 10]),
        ..participant("m", 1)
    };
    conflict(store, |tx| tx.insert_participant(&again));
    let same_id = Participant {
        participant: participant("m", 1).participant,
        ..participant("m", 2)
    };
    conflict(store, |tx| tx.insert_participant(&same_id));
    write(store, |tx| {
        assert!(tx.remove_participant("m", id(1)).unwrap());
        assert!(!tx.remove_participant("m", id(1)).unwrap());
        tx.insert_participant(&same_id).unwrap();
    });
}

pub fn pointers_are_set_moved_and_forgotten(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let scopes = [
        PointerScope::Session(id(1)),
        PointerScope::Repo("acme/web".into()),
        PointerScope::User("1000".into()),
    ];
    write(store, |tx| {
        for (scope, name) in scopes.iter().zip(["s", "r", "u"]) {
            tx.set_pointer(scope, Some(&mission(name)), Timestamp(EPOCH))
                .unwrap();
        }
        tx.set_pointer(&scopes[0], Some(&mission("s2")), Timestamp(EPOCH + 1))
            .unwrap();
        tx.set_pointer(&scopes[1], Some(&mission("r")), Timestamp(EPOCH + 5))
            .unwrap();
        tx.set_pointer(&PointerScope::Session(id(2)), None, Timestamp(EPOCH))
            .unwrap();
    });
    read(store, |tx| {
        let moved = tx.pointer(&scopes[0]).unwrap().unwrap();
        assert_eq!(
            (moved.mission.as_str(), moved.at),
            ("s2", Timestamp(EPOCH + 1))
        );
        let same = tx.pointer(&scopes[1]).unwrap().unwrap();
        assert_eq!(same.at, Timestamp(EPOCH), "it was set to what it was");
        assert_eq!(
            tx.pointer(&PointerScope::Repo("1000".into())).unwrap(),
            None
        );
        assert_eq!(tx.pointer(&PointerScope::Session(id(2))).unwrap(), None);
        let all = tx.list_pointers().unwrap();
        assert!(
            all.len() == 3
                && scopes
                    .iter()
                    .all(|scope| all.iter().any(|one| one.scope == *scope))
        );
    });
    write(store, |tx| {
        tx.set_pointer(&scopes[2], None, Timestamp(EPOCH)).unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.pointer(&scopes[2]).unwrap(), None);
    });
}

pub fn a_mirrors_failure_is_kept_until_it_is_cleared(store: &mut dyn Store) {
    let failure = |why: &str| MirrorFailure {
        path: "/home/x/file".into(),
        session: "claude-k7qd".into(),
        why: why.into(),
        at: Timestamp(EPOCH),
    };
    write(store, |tx| {
        tx.set_mirror_failure(&failure("full")).unwrap();
        tx.set_mirror_failure(&failure("a directory")).unwrap();
        tx.clear_mirror_failure("/elsewhere").unwrap();
    });
    write(store, |tx| {
        assert_eq!(tx.mirror_failures().unwrap(), [failure("a directory")]);
        tx.clear_mirror_failure("/home/x/file").unwrap();
        assert_eq!(tx.mirror_failures().unwrap(), []);
    });
}
