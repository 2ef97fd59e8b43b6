//! What a session's activity is shown as, and what it asks.

mod order;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::agent_event::{Happening, QuestionText};
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::process::{CallerFacts, RunState, Sighting};
use tenure_core::session::Doing;
use tenure_core::store::{Lock, Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_core::witness::{OwnReport, Question, Subject, Testimony, Witness};
use tenure_core::write_conflict::FileWrite;
use tenure_service::view::SessionView;
use tenure_service::{
    ActFor, AgentEvent, Awaited, ListRequest, Reply, Service, TakeoverRequest, WaitGoal,
};

use crate::{Policy, Reason, Rig, Who, key};

const MINUTE: Duration = Duration::from_secs(60);

/// What agents and terminals report, by process.
#[derive(Default)]
struct Told(RefCell<BTreeMap<u32, Testimony>>);

impl Witness for Told {
    fn testify(&self, about: &[Subject], _: Question) -> Vec<Testimony> {
        let told = self.0.borrow();
        let of = |subject: &Subject| told.get(&subject.process.pid).cloned();
        about
            .iter()
            .map(|one| of(one).unwrap_or_default())
            .collect()
    }
}

struct Stage {
    rig: Rig,
    told: Told,
}

impl Stage {
    fn new() -> Self {
        Self {
            rig: Rig::new(),
            told: Told::default(),
        }
    }

    fn now(&self) -> Timestamp {
        self.rig.clock.now().wall
    }

    fn pass(&self, span: Duration) {
        self.rig.clock.advance(span);
    }

    /// A session of this agent, which starts.
    fn starts(&mut self, agent: &'static str, pid: u32) -> Who {
        let who = self.rig.here(&[pid]);
        self.handle_event(&who, agent, |event| {
            event.what = Happening::Start;
            event.doing = Some(Doing::Idle);
            event.attended = true;
        });
        self.pass(Duration::from_millis(5));
        who
    }

    fn handle_event(
        &mut self,
        who: &Who,
        agent: &'static str,
        shape: impl FnOnce(&mut AgentEvent),
    ) {
        let mut event = AgentEvent {
            terminal: tenure_core::end::Terminal::Open,
            agent: Some(AgentName::known(agent)),
            process: who.facts().chain.into_iter().next(),
            program: None,
            native_id: NativeId::parse(&format!("n-{}", who.pids[0])).ok(),
            what: Happening::Other,
            subagent: None,
            doing: None,
            asks: None,
            why: None,
            until: None,
            asks_model: false,
            attended: false,
            woken_by: Vec::new(),
            dir: "/work".into(),
            transcript: None,
            tool: None,
            prompt: None,
            title: None,
            reaches_model: false,
            speaks: false,
            wants_brief: false,
            briefs_late: false,
            wants_recap: false,
            address: None,
        };
        shape(&mut event);
        self.rig
            .call(who, |service| service.handle_event(&event))
            .unwrap();
    }

    fn does(&mut self, who: &Who, agent: &'static str, doing: Doing) {
        self.handle_event(who, agent, |event| event.doing = Some(doing));
    }

    fn prompts(&mut self, who: &Who) {
        self.handle_event(who, "claude", |event| {
            event.doing = Some(Doing::Busy);
            event.attended = true;
        });
        self.pass(Duration::from_millis(5));
    }

    fn asks(&mut self, who: &Who, asked: QuestionText) {
        self.handle_event(who, "claude", |event| {
            event.doing = Some(Doing::Waiting);
            event.asks = Some(asked);
        });
    }

    /// From now on the agent's own registry reports this about a process.
    fn registry(&self, who: &Who, doing: Doing) {
        let own = OwnReport {
            doing: Some(doing),
            at: self.now(),
            ..OwnReport::empty(
                "its own registry",
                &[Doing::Busy, Doing::Waiting, Doing::Idle],
            )
        };
        let mut told = self.told.0.borrow_mut();
        told.entry(who.pids[0]).or_default().own = Some(own);
    }

    /// A command of a process started now and is still running.
    fn runs(&self, who: &Who) {
        let mut told = self.told.0.borrow_mut();
        told.entry(who.pids[0]).or_default().runs_since = Some(self.now());
    }

    fn writes(&mut self, who: &Who, path: &str) {
        let at = self.now();
        let id = self.one(who).id;
        let mut tx = self.rig.store.begin(TxMode::Beat).unwrap();
        tx.note_write(&FileWrite {
            path: path.into(),
            session: SessionId::parse(&id).unwrap(),
            at,
            stamp: None,
        })
        .unwrap();
        tx.commit().unwrap();
    }

    /// Its directory is in a repository.
    fn works_in_repo(&mut self, who: &Who) {
        let handle = self.one(who).handle;
        let mut session = self.rig.kept(&handle);
        session.workdir.repo = Some("acme/web".into());
        session.workdir.branch = Some("main".into());
        let mut tx = self.rig.store.begin(TxMode::Write).unwrap();
        tx.lock(&Lock::Session(session.id)).unwrap();
        tx.update_session(&session).unwrap();
        tx.commit().unwrap();
    }

    fn ask<T>(&mut self, facts: &CallerFacts, act: impl FnOnce(&mut Service<'_>) -> Reply<T>) -> T {
        let service = Service::new(
            &mut self.rig.store,
            &self.rig.world,
            facts,
            Policy::default(),
        );
        let mut service = service.with_witness(&self.told);
        act(&mut service)
            .map_err(|failure| failure.error)
            .unwrap()
            .value
    }

    fn nobody(&self) -> CallerFacts {
        self.rig.world.facts(&[9_000])
    }

    fn all(&mut self) -> Vec<SessionView> {
        let request = ListRequest {
            closed_too: true,
            ..ListRequest::default()
        };
        let facts = self.nobody();
        self.ask(&facts, |service| service.list(&request)).items
    }

    fn one(&mut self, who: &Who) -> SessionView {
        let pid = Some(who.pids[0]);
        let mut all = self.all().into_iter();
        all.find(|one| one.process.pid == pid).unwrap()
    }

    fn awaited(&mut self, who: &Who) -> Awaited {
        let handle = self.one(who).handle;
        let facts = self.nobody();
        self.ask(&facts, |service| service.awaited(&handle, WaitGoal::Rests))
    }
}

#[test]
fn a_cancelled_turn_is_over_although_no_event_says_so() {
    let mut stage = Stage::new();
    let claude = stage.starts("claude", 20);
    stage.prompts(&claude);
    stage.registry(&claude, Doing::Busy);
    assert_eq!(stage.one(&claude).activity, Some("busy"));
    assert!(!stage.awaited(&claude).is_so);
    stage.pass(MINUTE);
    stage.registry(&claude, Doing::Idle);
    let seen = stage.one(&claude);
    assert_eq!((seen.state, seen.activity), ("live", Some("idle")));
    assert!(!seen.finished, "who cancelled it was there");
    let by = seen.activity_by.unwrap();
    assert_eq!((by.source, by.certain), ("its own registry", true));
    assert_eq!(by.at, stage.now());
    assert!(seen.why.contains("its own registry"), "{}", seen.why);
    assert!(stage.awaited(&claude).is_so);
    stage.pass(MINUTE * 60);
    assert_eq!(
        stage.one(&claude).state,
        "live",
        "an old turn does not stall"
    );
    // The next prompt is newer than what the registry reported last.
    stage.prompts(&claude);
    assert_eq!(stage.one(&claude).activity, Some("busy"));
}

/// Seen with opencode: its tmux server is killed in the middle of a turn, and one more event is on its way.
#[test]
fn a_hook_that_outlives_its_agent_registers_no_one() {
    let mut stage = Stage::new();
    let killed = stage.starts("opencode", 20);
    stage.does(&killed, "opencode", Doing::Busy);
    let orphan = |event: &mut AgentEvent| {
        event.process = None;
        event.doing = Some(Doing::Idle);
    };
    // The shell between them was killed; the agent is alive.
    stage.handle_event(&killed, "opencode", orphan);
    assert_eq!(stage.all().len(), 1);
    assert_eq!(stage.one(&killed).activity, Some("busy"));
    killed.dies();
    stage.handle_event(&killed, "opencode", orphan);
    let all = stage.all();
    let states: Vec<_> = all.iter().map(|one| one.state).collect();
    assert_eq!(states, ["dead"], "{all:#?}");
}

/// Its process cannot be seen from there, so the event may come from another one.
#[test]
fn an_unseen_agent_in_a_known_conversation_is_registered_at_any_event() {
    let mut stage = Stage::new();
    let known = stage.starts("opencode", 20);
    let mut elsewhere = stage.rig.inside(&[30]);
    elsewhere.pids[0] = 20;
    stage.handle_event(&elsewhere, "opencode", |event| event.process = None);
    assert_eq!(stage.all().len(), 2);
    assert_eq!(stage.one(&known).state, "live");
}

#[test]
fn an_agent_that_says_busy_is_busy_although_its_turn_is_over() {
    let mut stage = Stage::new();
    let claude = stage.starts("claude", 20);
    stage.prompts(&claude);
    stage.registry(&claude, Doing::Busy);
    stage.pass(MINUTE);
    // Its subagent continues in the background.
    stage.does(&claude, "claude", Doing::Finished);
    stage.pass(Duration::from_secs(3));
    let seen = stage.one(&claude);
    assert_eq!((seen.activity, seen.finished), (Some("busy"), false));
    assert_eq!(seen.activity_by.unwrap().source, "its own registry");
    assert!(!stage.awaited(&claude).is_so);
    stage.registry(&claude, Doing::Idle);
    let seen = stage.one(&claude);
    assert_eq!((seen.activity, seen.finished), (Some("idle"), true));
}

#[test]
fn a_prompt_that_was_answered_with_yes_is_told_by_the_command_that_runs() {
    let mut stage = Stage::new();
    let gemini = stage.starts("gemini", 20);
    stage.handle_event(&gemini, "gemini", |event| {
        event.doing = Some(Doing::Waiting);
        event.asks = Some(QuestionText::Exactly("permission for `make`".into()));
    });
    assert_eq!(stage.one(&gemini).activity, Some("waiting"));
    stage.pass(MINUTE);
    stage.runs(&gemini);
    stage.pass(MINUTE);
    let seen = stage.one(&gemini);
    assert_eq!((seen.activity, seen.asks), (Some("busy"), None));
    let by = seen.activity_by.unwrap();
    assert_eq!((by.source, by.certain), ("its processes", true));
    assert!(
        seen.why.contains("busy according to its processes"),
        "{}",
        seen.why
    );
}

#[test]
fn f_v07_a_long_tool_call_is_never_shown_idle() {
    let mut stage = Stage::new();
    let claude = stage.starts("claude", 20);
    stage.prompts(&claude);
    stage.does(&claude, "claude", Doing::Busy);
    stage.registry(&claude, Doing::Busy);
    for minutes in 1..=14 {
        stage.pass(MINUTE);
        let seen = stage.one(&claude);
        assert_eq!(
            (seen.state, seen.activity),
            ("live", Some("busy")),
            "{minutes}"
        );
        assert!(seen.activity_by.unwrap().certain);
    }
    stage.pass(MINUTE * 2);
    let seen = stage.one(&claude);
    assert_eq!((seen.state, seen.activity), ("stalled", Some("busy")));
}

#[test]
fn an_agent_that_does_not_tell_when_a_prompt_is_over_is_doubted() {
    let mut stage = Stage::new();
    let gemini = stage.starts("gemini", 20);
    let other = stage.starts("worker", 30);
    for (who, name) in [(&gemini, "gemini"), (&other, "worker")] {
        stage.does(who, name, Doing::Waiting);
    }
    let certain = |stage: &mut Stage, who: &Who| stage.one(who).activity_by.unwrap().certain;
    stage.pass(MINUTE);
    assert!(certain(&mut stage, &gemini));
    stage.pass(MINUTE);
    assert!(!certain(&mut stage, &gemini));
    assert!(certain(&mut stage, &other), "its row does not say so");
    let why = stage.one(&gemini).why;
    assert!(why.contains("does not report when that ends"), "{why}");
    stage.does(&gemini, "gemini", Doing::Busy);
    assert!(certain(&mut stage, &gemini));
    stage.pass(MINUTE * 60);
    let seen = stage.one(&gemini);
    assert_eq!(seen.state, "live", "what may be over does not stall");
    assert!(!seen.activity_by.unwrap().certain);
}

#[test]
fn what_is_asked_is_kept_and_replaced_by_the_next_question() {
    let mut stage = Stage::new();
    let claude = stage.starts("claude", 20);
    stage.prompts(&claude);
    let asks = |stage: &mut Stage| stage.one(&claude).asks;
    let exactly = |text: &str| QuestionText::Exactly(format!("permission for `{text}`"));
    stage.asks(&claude, exactly("rm -rf build"));
    assert_eq!(
        asks(&mut stage).as_deref(),
        Some("permission for `rm -rf build`")
    );
    let since = stage.one(&claude).activity_since;
    stage.pass(MINUTE);
    stage.asks(
        &claude,
        QuestionText::Roughly("Claude needs your permission".into()),
    );
    assert_eq!(
        asks(&mut stage).as_deref(),
        Some("permission for `rm -rf build`")
    );
    stage.asks(&claude, exactly("ls"));
    assert_eq!(asks(&mut stage).as_deref(), Some("permission for `ls`"));
    assert_eq!(
        stage.one(&claude).activity_since,
        since,
        "it waits since then"
    );
    stage.does(&claude, "claude", Doing::Busy);
    assert_eq!(asks(&mut stage), None);
    stage.asks(&claude, QuestionText::Roughly("Claude needs you".into()));
    assert_eq!(asks(&mut stage).as_deref(), Some("Claude needs you"));
}

#[test]
fn a_finished_turn_is_news_until_a_person_was_there() {
    let mut stage = Stage::new();
    let claude = stage.starts("claude", 20);
    let finished = |stage: &mut Stage| stage.one(&claude).finished;
    assert!(!finished(&mut stage), "nothing was asked of it");
    let turn = |stage: &mut Stage| {
        stage.prompts(&claude);
        assert!(!stage.one(&claude).finished);
        stage.pass(MINUTE);
        stage.does(&claude, "claude", Doing::Finished);
        stage.pass(MINUTE);
        assert!(stage.one(&claude).finished);
    };
    let handle = stage.one(&claude).handle;
    turn(&mut stage);
    // A program that reads is not a person.
    let program = stage.nobody();
    stage.ask(&program, |service| service.show(&handle));
    assert!(finished(&mut stage));
    let person = CallerFacts {
        at_terminal: true,
        has_terminal: true,
        ..stage.nobody()
    };
    let shown = stage.ask(&person, |service| service.show(&handle));
    assert!(shown.session.finished, "it was so when it was looked at");
    assert!(!finished(&mut stage));
    turn(&mut stage);
    let before = stage.one(&claude);
    stage.ask(&program, |service| service.attend(&handle));
    let after = stage.one(&claude);
    assert!(!after.finished);
    assert_eq!(after.last_seen_at, before.last_seen_at, "it did not speak");
    assert_eq!(after.lease_until, before.lease_until);
    turn(&mut stage);
    let here = stage.now();
    let mut told = stage.told.0.borrow_mut();
    told.entry(20).or_default().attended_at = Some(here);
    drop(told);
    assert!(!finished(&mut stage));
    // It was seen once, and stays seen when the person has left the window.
    stage.told.0.borrow_mut().remove(&20);
    assert!(!finished(&mut stage));
}

#[test]
fn the_branch_is_the_one_that_is_checked_out_now() {
    let mut stage = Stage::new();
    let claude = stage.starts("claude", 20);
    stage.works_in_repo(&claude);
    let handle = stage.one(&claude).handle;
    let branch = |stage: &mut Stage| {
        let seen = stage.one(&claude);
        (seen.branch, seen.branch_at)
    };
    let stored = |stage: &mut Stage| stage.rig.kept(&handle).workdir.branch;
    stage.rig.world.checks_out("/work", Some("topic"));
    assert_eq!(branch(&mut stage), (Some("topic".into()), None));
    assert_eq!(
        stored(&mut stage).as_deref(),
        Some("topic"),
        "others read it"
    );
    stage.rig.world.checks_out("/work", None);
    assert_eq!(branch(&mut stage), (None, None), "a detached HEAD");
    // On another machine only what was seen last is known, with its time.
    stage.rig.world.checks_out("/work", Some("late"));
    branch(&mut stage);
    let seen_at = stage.now();
    stage.pass(MINUTE);
    let elsewhere = stage.rig.inside(&[9_001]);
    let facts = elsewhere.facts();
    let world = &elsewhere.world;
    let service = Service::new(&mut stage.rig.store, world, &facts, Policy::default());
    let mut service = service.with_witness(&stage.told);
    let listed = service.list(&ListRequest::default()).unwrap().value;
    let other = &listed.items[0];
    assert_eq!(other.branch.as_deref(), Some("late"));
    assert_eq!(other.branch_at, Some(seen_at));
}

/// Codex and opencode send nothing before a person types in them.
#[test]
fn a_conversation_that_was_resumed_and_not_typed_in_is_starting_everywhere() {
    let mut stage = Stage::new();
    let codex = stage.starts("codex", 20);
    stage.handle_event(&codex, "codex", |event| {
        event.what = Happening::End {
            ends_worker: true,
            reason: "other".into(),
        };
    });
    codex.dies();
    let handle = stage.all()[0].handle.clone();
    let argv = ["codex", "resume", "n-20"];
    stage.rig.world.starts_agent("codex", 30, "/work", &argv);
    let nobody = stage.nobody();
    let alive = stage.ask(&nobody, |service| service.alive(&handle));
    assert!(alive.0);
    let window = stage.ask(&nobody, |service| service.window(&handle));
    assert_eq!(window.process.map(|process| process.pid), Some(30));
    let shown = stage.ask(&nobody, |service| service.show(&handle)).session;
    let around = ListRequest {
        under: Some("/work".into()),
        ..ListRequest::default()
    };
    let open = stage.ask(&nobody, |service| service.list(&around)).items;
    let beside = stage.ask(&nobody, |service| service.who(&ActFor::default(), &around));
    let status = stage.ask(&nobody, |service| {
        service.status(&ActFor::default(), &around)
    });
    assert_eq!(status.cut_off.len(), 0);
    for seen in [
        shown,
        alive.1,
        open[0].clone(),
        beside.items[0].clone(),
        status.others[0].clone(),
    ] {
        assert_eq!((seen.state, seen.activity), ("live", Some("starting")));
        assert_eq!(seen.starting(), Some(30));
        assert_eq!((seen.ended_at, seen.end_kind), (None, None));
        assert!(!seen.why.contains("gone"), "{}", seen.why);
    }
    assert_eq!(open[0].rank, Some("starting"));
    assert_eq!(open.len(), 1);
    let elsewhere = ListRequest {
        under: Some("/other".into()),
        ..ListRequest::default()
    };
    assert_eq!(
        stage
            .ask(&nobody, |service| service.list(&elsewhere))
            .items
            .len(),
        0
    );
    // Its first prompt registers it.
    let again = stage.rig.here(&[30]);
    stage.handle_event(&again, "codex", |event| {
        event.native_id = NativeId::parse("n-20").ok();
        event.doing = Some(Doing::Busy);
        event.attended = true;
    });
    let seen = stage.one(&again);
    assert_eq!((seen.handle, seen.activity), (handle, Some("busy")));
}

/// Its command line still names the conversation.
#[test]
fn a_session_that_was_ended_while_its_process_goes_on_is_not_starting() {
    let mut stage = Stage::new();
    let codex = stage.starts("codex", 20);
    let argv = ["codex", "resume", "n-20"];
    stage.rig.world.starts_agent("codex", 20, "/work", &argv);
    let handle = stage.all()[0].handle.clone();
    stage.handle_event(&codex, "codex", |event| {
        event.what = Happening::End {
            ends_worker: true,
            reason: "other".into(),
        };
    });
    let nobody = stage.nobody();
    let shown = stage.ask(&nobody, |service| service.show(&handle)).session;
    assert_eq!(shown.state, "ended");
    let listed = stage.ask(&nobody, |service| service.list(&ListRequest::default()));
    assert_eq!(listed.items.len(), 0);
}

#[test]
fn a_failed_turn_says_why_and_a_stopped_process_that_it_is_suspended() {
    let mut stage = Stage::new();
    let claude = stage.starts("claude", 20);
    stage.prompts(&claude);
    stage.handle_event(&claude, "claude", |event| {
        event.doing = Some(Doing::Failed);
        event.why = Some("500 Internal server error".into());
    });
    stage.pass(MINUTE);
    stage.does(&claude, "claude", Doing::Idle);
    let seen = stage.one(&claude);
    assert_eq!((seen.activity, seen.rank), (Some("failed"), Some("failed")));
    assert_eq!(
        seen.activity_why.as_deref(),
        Some("500 Internal server error")
    );
    assert!(
        seen.why.contains("failed according to its events, 1m ago"),
        "{}",
        seen.why
    );
    assert!(stage.awaited(&claude).is_so);
    stage.prompts(&claude);
    let process = stage.rig.world.process(20);
    stage.rig.world.see(
        20,
        Sighting::Present {
            start: process.start,
            state: RunState::Stopped,
            threads: 1,
        },
    );
    let seen = stage.one(&claude);
    assert_eq!(
        (seen.activity, seen.rank),
        (Some("suspended"), Some("suspended"))
    );
    assert!(
        seen.why.contains("suspended according to the kernel"),
        "{}",
        seen.why
    );
    assert!(!stage.awaited(&claude).is_so);
}

#[test]
fn a_session_that_resumes_is_not_finished() {
    let mut stage = Stage::new();
    let claude = stage.starts("claude", 20);
    stage.prompts(&claude);
    stage.pass(MINUTE);
    claude.dies();
    stage.all();
    let again = stage.rig.here(&[30]);
    stage.handle_event(&again, "claude", |event| {
        event.what = Happening::Start;
        event.native_id = NativeId::parse("n-20").ok();
        event.doing = Some(Doing::Idle);
        event.attended = true;
    });
    stage.pass(MINUTE);
    let seen = stage.one(&again);
    assert_eq!((seen.activity, seen.finished), (Some("idle"), false));
}
