//! The title of a session's work, who may set it, and when a person was with it.

use tenure_core::agent_event::{Happening, Subagent};
use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, NativeId};
use tenure_core::reason::Reason;
use tenure_core::session::{Doing, MetaKey, Session};
use tenure_core::store::{Store, TxMode};
use tenure_core::witness::{OwnReport, Question, Subject, TerminalPlace, Testimony, Witness};
use tenure_service::{ActFor, AgentEvent, ListRequest, MetaChange, RegisterRequest, Service};

use crate::{Rig, Who, kind};

fn event(who: &Who, native: &str) -> AgentEvent {
    AgentEvent {
        terminal: tenure_core::end::Terminal::Open,
        agent: Some(AgentName::known("worker")),
        process: who.facts().chain.into_iter().next(),
        program: None,
        native_id: NativeId::parse(native).ok(),
        what: Happening::Other,
        subagent: None,
        doing: Some(Doing::Busy),
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
    }
}

impl Rig {
    fn hears_event(&mut self, who: &Who, event: &AgentEvent) {
        self.call(who, |service| service.handle_event(event))
            .unwrap();
    }

    fn prompted(&mut self, who: &Who, native: &str, prompt: &str) {
        let prompt = Some(prompt.to_owned());
        let event = event(who, native);
        self.hears_event(who, &AgentEvent { prompt, ..event });
    }

    fn named_by_agent(&mut self, who: &Who, native: &str, title: &str) {
        let title = Some(title.to_owned());
        let event = event(who, native);
        self.hears_event(who, &AgentEvent { title, ..event });
    }

    /// The title that is kept, and who chose it.
    fn title(&mut self, who: &Who) -> Option<(String, &'static str)> {
        let me = self.call(who, |service| service.own_session(&ActFor::default()));
        let session = me.unwrap().session;
        session.title.zip(session.title_by)
    }

    fn rename(&mut self, who: &Who, name: &str, reason: Option<&str>, title: &str) -> String {
        let act_for = ActFor {
            session: Some(name.to_owned()),
            reason: reason.map(|reason| Reason::parse(reason).unwrap()),
        };
        let renamed = self.call(who, |service| service.rename(&act_for, title));
        match renamed {
            Ok(session) => session.title.unwrap_or_default(),
            Err(error) => format!("error {}", kind::<()>(Err(error))),
        }
    }

    fn person(&mut self, pid: u32) -> Who {
        let who = self.here(&[pid]);
        let mut request = self.request(&who, "");
        request.agent = Some(AgentName::known("human"));
        self.call(&who, |service| service.register(&request))
            .unwrap();
        who
    }

    pub(crate) fn kept(&mut self, handle: &str) -> Session {
        let mut tx = self.store.begin(TxMode::Read).unwrap();
        tx.session_by_handle(handle).unwrap().unwrap()
    }
}

fn prompt(text: &str) -> Option<(String, &'static str)> {
    Some((text.to_owned(), "prompt"))
}

#[test]
fn a_session_is_called_after_its_first_prompt() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    let handle = rig.register(&who, "c1").session.handle;
    rig.prompted(&who, "c1", "/model opus");
    assert_eq!(rig.title(&who), None, "a command names no work");
    rig.prompted(&who, "c1", "Fix the\nlogin");
    assert_eq!(rig.title(&who), prompt("Fix the login"));
    let before = rig.kept(&handle).revision;
    rig.prompted(&who, "c1", "and the logout");
    assert_eq!(rig.title(&who), prompt("Fix the login"));
    assert_eq!(rig.kept(&handle).revision, before, "it was written again");
}

#[test]
fn a_lost_start_keeps_the_prompt_that_registers() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    rig.prompted(&who, "c1", "Fix the login");
    assert_eq!(rig.title(&who), prompt("Fix the login"));
}

#[test]
fn a_subagents_prompt_names_nothing() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    rig.register(&who, "c1");
    let subagent = Some(Subagent {
        id: "a1".into(),
        kind: None,
    });
    let prompt = Some("find the tests".to_owned());
    let event = event(&who, "c1");
    rig.hears_event(
        &who,
        &AgentEvent {
            subagent,
            prompt,
            ..event
        },
    );
    assert_eq!(rig.title(&who), None);
}

#[test]
fn another_conversation_is_called_after_its_own_first_prompt() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    let handle = rig.register(&who, "c1").session.handle;
    rig.prompted(&who, "c1", "Fix the login");
    rig.register(&who, "c2");
    assert_eq!(rig.title(&who), None, "the work of the one before");
    rig.prompted(&who, "c2", "Write the docs");
    assert_eq!(rig.title(&who), prompt("Write the docs"));
    // A person's title is not about a conversation.
    rig.rename(&who, &handle, None, "Release 2");
    rig.register(&who, "c3");
    rig.prompted(&who, "c3", "Ship it");
    assert_eq!(rig.title(&who).unwrap().0, "Release 2");
}

#[test]
fn a_person_names_over_the_agent_and_the_agent_over_the_prompt() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    let handle = rig.register(&who, "c1").session.handle;
    rig.prompted(&who, "c1", "pls fix the login its broken");
    rig.named_by_agent(&who, "c1", "Login repair");
    let agents = |title: &str| Some((title.to_owned(), "agent"));
    assert_eq!(rig.title(&who), agents("Login repair"));
    rig.named_by_agent(&who, "c1", "Login and logout");
    assert_eq!(rig.title(&who), agents("Login and logout"));
    rig.rename(&who, &handle, None, "Mine");
    rig.named_by_agent(&who, "c1", "Theirs");
    rig.prompted(&who, "c1", "another");
    assert_eq!(rig.title(&who), Some(("Mine".to_owned(), "person")));
    // Once removed, the title that the agent gave in between is shown.
    assert_eq!(rig.rename(&who, &handle, None, " "), "Theirs");
    assert_eq!(rig.title(&who), agents("Theirs"));
    rig.named_by_agent(&who, "c1", "Theirs too");
    assert_eq!(rig.title(&who), agents("Theirs too"));
}

#[test]
fn a_title_that_is_taken_away_gives_back_the_one_before() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    let handle = rig.register(&who, "c1").session.handle;
    let prompts = Some(("Fix the login".to_owned(), "prompt"));
    rig.prompted(&who, "c1", "Fix the login");
    for _ in 0..2 {
        rig.rename(&who, &handle, None, "Mine");
        rig.rename(&who, &handle, None, "Mine too");
        assert_eq!(rig.rename(&who, &handle, None, ""), "Fix the login");
        assert_eq!(rig.title(&who), prompts);
    }
    // Removing a title that no person gave changes nothing.
    assert_eq!(rig.rename(&who, &handle, None, ""), "Fix the login");
    let values = |service: &mut Service<'_>| service.metadata(&ActFor::default(), None);
    assert!(rig.call(&who, values).unwrap().is_empty());
}

#[test]
fn a_first_prompt_is_kept_beneath_a_title_that_was_there_before_it() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    let handle = rig.register(&who, "c1").session.handle;
    rig.rename(&who, &handle, None, "Mine");
    rig.prompted(&who, "c1", "Fix the login");
    rig.prompted(&who, "c1", "and the logout");
    let values = |service: &mut Service<'_>| service.metadata(&ActFor::default(), None);
    assert!(rig.call(&who, values).unwrap().is_empty(), "no list has it");
    assert_eq!(rig.rename(&who, &handle, None, ""), "Fix the login");
}

#[test]
fn registering_with_a_title_keeps_what_was_there_too() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    let handle = rig.register(&who, "c1").session.handle;
    rig.prompted(&who, "c1", "Fix the login");
    let request = RegisterRequest {
        title: Some("Mine".into()),
        ..rig.request(&who, "c1")
    };
    rig.call(&who, |service| service.register(&request))
        .unwrap();
    assert_eq!(rig.title(&who).unwrap().0, "Mine");
    assert_eq!(rig.rename(&who, &handle, None, ""), "Fix the login");
}

/// It named the previous conversation.
#[test]
fn another_conversation_does_not_get_back_the_title_of_the_one_before() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    let handle = rig.register(&who, "c1").session.handle;
    rig.prompted(&who, "c1", "Fix the login");
    rig.rename(&who, &handle, None, "Mine");
    rig.register(&who, "c2");
    assert_eq!(rig.title(&who).unwrap().0, "Mine");
    assert_eq!(rig.rename(&who, &handle, None, ""), "");
}

#[test]
fn a_value_that_tenure_keeps_for_itself_cannot_be_set() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    rig.register(&who, "c1");
    let key = MetaKey::parse("tenure.title.prompt").unwrap();
    let sets = MetaChange::Set(key, "x".into());
    let refused = rig.call(&who, |service| {
        service.change_metadata(&ActFor::default(), &sets)
    });
    assert_eq!(kind(refused), "invalid");
}

#[test]
fn an_agent_renames_another_only_with_a_reason_and_a_person_without() {
    let mut rig = Rig::new();
    let (ann, bob) = (rig.here(&[20]), rig.here(&[30]));
    let handle = rig.register(&ann, "c1").session.handle;
    rig.register(&bob, "c2");
    assert_eq!(rig.rename(&ann, &handle, None, "Own"), "Own");
    assert_eq!(rig.rename(&bob, &handle, None, "No"), "error reason_needed");
    assert_eq!(rig.rename(&bob, &handle, Some("typo"), "Yes"), "Yes");
    let person = rig.person(40);
    assert_eq!(rig.rename(&person, &handle, None, "Mine"), "Mine");
    let everything = EventFilter {
        limit: 100,
        ..EventFilter::default()
    };
    let log = rig.call(&person, |service| service.log(&everything, None));
    let log = log.unwrap();
    let said: Vec<String> = log
        .items
        .iter()
        .filter(|event| event.mechanism == "rename")
        .map(|event| event.evidence.clone())
        .collect();
    assert_eq!(said, ["title \"Own\"", "title \"Yes\"", "title \"Mine\""]);
}

#[test]
fn f_v18_a_title_cannot_steer_a_terminal_or_hide() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let handle = rig.register(&ann, "c1").session.handle;
    let hostile = "a\u{1b}[2J\u{202e}b\n";
    assert_eq!(rig.rename(&ann, &handle, None, hostile), "a [2Jb");
    let long = "x".repeat(81);
    for bad in ["\u{200b}\u{202e}", &long] {
        let refused = rig.rename(&ann, &handle, None, bad);
        assert!(refused.starts_with("error"), "{refused}");
    }
    assert_eq!(rig.title(&ann).unwrap().0, "a [2Jb");
}

#[test]
fn going_to_a_session_is_a_persons_visit_and_keeps_nobody_alive() {
    let mut rig = Rig::new();
    let (ann, bob) = (rig.here(&[20]), rig.here(&[30]));
    let handle = rig.register(&ann, "c1").session.handle;
    rig.register(&bob, "c2");
    rig.call(&bob, |service| service.attend(&handle)).unwrap();
    assert_eq!(rig.kept(&handle).attended_at, None, "an agent looked");
    let unregistered = rig.here(&[50, 51]);
    let _shell = rig.world.process(50);
    let _agent = rig.world.process(51);
    rig.world.looks_like(51, "/opt/claude", &["claude"]);
    rig.call(&unregistered, |service| service.attend(&handle))
        .unwrap();
    assert_eq!(
        rig.kept(&handle).attended_at,
        None,
        "an agent without hooks"
    );
    let person = rig.person(40);
    let before = rig.kept(&handle);
    rig.clock.advance(std::time::Duration::from_secs(60));
    rig.call(&person, |service| service.attend(&handle))
        .unwrap();
    let after = rig.kept(&handle);
    assert_eq!(after.attended_at, Some(rig.clock.now().wall));
    assert_eq!((after.lease, after.seen_at), (before.lease, before.seen_at));
}

#[test]
fn twins_are_named_on_both_sides() {
    let mut rig = Rig::new();
    let (ann, bob) = (rig.here(&[20]), rig.here(&[30]));
    let first = rig.register(&ann, "c1").session.handle;
    let second = rig.register(&bob, "c1").session.handle;
    let twins = |rig: &mut Rig| {
        let all = rig.call(&ann, |service| service.list(&ListRequest::default()));
        let mut all: Vec<(String, Vec<String>)> = all
            .unwrap()
            .items
            .into_iter()
            .map(|one| (one.handle, one.twins.unwrap_or_default()))
            .collect();
        all.sort();
        all
    };
    let mut both = vec![
        (first.clone(), vec![second.clone()]),
        (second, vec![first.clone()]),
    ];
    both.sort();
    assert_eq!(twins(&mut rig), both);
    bob.dies();
    let left = twins(&mut rig);
    let own = left.iter().find(|(handle, _)| *handle == first).unwrap();
    assert_eq!(own.1, [""; 0], "a dead one is in no conversation");
}

/// A machine whose agents and terminals report the same about every session.
struct Says(Testimony);

impl Witness for Says {
    fn testify(&self, about: &[Subject], _: Question) -> Vec<Testimony> {
        about.iter().map(|_| self.0.clone()).collect()
    }
}

#[test]
fn the_agents_own_files_name_the_work_when_somebody_looks() {
    let mut rig = Rig::new();
    let who = rig.here(&[20]);
    let handle = rig.register(&who, "c1").session.handle;
    rig.prompted(&who, "c1", "pls fix");
    let place = TerminalPlace::Tmux {
        socket: "/s".into(),
        pane: "%3".into(),
        name: "main:1.0".into(),
    };
    let says = Says(Testimony {
        own: Some(OwnReport {
            title: Some("Login\u{1b}repair".into()),
            ..OwnReport::empty("its transcript", &[])
        }),
        place: Some(place.clone()),
        ..Testimony::default()
    });
    let look = |rig: &mut Rig| {
        let facts = who.facts();
        let policy = tenure_core::policy::Policy::default();
        let mut service =
            Service::new(&mut rig.store, &who.world, &facts, policy).with_witness(&says);
        let window = service.window(&handle).unwrap().value;
        (
            window.session.title.unwrap(),
            window.place,
            window.session.place,
        )
    };
    let (title, found, shown) = look(&mut rig);
    assert_eq!(title, "Login repair");
    assert_eq!(found, Some(place));
    assert_eq!(shown.as_deref(), Some("main:1.0"));
    rig.rename(&who, &handle, None, "Mine");
    assert_eq!(look(&mut rig).0, "Mine");
}

#[test]
fn nobody_goes_to_the_window_of_a_session_that_ended() {
    let mut rig = Rig::new();
    let (ann, bob) = (rig.here(&[20]), rig.here(&[30]));
    let handle = rig.register(&ann, "c1").session.handle;
    ann.dies();
    let window = rig.call(&bob, |service| service.window(&handle));
    assert_eq!(kind(window), "not_live");
}
