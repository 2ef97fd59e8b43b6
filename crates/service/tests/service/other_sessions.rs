//! Which other sessions are there, which branch one left, whose context file it is, and which lines a transcript accepts.

use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, NativeId};
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::Workdir;
use tenure_core::store::{ClaimFilter, Store, TxMode};
use tenure_service::mirror::compare::ContextFile;
use tenure_service::{
    ActFor, Glancer, ListRequest, MissionPlace, RegisterRequest, Subject, TakeoverRequest, Vouched,
    WaitGoal,
};

use crate::{Rig, Who, key};

fn place(dir: &str, repo: Option<&str>) -> Workdir {
    Workdir {
        dir: dir.into(),
        repo: repo.map(str::to_owned),
        ..Workdir::default()
    }
}

/// A session that works somewhere, by its handle.
fn works_in(rig: &mut Rig, pid: u32, workdir: Workdir) -> (Who, String) {
    let who = rig.here(&[pid]);
    let request = RegisterRequest {
        subject: Subject::Given(who.facts().chain),
        agent: Some(AgentName::known("claude")),
        native_id: NativeId::parse(&format!("conversation-{pid}")).ok(),
        transcript: None,
        source: RegistrationSource::Start,
        hosted: false,
        workdir,
        place_named: true,
        title: None,
        parent: None,
        reason: None,
        metadata: Default::default(),
    };
    let registered = rig.call(&who, |service| service.register(&request));
    (who, registered.unwrap().session.handle)
}

fn handles(rig: &mut Rig, who: &Who, request: &ListRequest) -> Vec<String> {
    let found = rig.call(who, |service| service.who(&ActFor::default(), request));
    let mut handles: Vec<String> = found
        .unwrap()
        .items
        .into_iter()
        .map(|one| one.handle)
        .collect();
    handles.sort();
    handles
}

#[test]
fn who_shows_the_others_that_are_open_there() {
    let mut rig = Rig::new();
    let web = |dir: &str| place(dir, Some("acme/web"));
    let (me, own) = works_in(&mut rig, 20, web("/w/web"));
    let (_, beside) = works_in(&mut rig, 30, web("/w/web-feature"));
    let (dead, _) = works_in(&mut rig, 40, web("/w/web"));
    let (_, elsewhere) = works_in(&mut rig, 50, place("/tmp/notes", None));
    dead.dies();
    let here = web("/w/web");
    assert_eq!(
        handles(&mut rig, &me, &ListRequest::around(&here)),
        [beside.as_str()]
    );
    assert_eq!(
        handles(&mut rig, &me, &ListRequest::below(&here)),
        [""; 0],
        "another worktree of the repository is not below this directory"
    );
    let outside = place("/tmp", None);
    assert_eq!(
        handles(&mut rig, &me, &ListRequest::around(&outside)),
        [elsewhere.as_str()]
    );
    let nobody = rig.here(&[60]);
    let mut all = [own, beside];
    all.sort();
    assert_eq!(handles(&mut rig, &nobody, &ListRequest::around(&here)), all);
}

#[test]
fn a_context_file_that_cannot_be_read_is_a_fault_beside_the_others() {
    let mut rig = Rig::new();
    let (me, handle) = works_in(&mut rig, 20, place("/w/web", None));
    let mut faults = |text: Result<String, String>| {
        let file = ContextFile {
            path: "/home/ann/context.json".into(),
            text,
        };
        let project = place("/elsewhere", None);
        let verified = rig.call(&me, |service| {
            let here = MissionPlace::default();
            service.verify(&ActFor::default(), &here, Some(&project), Some(&file))
        });
        let faults = verified.unwrap().faults.into_iter();
        let faults: Vec<_> = faults.map(|one| (one.field, one.subject)).collect();
        faults
    };
    let project = ("project", handle);
    let file = ("file", "/home/ann/context.json".to_owned());
    assert_eq!(
        faults(Err("it does not exist".into())),
        [project.clone(), file.clone()]
    );
    assert_eq!(faults(Ok("[]".into())), [project, file]);
}

#[test]
fn lines_of_another_conversation_are_named_and_recorded() {
    let mut rig = Rig::new();
    let (me, handle) = works_in(&mut rig, 20, place("/w/web", None));
    let act_for = ActFor {
        session: Some(handle.clone()),
        reason: None,
    };
    let path = "/home/ann/.claude/projects/-w-web/conversation-20.jsonl";
    let kept = rig.call(&me, |service| service.keep_transcript(&handle, path));
    let file = kept.unwrap();
    let vouched = rig.call(&me, |service| {
        service.transcript_to_write(&act_for, "on its behalf")
    });
    assert_eq!(vouched.unwrap(), Vouched::File(Box::new(file.clone())));
    let mut problems = |lines: &str| {
        let mut found = Vec::new();
        rig.call(&me, |service| {
            found = service.check_appended(&act_for, &file, lines.as_bytes())?;
            service.peek(&act_for)
        })
        .unwrap();
        let mut tx = rig.store.begin(TxMode::Read).unwrap();
        let log = tx.events(&EventFilter::default()).unwrap();
        let recorded = log.iter().filter(|one| one.kind == "contamination");
        let kinds: Vec<_> = found.iter().map(|one| (one.line, one.kind)).collect();
        (kinds, recorded.count())
    };
    assert_eq!(
        problems("{\"sessionId\":\"conversation-20\"}\n"),
        (vec![], 0)
    );
    assert_eq!(problems("{}\nno json\n"), (vec![(2, "malformed")], 0));
    assert_eq!(
        problems("{\"sessionId\":\"another\"}\n"),
        (vec![(1, "foreign")], 1)
    );
}

#[test]
fn a_session_is_waited_for_until_it_ends_and_rests_when_it_has() {
    let mut rig = Rig::new();
    let (worker, handle) = works_in(&mut rig, 20, place("/w/web", None));
    let watcher = rig.here(&[30]);
    let mut look = |until| {
        let found = rig.call(&watcher, |service| service.awaited(&handle, until));
        let found = found.unwrap();
        (found.is_so, found.process.map(|process| process.pid))
    };
    for until in [WaitGoal::Ends, WaitGoal::Rests] {
        assert_eq!(look(until), (false, Some(20)), "{until:?}");
    }
    worker.dies();
    for until in [WaitGoal::Ends, WaitGoal::Rests] {
        assert!(look(until).0, "{until:?}");
    }
}

/// A line that is drawn again and again must never wait for a file server, not even briefly.
#[test]
fn a_glance_looks_for_no_files_of_what_was_cut_off() {
    let mut rig = Rig::new();
    let web = |dir: &str| place(dir, Some("acme/web"));
    let (me, _) = works_in(&mut rig, 20, web("/w/web"));
    let (dead, lost) = works_in(&mut rig, 30, web("/hangs/web"));
    dead.dies();
    let record_deaths = rig.call(&me, |service| service.alive(&lost)).unwrap();
    assert!(!record_deaths.0);
    let who = Glancer {
        agent: AgentName::parse("claude").ok(),
        process: Some(rig.world.process(20)),
        native_id: None,
    };
    let glance = rig.call(&me, |service| service.glance(&who)).unwrap();
    assert_eq!(glance.unwrap().cut_off, [lost.as_str()]);
    assert_eq!(rig.world.paths_looked_for(), [""; 0]);
    rig.call(&me, |service| service.resumable(&lost)).unwrap();
    assert_eq!(rig.world.paths_looked_for(), ["/hangs/web"]);
}

/// How a session can lose what it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Loses {
    Death,
    SeenDeath,
    End,
    Takeover,
}

/// The branch that the next holder is told. Nobody looked since it was checked out.
fn told_branch(how: Loses) -> Option<String> {
    let mut rig = Rig::new();
    let (holder, _) = works_in(&mut rig, 20, place("/web", Some("acme/web")));
    let (next, _) = works_in(&mut rig, 30, place("/other", None));
    rig.claim(&holder, "wp:1").unwrap();
    rig.world.checks_out("/web", Some("topic"));
    match how {
        Loses::End => drop(rig.call(&holder, |service| service.end(&ActFor::default()))),
        Loses::Takeover => {}
        Loses::Death | Loses::SeenDeath => holder.dies(),
    }
    if how == Loses::SeenDeath {
        rig.call(&next, |service| {
            service.claims(None, &ClaimFilter::default())
        })
        .unwrap();
    }
    if matches!(how, Loses::End | Loses::SeenDeath) {
        // What someone checks out there afterwards is not what it left.
        rig.world.checks_out("/web", Some("later"));
    }
    let claim = if how == Loses::Takeover {
        let request = TakeoverRequest {
            key: key("wp:1"),
            from: None,
            epoch: None,
            note: None,
            reason: Reason::parse("it is stuck").unwrap(),
        };
        rig.call(&next, |service| {
            service.takeover(&ActFor::default(), &request)
        })
    } else {
        rig.claim(&next, "wp:1")
    };
    claim.unwrap().taken_from.unwrap().branch
}

#[test]
fn who_gets_a_claim_is_told_the_branch_that_its_last_holder_left() {
    for how in [Loses::Death, Loses::SeenDeath, Loses::End, Loses::Takeover] {
        assert_eq!(told_branch(how).as_deref(), Some("topic"), "{how:?}");
    }
}
