//! Conversations that a daemon runs: each belongs to its window, and outlives it only until its turn ends.

use tenure_core::agent_event::Happening;
use tenure_core::id::{AgentName, NativeId};
use tenure_core::policy::Policy;
use tenure_core::process::{NativeVariable, Sighting, Survivors};
use tenure_core::session::Doing;
use tenure_core::store::{SessionFilter, Store, TxMode};
use tenure_core::witness::{Question, Subject as About, Testimony, Witness};
use tenure_core::world::World;
use tenure_service::error::Error;
use tenure_service::view::SessionView;
use tenure_service::{
    ActFor, AgentEvent, ClaimRequest, HandledEvent, ListRequest, RegisterRequest, Service,
};

use super::{Rig, Who, asks, kind};

const DAEMON: u32 = 50;
const ONE: u32 = 61;
const TWO: u32 = 62;
const KEY: &str = "wp:041/WP03";

fn daemon() -> Rig {
    let rig = Rig::new();
    let argv = [
        "codex",
        "app-server",
        "--listen",
        "unix://",
        "--managed-daemon",
    ];
    rig.world.looks_like(DAEMON, "/h/bin/codex", &argv);
    for pid in [ONE, TWO] {
        rig.world.looks_like(pid, "/h/bin/codex", &["codex"]);
        rig.world.process(pid);
    }
    rig
}

impl Rig {
    /// An event of a conversation, from a hook that the daemon runs.
    fn says(&mut self, native: &str, what: Happening, doing: Doing) -> HandledEvent {
        self.says_attended(native, what, doing, false)
    }

    fn says_attended(
        &mut self,
        native: &str,
        what: Happening,
        doing: Doing,
        attended: bool,
    ) -> HandledEvent {
        // The window that started the daemon is above it as long as it runs.
        let above = matches!(self.world.look(ONE), Sighting::Present { .. }).then_some(ONE);
        let chain: Vec<u32> = [70, DAEMON].into_iter().chain(above).collect();
        let hook = self.here(&chain);
        let event = AgentEvent {
            asks: None,
            why: None,
            until: None,
            asks_model: false,
            attended,
            woken_by: Vec::new(),
            terminal: tenure_core::end::Terminal::Open,
            prompt: None,
            title: None,
            agent: Some(AgentName::known("codex")),
            process: hook.facts().chain.into_iter().nth(1),
            program: None,
            native_id: NativeId::parse(native).ok(),
            what,
            subagent: None,
            doing: Some(doing),
            dir: "/work".into(),
            transcript: Some(format!("/h/.codex/sessions/2026/rollout-{native}.jsonl")),
            tool: None,
            reaches_model: false,
            speaks: true,
            wants_brief: false,
            briefs_late: false,
            wants_recap: false,
            address: None,
        };
        self.call(&hook, |service| service.handle_event(&event))
            .unwrap()
    }

    /// A conversation begins in a window, and is in a turn.
    fn begins(&mut self, native: &str, window: u32) -> HandledEvent {
        self.world.opens(window, native);
        let heard = self.says(native, Happening::Start, Doing::Idle);
        self.says(native, Happening::Other, Doing::Busy);
        heard
    }

    /// A person prompts.
    fn prompts(&mut self, native: &str) -> HandledEvent {
        self.says_attended(native, Happening::Other, Doing::Busy, true)
    }

    fn stops(&mut self, native: &str) {
        self.says(native, Happening::Other, Doing::Idle);
    }

    fn ends_by_event(&mut self, native: &str) {
        let end = Happening::End {
            ends_worker: true,
            reason: "other".into(),
        };
        self.says(native, end, Doing::Idle);
    }

    /// A conversation's tool process: below the daemon, which the first window happened to start.
    fn tool_of(&self, heard: &HandledEvent) -> Who {
        let mut tool = self.here(&[71, DAEMON, ONE]);
        tool.token.clone_from(&heard.token);
        tool
    }

    fn shown(&mut self, heard: &HandledEvent) -> SessionView {
        let name = heard.session.clone().unwrap();
        let looker = self.here(&[90]);
        self.call(&looker, |service| service.show(&name))
            .unwrap()
            .session
    }

    /// The answer to a tool below the daemon whose variable names a conversation.
    fn whoami_in(&mut self, native: &str) -> Result<String, Error> {
        let mut facts = self.world.facts(&[71, DAEMON, ONE]);
        facts.native_variables.push(NativeVariable {
            agent: "codex",
            name: "CODEX_THREAD_ID",
            value: native.into(),
        });
        let mut service = Service::new(&mut self.store, &self.world, &facts, Policy::default());
        match service.own_session(&ActFor::default()) {
            Ok(answer) => Ok(answer.value.session.handle),
            Err(failure) => Err(failure.error),
        }
    }

    /// A process of Codex registers by itself, not through the daemon.
    fn codex(&mut self, pid: u32, native: &str) -> Who {
        let who = self.here(&[pid]);
        let request = RegisterRequest {
            agent: Some(AgentName::known("codex")),
            ..self.request(&who, native)
        };
        self.call(&who, |service| service.register(&request))
            .unwrap();
        who
    }

    fn open(&mut self) -> usize {
        let mut tx = self.store.begin(TxMode::Read).unwrap();
        tx.list_sessions(&SessionFilter::default()).unwrap().len()
    }

    fn taker(&mut self) -> Who {
        let taker = self.here(&[30]);
        self.register(&taker, "taker");
        taker
    }
}

#[test]
fn a_conversation_is_bound_to_its_window_and_not_to_the_one_that_started_the_daemon() {
    let mut rig = daemon();
    let heard = rig.begins("t2", TWO);
    assert_eq!(heard.registered, Some("hosted"));
    let shown = rig.shown(&heard);
    assert_eq!(shown.process.pid, Some(TWO));
    assert_eq!(shown.state, "live");
    assert!(
        shown.why.starts_with(&format!("pid {TWO} is running")),
        "{}",
        shown.why
    );
    // The window is a session now, and the daemon is not reported as an unmanaged agent.
    let looker = rig.here(&[90]);
    let asked = [TWO, DAEMON, ONE].map(|pid| rig.world.process(pid));
    let strange = rig.call(&looker, |service| service.unmanaged(&asked));
    assert_eq!(strange.unwrap(), [false, false, true]);
}

#[test]
fn a_tool_below_the_daemon_is_its_own_conversations() {
    let mut rig = daemon();
    let (one, two) = (rig.begins("t1", ONE), rig.begins("t2", TWO));
    for heard in [&one, &two] {
        let tool = rig.tool_of(heard);
        let me = rig.call(&tool, |service| service.own_session(&ActFor::default()));
        let me = me.unwrap();
        assert_eq!(Some(me.session.handle), heard.session);
        assert_eq!(me.resolved.by, "ancestry");
    }
    // Nothing selects one of the two, and the window above the daemon is not asked.
    let nobody = rig.here(&[71, DAEMON, ONE]);
    let found = rig.call(&nobody, |service| service.own_session(&ActFor::default()));
    assert_eq!(kind(found), "ambiguous");
}

#[test]
fn what_runs_below_a_daemon_without_sessions_is_not_the_windows_above_it() {
    let mut rig = daemon();
    let window = rig.here(&[ONE]);
    rig.register(&window, "w");
    let tool = rig.here(&[71, DAEMON, ONE]);
    let found = rig.call(&tool, |service| service.own_session(&ActFor::default()));
    let error = found.err().unwrap();
    assert_eq!(error.kind(), "no_session");
    assert!(
        error.to_string().contains(&format!("pid {DAEMON}")),
        "{error}"
    );
}

#[test]
fn a_window_that_goes_while_nothing_runs_takes_its_conversation_along_at_once() {
    let mut rig = daemon();
    let heard = rig.begins("t1", ONE);
    let tool = rig.tool_of(&heard);
    rig.claim(&tool, KEY).unwrap();
    rig.stops("t1");
    let taker = rig.taker();
    assert_eq!(kind(rig.claim(&taker, KEY)), "held");
    rig.world.exit(ONE);
    let claim = rig.claim(&taker, KEY).unwrap();
    assert_eq!(claim.epoch, 2);
    let shown = rig.shown(&heard);
    assert_eq!(shown.state, "dead");
    assert_eq!(shown.why, format!("pid {ONE} is gone"));
    let name = heard.session.clone().unwrap();
    let resumable = rig.call(&taker, |service| service.resumable(&name));
    assert_eq!(resumable.unwrap().native_id.as_str(), "t1");
    // The daemon reports it a minute later, when there is nothing left to end.
    rig.ends_by_event("t1");
    assert_eq!(rig.shown(&heard).state, "dead");
}

/// The daemon reports the same for both, so the traces of the window decide.
#[test]
fn a_window_that_went_in_order_has_left_and_any_other_was_cut_off() {
    for (went, expected) in [
        (Some(true), "left"),
        (Some(false), "cut_off"),
        (None, "cut_off"),
    ] {
        for says_so in [true, false] {
            let mut rig = daemon();
            let heard = rig.begins("t1", ONE);
            rig.stops("t1");
            rig.world.exit(ONE);
            if let Some(orderly) = went {
                rig.world.parts(ONE, orderly);
            }
            if says_so {
                rig.ends_by_event("t1");
            }
            let shown = rig.shown(&heard);
            assert_eq!(shown.end_kind, Some(expected), "{went:?} {says_so}");
        }
    }
}

#[test]
fn a_turn_goes_on_without_its_window_and_is_over_with_its_stop() {
    let mut rig = daemon();
    let heard = rig.begins("t1", ONE);
    let tool = rig.tool_of(&heard);
    rig.claim(&tool, KEY).unwrap();
    rig.world.exit(ONE);
    let taker = rig.taker();
    assert_eq!(kind(rig.claim(&taker, KEY)), "held");
    let shown = rig.shown(&heard);
    assert_eq!(shown.state, "live");
    let why = format!("no window; the daemon is finishing its turn (pid {DAEMON})");
    assert!(shown.why.starts_with(&why), "{}", shown.why);
    // What the turn still runs acts for it.
    let mut orphan = rig.here(&[71, DAEMON]);
    orphan.token.clone_from(&tool.token);
    assert_eq!(rig.guard(&orphan, KEY).unwrap().epoch, 1);
    // A waiter for its end must watch the process that is still alive.
    let name = heard.session.clone().unwrap();
    let until = tenure_service::WaitGoal::Ends;
    let awaited = rig.call(&taker, |service| service.awaited(&name, until));
    let watched = awaited.unwrap().process.unwrap();
    assert_eq!(watched.pid, DAEMON);
    rig.stops("t1");
    // It is recorded with that event, so that waiters are woken.
    let mut tx = rig.store.begin(TxMode::Read).unwrap();
    let recorded = tx.session(heard.id.unwrap()).unwrap().unwrap();
    assert!(recorded.closed.is_some(), "{recorded:?}");
    drop(tx);
    assert_eq!(rig.claim(&taker, KEY).unwrap().epoch, 2);
    assert_eq!(rig.shown(&heard).state, "dead");
}

#[test]
fn a_turn_without_its_window_is_over_with_the_daemon() {
    let mut rig = daemon();
    let heard = rig.begins("t1", ONE);
    let tool = rig.tool_of(&heard);
    rig.claim(&tool, KEY).unwrap();
    rig.world.exit(ONE);
    rig.world.exit(DAEMON);
    let taker = rig.taker();
    assert_eq!(rig.claim(&taker, KEY).unwrap().epoch, 2);
    assert_eq!(rig.shown(&heard).state, "dead");
}

#[test]
fn of_two_windows_on_one_daemon_each_takes_only_its_own_along() {
    let mut rig = daemon();
    let (one, two) = (rig.begins("t1", ONE), rig.begins("t2", TWO));
    rig.stops("t1");
    rig.stops("t2");
    rig.world.exit(ONE);
    assert_eq!(rig.shown(&one).state, "dead");
    assert_eq!(rig.shown(&two).state, "live");
    assert_eq!(rig.shown(&two).process.pid, Some(TWO));
    rig.world.exit(TWO);
    assert_eq!(rig.shown(&two).state, "dead");
}

#[test]
fn a_conversation_that_another_window_takes_up_is_the_same_session_there() {
    let mut rig = daemon();
    let first = rig.begins("t1", ONE);
    let tool = rig.tool_of(&first);
    rig.claim(&tool, KEY).unwrap();
    rig.stops("t1");
    rig.world.exit(ONE);
    // The daemon never stopped, and no one checked in between.
    rig.world.opens(TWO, "t1");
    let again = rig.says("t1", Happening::Start, Doing::Idle);
    assert_eq!(again.registered, Some("resumed"));
    assert_eq!(again.session, first.session);
    let shown = rig.shown(&again);
    assert_eq!((shown.process.pid, shown.process.life), (Some(TWO), 2));
    assert_eq!(shown.state, "live");
    let held = shown.claims.unwrap();
    assert_eq!(held.len(), 1, "{held:?}");
    // The ended life no longer acts for any session.
    let old = rig.tool_of(&first);
    let me = rig.call(&old, |service| service.own_session(&ActFor::default()));
    let disagreements = me.unwrap().resolved.disagreements;
    assert_eq!(disagreements.len(), 1, "{disagreements:?}");
}

#[test]
fn a_window_that_goes_on_to_another_conversation_is_the_same_session_with_its_claims() {
    let mut rig = daemon();
    let first = rig.begins("t1", ONE);
    let tool = rig.tool_of(&first);
    rig.claim(&tool, KEY).unwrap();
    rig.stops("t1");
    // `/new`: one window is one row.
    let second = rig.begins("t3", ONE);
    assert_eq!(second.registered, Some("rotated"));
    assert_eq!(first.session, second.session);
    assert_eq!(rig.open(), 1);
    let tool = rig.tool_of(&second);
    assert_eq!(rig.guard(&tool, KEY).unwrap().epoch, 1);
    // The daemon unloads the first conversation later, which the window has left.
    rig.ends_by_event("t1");
    let shown = rig.shown(&second);
    assert_eq!(
        (shown.state, shown.native_id.as_deref()),
        ("live", Some("t3"))
    );
    // `/resume`, back to the first.
    rig.stops("t3");
    let back = rig.begins("t1", ONE);
    assert_eq!(back.session, first.session);
    assert_eq!(rig.open(), 1);
    assert_eq!(rig.shown(&back).native_id.as_deref(), Some("t1"));
    rig.ends_by_event("t3");
    assert_eq!(rig.shown(&back).state, "live");
}

#[test]
fn a_window_that_resumes_the_conversation_of_a_dead_one_takes_it_over() {
    let mut rig = daemon();
    let (one, two) = (rig.begins("t1", ONE), rig.begins("t2", TWO));
    rig.stops("t1");
    rig.stops("t2");
    rig.world.exit(TWO);
    let resumed = rig.begins("t2", ONE);
    assert_eq!(resumed.session, one.session);
    assert_eq!(rig.open(), 1);
    assert_eq!(rig.shown(&two).end_kind, Some("moved"));
}

#[test]
fn a_window_that_went_on_while_its_daemon_was_silent_is_one_row_when_it_is_found() {
    let mut rig = daemon();
    let first = rig.begins("t1", ONE);
    rig.stops("t1");
    // The daemon does not say where the next one is; a prompt finds it.
    let second = rig.says("t3", Happening::Start, Doing::Idle);
    rig.world.opens(ONE, "t3");
    rig.prompts("t3");
    assert_eq!(rig.open(), 1);
    assert_eq!(rig.shown(&first).state, "ended");
    let shown = rig.shown(&second);
    assert_eq!((shown.state, shown.process.pid), ("live", Some(ONE)));
}

#[test]
fn a_turn_that_the_daemon_finishes_is_named_in_lists_and_by_resume() {
    let mut rig = daemon();
    let heard = rig.begins("t1", ONE);
    let looker = rig.here(&[90]);
    let listed = |rig: &mut Rig| {
        let rows = rig.call(&looker, |service| service.list(&ListRequest::default()));
        rows.unwrap().items.remove(0)
    };
    assert_eq!(listed(&mut rig).daemon, None);
    rig.world.exit(ONE);
    let row = listed(&mut rig);
    assert_eq!(
        (row.daemon, row.place.as_deref()),
        (Some(DAEMON), Some("no window"))
    );
    let name = heard.session.clone().unwrap();
    let refused = rig.call(&looker, |service| service.resumable(&name));
    let said = refused.err().unwrap().to_string();
    assert!(
        said.contains(&format!("the daemon (pid {DAEMON})")),
        "{said}"
    );
    assert!(!said.contains(&ONE.to_string()), "{said}");
    rig.stops("t1");
    assert_eq!(rig.shown(&heard).daemon, None);
}

#[test]
fn a_conversation_without_a_known_window_lives_with_the_daemon() {
    let mut rig = daemon();
    let heard = rig.says("t1", Happening::Start, Doing::Idle);
    let shown = rig.shown(&heard);
    assert_eq!(shown.state, "live");
    assert_eq!(shown.process.pid, Some(DAEMON));
    let why = format!("no window is known; the daemon keeps it alive (pid {DAEMON})");
    assert!(shown.why.starts_with(&why), "{}", shown.why);
    rig.ends_by_event("t1");
    assert_eq!(rig.shown(&heard).state, "ended");
    assert_eq!(rig.shown(&heard).end_kind, Some("cut_off"));
}

#[test]
fn a_start_whose_window_cannot_be_found_is_not_a_second_session() {
    let mut rig = daemon();
    let first = rig.begins("t1", ONE);
    rig.stops("t1");
    rig.world.opens(999, "t1");
    let again = rig.says("t1", Happening::Start, Doing::Idle);
    assert_eq!(again.session, first.session);
    assert_eq!(again.registered, Some("same"));
    assert_eq!(rig.shown(&first).process.pid, Some(ONE));
}

#[test]
fn a_heartbeat_of_a_daemon_asks_once_who_speaks() {
    let mut rig = daemon();
    rig.begins("t1", ONE);
    rig.store.lookups.set(0);
    rig.says("t1", Happening::Other, Doing::Busy);
    assert_eq!(rig.store.lookups.get(), 1);
}

#[test]
fn a_conversation_that_lived_with_the_daemon_goes_to_its_window_once_that_is_known() {
    for starts in [false, true] {
        let mut rig = daemon();
        let heard = rig.says("t1", Happening::Start, Doing::Idle);
        let tool = rig.tool_of(&heard);
        rig.claim(&tool, KEY).unwrap();
        rig.world.opens(ONE, "t1");
        let again = if starts {
            rig.says("t1", Happening::Start, Doing::Idle)
        } else {
            rig.prompts("t1")
        };
        assert_eq!(again.session, heard.session);
        assert_eq!(rig.open(), 1);
        let shown = rig.shown(&heard);
        assert_eq!((shown.process.pid, shown.process.life), (Some(ONE), 2));
        let tool = rig.tool_of(&again);
        assert_eq!(rig.guard(&tool, KEY).unwrap().epoch, 1);
        rig.stops("t1");
        rig.world.exit(ONE);
        let taker = rig.taker();
        assert_eq!(rig.claim(&taker, KEY).unwrap().epoch, 2);
        assert_eq!(rig.shown(&heard).state, "dead");
    }
}

#[test]
fn of_two_sessions_in_one_conversation_an_event_is_the_one_at_the_window_or_the_owners() {
    let mut rig = daemon();
    let owner = rig.begins("t1", ONE);
    rig.stops("t1");
    let twin = rig.begins("t1", TWO);
    assert_eq!(twin.registered, Some("twin"));
    for (window, speaks) in [(TWO, &twin), (ONE, &owner), (999, &owner)] {
        rig.world.opens(window, "t1");
        let heard = rig.says("t1", Happening::Other, Doing::Busy);
        assert_eq!(heard.session, speaks.session, "{window}");
        assert_eq!(heard.registered, None, "{window}");
        let again = rig.says("t1", Happening::Other, Doing::Busy);
        assert!(again.quiet_for.is_zero(), "the next may be the other's");
    }
    assert_eq!(rig.open(), 2);
    rig.ends_by_event("t1");
    assert_eq!(rig.open(), 0);
    for heard in [&owner, &twin] {
        assert_eq!(rig.shown(heard).state, "ended");
    }
}

#[test]
fn a_turn_that_ends_in_another_window_leaves_the_session_there_with_its_claims() {
    let mut rig = daemon();
    let heard = rig.begins("t1", ONE);
    let tool = rig.tool_of(&heard);
    rig.claim(&tool, KEY).unwrap();
    rig.world.exit(ONE);
    rig.world.opens(TWO, "t1");
    rig.stops("t1");
    let shown = rig.shown(&heard);
    assert_eq!(shown.state, "live");
    assert_eq!((shown.process.pid, shown.process.life), (Some(TWO), 2));
    let taker = rig.taker();
    assert_eq!(kind(rig.claim(&taker, KEY)), "held");
    let orphan = rig.here(&[71, DAEMON]);
    assert_eq!(rig.guard(&orphan, KEY).unwrap().epoch, 1);
    rig.world.exit(TWO);
    assert_eq!(rig.claim(&taker, KEY).unwrap().epoch, 2);
}

/// What it left running in the first window is searched for, and what it held is offered again.
#[test]
fn a_session_that_died_in_its_second_window_is_still_known_by_its_first() {
    let mut rig = daemon();
    let heard = rig.begins("t1", ONE);
    let tool = rig.tool_of(&heard);
    rig.claim(&tool, KEY).unwrap();
    rig.world.exit(ONE);
    rig.world.opens(TWO, "t1");
    rig.stops("t1");
    rig.world.exit(TWO);
    rig.world.leave_behind(Survivors {
        found: vec![rig.world.left(71, "make", false)],
        doubt: None,
    });
    let taker = rig.taker();
    let request = ClaimRequest {
        require_quiet: true,
        ..asks(&[KEY])
    };
    let refused = rig.call(&taker, |service| {
        service.claim(&ActFor::default(), &request)
    });
    assert_eq!(kind(refused), "survivors");
    let signs = rig.world.signs().remove(0);
    let leaders: Vec<u32> = signs.leaders.iter().map(|leader| leader.pid).collect();
    assert_eq!(leaders, [TWO, ONE]);
    let id = rig.shown(&heard).id;
    assert_eq!(signs.tokens, [format!("{id}.2"), format!("{id}.1")]);
    let listed = rig.call(&taker, |service| service.list(&ListRequest::default()));
    let listed = listed.unwrap().items;
    let dead = listed.iter().find(|one| one.id == id).unwrap();
    assert_eq!(dead.resume.as_ref().unwrap().held.len(), 1);
}

#[test]
fn a_window_that_was_adopted_before_its_first_prompt_is_one_session() {
    let mut rig = daemon();
    let window = rig.codex(ONE, "");
    rig.claim(&window, KEY).unwrap();
    let heard = rig.begins("t1", ONE);
    assert_eq!(rig.open(), 1);
    assert_eq!(heard.registered, Some("same"));
    assert_eq!(rig.whoami_in("t1").ok(), heard.session);
    assert_eq!(rig.guard(&window, KEY).unwrap().epoch, 1);
    rig.world.exit(ONE);
    assert_eq!(rig.shown(&heard).state, "live");
    rig.stops("t1");
    assert_eq!(rig.shown(&heard).state, "dead");
}

#[test]
fn a_tool_whose_conversation_another_session_owns_is_not_the_daemons_only_session() {
    let mut rig = daemon();
    let heard = rig.begins("t1", ONE);
    rig.codex(80, "t2");
    assert_eq!(rig.whoami_in("t1").ok(), heard.session);
    assert_eq!(rig.whoami_in("t9").ok(), heard.session);
    assert_eq!(kind(rig.whoami_in("t2")), "ambiguous");
}

/// A daemon that reports nothing.
struct Silent;

impl Witness for Silent {
    fn testify(&self, _about: &[About], _question: Question) -> Vec<Testimony> {
        Vec::new()
    }
}

#[test]
fn a_turn_whose_end_was_not_heard_of_is_over_when_the_daemon_says_so() {
    // What the daemon reports, whether a hook asks, and what happens to the claim.
    let rows = [
        (Some(false), true, "granted"),
        (Some(true), true, "held"),
        (None, true, "held"),
        (Some(false), false, "held"),
    ];
    for (said, may_ask, expected) in rows {
        let mut rig = daemon();
        let heard = rig.begins("t1", ONE);
        let tool = rig.tool_of(&heard);
        rig.claim(&tool, KEY).unwrap();
        rig.world.exit(ONE);
        if let Some(runs) = said {
            rig.world.says_of_turn("t1", runs);
        }
        let taker = rig.taker();
        let facts = taker.facts();
        let mut service = Service::new(&mut rig.store, &rig.world, &facts, Policy::default());
        if may_ask {
            service = service.with_witness(&Silent);
        }
        let taken = service.claim(&ActFor::default(), &asks(&[KEY]));
        let taken = taken.map_err(|failure| failure.error);
        assert_eq!(kind(taken), expected, "{said:?} {may_ask}");
        let shown = service.show(&heard.session.clone().unwrap());
        let state = shown.unwrap().value.session.state;
        let live = expected == "held";
        assert_eq!(state, if live { "live" } else { "dead" }, "{said:?}");
    }
}
