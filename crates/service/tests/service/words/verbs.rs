//! What the lines mean: one request to the service each.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, Epoch, Malformed, NativeId, RequestId};
use tenure_core::key::Key;
use tenure_core::mission::change::MissionChange;
use tenure_core::mission::{MissionId, ParticipantId, Role};
use tenure_core::notice::{Channel, Pending};
use tenure_core::policy::Policy;
use tenure_core::process::CallerFacts;
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::{MetaKey, Workdir};
use tenure_core::store::ClaimFilter;
use tenure_core::time::Span;
use tenure_service::answer::Class;
use tenure_service::error::Error;
use tenure_service::view::NoticeView;
use tenure_service::{
    ActFor, Answer, ChangeRequest, CheckOutcome, ClaimRequest, Failure, Grant, GuardRequest,
    HandoffRequest, JoinRequest, ListRequest, MetaChange, MissionPlace, Pick, PointRequest,
    PointerOwner, RegisterRequest, ReleaseRequest, RenewRequest, Reply, Resumable, Service,
    Subject, TakeoverRequest, TimelineRequest, WaitingCaller,
};
use tenure_testkit::FakeWorld;

use super::House;
use crate::Rig;

/// An answer as programs get it.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    object: Value,
}

impl Said {
    pub fn json(&self) -> Value {
        self.object.clone()
    }

    #[track_caller]
    pub fn ok(self) -> Said {
        self.fails(0)
    }

    #[track_caller]
    pub fn fails(self, code: i32) -> Said {
        assert_eq!(self.code, code, "{:#}", self.object);
        self
    }
}

/// Flags that stand alone; every other one has a value.
const PLAIN: [&str; 16] = [
    "--json",
    "-a",
    "--done",
    "--once",
    "--reopen",
    "--any",
    "--all",
    "--require-quiet",
    "--allow-survivors",
    "--hosted",
    "--unverified",
    "--lost",
    "--strict",
    "--clear",
    "--mine",
    "-q",
];

/// A line, taken apart.
struct Line<'a> {
    plain: Vec<&'a str>,
    flags: Vec<(&'a str, &'a str)>,
    words: Vec<&'a str>,
    /// The flags that the verb asked for.
    read: RefCell<Vec<String>>,
    /// Whether a value was refused before the verb asked for all.
    cut: Cell<bool>,
}

impl<'a> Line<'a> {
    fn of(words: &[&'a str]) -> Line<'a> {
        let mut line = Line {
            plain: Vec::new(),
            flags: Vec::new(),
            words: Vec::new(),
            read: RefCell::new(vec!["--json".into(), "-q".into()]),
            cut: Cell::new(false),
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if PLAIN.contains(&word) {
                line.plain.push(word);
            } else if word.starts_with("--") {
                line.flags.push((word, words.next().expect("a value")));
            } else {
                line.words.push(word);
            }
        }
        line
    }

    /// Flags that the verb did not ask for: misspelt, or another verb's.
    fn unread(&self) -> Vec<&'a str> {
        let given = self.flags.iter().map(|(name, _)| *name);
        let given = given.chain(self.plain.iter().copied());
        let read = self.read.borrow();
        let unread = given.filter(|flag| !self.cut.get() && !read.iter().any(|one| one == flag));
        unread.collect()
    }

    fn bad(&self, value: Malformed) -> Failure {
        self.cut.set(true);
        Error::from(value).into()
    }

    fn has(&self, flag: &str) -> bool {
        self.read.borrow_mut().push(flag.to_owned());
        self.plain.contains(&flag)
    }

    fn all(&self, flag: &str) -> Vec<&'a str> {
        self.read.borrow_mut().push(flag.to_owned());
        let given = self.flags.iter().filter(|(name, _)| *name == flag);
        given.map(|(_, value)| *value).collect()
    }

    fn flag(&self, flag: &str) -> Option<&'a str> {
        self.all(flag).first().copied()
    }

    fn text(&self, flag: &str) -> Option<String> {
        self.flag(flag).map(str::to_owned)
    }

    fn parsed<T>(
        &self,
        flag: &str,
        parse: impl FnOnce(&str) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Failure> {
        let parsed = self.flag(flag).map(parse).transpose();
        parsed.map_err(|error| self.bad(error))
    }

    fn epoch(&self) -> Option<Epoch> {
        self.flag("--epoch")
            .map(|text| Epoch(text.parse().expect("a number")))
    }

    fn key(&self) -> Result<Key, Failure> {
        Key::parse(self.words[1]).map_err(|error| self.bad(error))
    }

    fn act_for(&self) -> Result<ActFor, Failure> {
        Ok(ActFor {
            session: self.text("--session"),
            reason: self.parsed("--reason", Reason::parse)?,
        })
    }

    fn mission(&self) -> Result<Option<MissionId>, Failure> {
        self.parsed("--mission", MissionId::parse)
    }
}

/// A caller at its work.
struct Call<'a, 'w> {
    service: Service<'a>,
    house: &'a House,
    world: &'a FakeWorld,
    line: &'a Line<'w>,
}

type Outcome = Result<(Value, Pending), Failure>;

/// An answer of several parts.
fn parts<T>(reply: Reply<T>, part: impl FnOnce(&T) -> Value) -> Outcome {
    let Answer { value, notices, .. } = reply?;
    Ok((part(&value), notices))
}

pub fn say(
    rig: &mut Rig,
    house: &House,
    world: &FakeWorld,
    facts: &CallerFacts,
    words: &[&str],
) -> Said {
    let line = Line::of(words);
    let mut call = Call {
        service: Service::new(&mut rig.store, world, facts, Policy::default()),
        house,
        world,
        line: &line,
    };
    let (code, mut object, notices) = match call.outcome() {
        Ok((object, notices)) => (0, object, notices),
        Err(failure) => {
            let code = code(failure.error.class());
            let error = json!({"error": data(&failure.error)});
            (code, error, failure.notices)
        }
    };
    let unread = line.unread();
    assert!(unread.is_empty(), "{} does not read {unread:?}", words[0]);
    let told: Vec<NoticeView> = notices.iter().map(NoticeView::from).collect();
    object["notices"] = json!(told);
    call.service
        .delivered(&notices.first, Channel::Json)
        .expect("it is kept");
    Said { code, object }
}

fn code(class: Class) -> i32 {
    match class {
        Class::Refused => 1,
        Class::Usage => 2,
        Class::Held => 3,
        Class::NotFound => 4,
        Class::Lost => 5,
        Class::Invalid => 6,
        Class::TimedOut => 7,
        Class::Store => 8,
        Class::CannotTell => 9,
        Class::Internal => 70,
    }
}

fn data(error: &Error) -> Map<String, Value> {
    let mut data = Map::new();
    let mut add = |name: &str, value: Value| data.insert(name.to_owned(), value);
    add("kind", json!(error.kind()));
    add("message", json!(error.to_string()));
    if let Some(claim) = error.claim() {
        add("key", json!(claim.key));
        add("epoch", json!(claim.epoch));
        add("holder", json!(claim.holder));
    }
    match error {
        Error::Lost { epoch, .. } => add("lost_epoch", json!(epoch)),
        Error::Ambiguous { candidates, .. } => add("candidates", json!(candidates)),
        Error::Faulty { faults, .. } => add("faults", json!(faults)),
        Error::Collision { drivers, .. } => add("drivers", json!(drivers)),
        _ => None,
    };
    data
}

impl Call<'_, '_> {
    fn outcome(&mut self) -> Outcome {
        let line = self.line;
        let act_for = &line.act_for()?;
        let service = &mut self.service;
        let claim = |claim: &_| json!({"claim": claim});
        let session = |session: &_| json!({"session": session});
        match line.words[0] {
            "register" => self.register(),
            "claim" => self.claim(act_for),
            "mission" => self.mission(act_for),
            "release" => {
                let (key, epoch) = (line.key()?, line.epoch());
                let done = line.has("--done");
                parts(
                    service.release(act_for, &ReleaseRequest { key, epoch, done }),
                    claim,
                )
            }
            "guard" if line.has("--lost") => parts(service.guard_lost(act_for), |()| json!({})),
            "guard" => {
                let (key, epoch) = (line.key()?, line.epoch());
                parts(service.guard(act_for, &GuardRequest { key, epoch }), claim)
            }
            "handoff" => {
                let request = HandoffRequest {
                    key: line.key()?,
                    to: line.text("--to").expect("to whom"),
                    epoch: line.epoch(),
                    note: line.text("--note"),
                };
                parts(service.handoff(act_for, &request), claim)
            }
            "takeover" => {
                let request = TakeoverRequest {
                    key: line.key()?,
                    from: line.text("--from"),
                    epoch: line.epoch(),
                    note: line.text("--note"),
                    reason: act_for.reason.clone().expect("a takeover has a reason"),
                };
                parts(service.takeover(act_for, &request), claim)
            }
            "renew" => {
                let length = line.flag("--for").map(|text| {
                    let span: Span = text.parse().expect("a span");
                    span
                });
                parts(service.renew(act_for, &RenewRequest { length }), session)
            }
            "end" => parts(service.end(act_for), session),
            "tell" => parts(
                service.tell(line.words[1], line.words[2]),
                |told| json!({"session": told.session, "delivery": told.delivery}),
            ),
            "meta" => {
                let key = MetaKey::parse(line.words[2]).map_err(|error| line.bad(error))?;
                let change = match line.words[1] {
                    "set" => MetaChange::Set(key, line.words[3].to_owned()),
                    _ => MetaChange::Unset(key),
                };
                parts(service.change_metadata(act_for, &change), session)
            }
            "whoami" => parts(service.whoami(act_for, &here()), |found| {
                let who = &found.who;
                json!({
                    "session": who.session, "resolved": who.resolved, "meta": who.metadata,
                    "participant": found.mission.participant,
                })
            }),
            "show" => parts(
                service.show(line.words[1]),
                |who| json!({"session": who.session, "meta": who.metadata}),
            ),
            "alive" => parts(
                service.alive(line.words[1]),
                |(alive, session)| json!({"alive": alive, "session": session}),
            ),
            "why" => parts(
                service.why(&line.key()?),
                |why| json!({"claim": why.claim, "why": why.why}),
            ),
            "log" => {
                let key = line.words.get(1).map(|_| line.key()).transpose()?;
                let filter = EventFilter {
                    key,
                    ..EventFilter::default()
                };
                parts(
                    service.log(&filter, line.flag("--session")),
                    |log| json!({"events": log.items}),
                )
            }
            "resume" if line.has("--all") => parts(service.all_resumable(DAY), |found| {
                let shown: Vec<Value> = found.iter().map(resumable).collect();
                json!({"resume": shown})
            }),
            "resume" => parts(
                service.resumable(line.words[1]),
                |found| json!({"resume": resumable(found)}),
            ),
            "ps" => {
                let request = ListRequest {
                    closed_too: line.has("-a"),
                    ..ListRequest::default()
                };
                parts(
                    service.list(&request),
                    |list| json!({"sessions": list.items}),
                )
            }
            "claims" => {
                let filter = ClaimFilter::default();
                let own = line.has("--mine").then_some(act_for);
                parts(
                    service.claims(own, &filter),
                    |list| json!({"claims": list.items}),
                )
            }
            "timeline" => {
                let request = TimelineRequest {
                    key: line.parsed("--key", Key::parse)?,
                    session: line.text("--session"),
                    after: line.parsed("--after", str::parse)?,
                    limit: line
                        .flag("--limit")
                        .map_or(0, |n| n.parse().expect("a number")),
                    since: None,
                };
                parts(service.timeline(&request), |page| json!(page))
            }
            other => panic!("{other} has no line in `outcome` of tests/service/words/verbs.rs"),
        }
    }

    fn register(&mut self) -> Outcome {
        let line = self.line;
        let mut metadata = BTreeMap::new();
        for pair in line.all("--meta") {
            let (key, value) = pair.split_once('=').expect("KEY=VALUE");
            metadata.insert(
                MetaKey::parse(key).map_err(|error| line.bad(error))?,
                value.to_owned(),
            );
        }
        let named = line
            .flag("--pid")
            .map(|pid| pid.parse().expect("a number"))
            .map(|pid| self.world.facts(&self.house.chain(pid)).chain);
        let request = RegisterRequest {
            subject: match named {
                Some(chain) => Subject::Named(chain),
                None if line.has("--unverified") => Subject::Unverified,
                None => Subject::Nearest,
            },
            agent: line.parsed("--agent", AgentName::parse)?,
            native_id: line.parsed("--native-id", NativeId::parse)?,
            source: match line.flag("--source") {
                Some("fork") => RegistrationSource::Fork,
                Some("event") => RegistrationSource::Event,
                _ => RegistrationSource::Start,
            },
            hosted: line.has("--hosted"),
            workdir: Workdir {
                dir: line.text("--dir").unwrap_or_else(|| "/work".to_owned()),
                ..Workdir::default()
            },
            place_named: line.flag("--dir").is_some(),
            title: line.text("--title"),
            parent: line.text("--parent"),
            reason: line.parsed("--reason", Reason::parse)?,
            transcript: None,
            metadata,
        };
        parts(self.service.register(&request), |done| {
            json!({
                "session": done.session, "token": done.token, "regranted": done.regranted,
                "taken": done.taken,
            })
        })
    }

    fn claim(&mut self, act_for: &ActFor) -> Outcome {
        let line = self.line;
        let (any, all) = (line.has("--any"), line.has("--all"));
        let keys: Result<_, _> = line.words[1..]
            .iter()
            .map(|text| Key::parse(text))
            .collect();
        let request = ClaimRequest {
            keys: keys.map_err(|error| line.bad(error))?,
            pick: if any { Pick::Any } else { Pick::All },
            request: line.parsed("--request-id", RequestId::parse)?,
            once: line.has("--once"),
            reopen: line.has("--reopen"),
            note: line.text("--note"),
            require_quiet: line.has("--require-quiet") || any && !line.has("--allow-survivors"),
        };
        let shown = |grants: &Vec<Grant>| match &grants[..] {
            [one] if !all => json!({"claim": one}),
            several => json!({"claims": several}),
        };
        if line.flag("--wait").is_none() {
            return parts(self.service.claim(act_for, &request), shown);
        }
        // A call that would have to wait fails at once.
        let waiting = WaitingCaller {
            process: self.world.process(1),
            ticket: None,
            unconfirmed: false,
        };
        let Answer { value, notices, .. } = self.service.claim_turn(act_for, &request, &waiting)?;
        match value {
            CheckOutcome::Granted(grants) => Ok((shown(&grants), notices)),
            CheckOutcome::Wait(wait) => Err(Failure {
                notices,
                ..Failure::from(*wait.why)
            }),
        }
    }

    fn mission(&mut self, act_for: &ActFor) -> Outcome {
        let (line, here) = (self.line, &here());
        let service = &mut self.service;
        let named = line.words.get(2).copied();
        match line.words[1] {
            "join" => {
                let request = JoinRequest {
                    mission: MissionId::parse(line.words[2]).map_err(|error| line.bad(error))?,
                    role: Role::parse(line.flag("--role").expect("a role"))
                        .map_err(|error| line.bad(error))?,
                    participant: line.parsed("--participant", ParticipantId::parse)?,
                };
                parts(service.join_mission(act_for, here, &request), |joined| {
                    json!({
                        "participant": joined.participant, "warnings": joined.warnings,
                        "joined": if joined.new { "new" } else { "same" },
                    })
                })
            }
            "leave" => {
                let named = named.or(line.flag("--mission"));
                parts(
                    service.leave_mission(act_for, here, named),
                    |left| json!({"left": {"mission": left.mission, "pointer_cleared": left.cleared}}),
                )
            }
            "use" if named.is_none() && !line.has("--clear") => parts(
                service.active_mission(act_for, here),
                |pointer| json!({"pointer": pointer}),
            ),
            "use" => {
                let request = PointRequest {
                    whose: match line.flag("--for") {
                        Some("repo") => PointerOwner::Repo,
                        Some("user") => PointerOwner::User,
                        _ => PointerOwner::Session,
                    },
                    mission: named
                        .map(MissionId::parse)
                        .transpose()
                        .map_err(|error| line.bad(error))?,
                };
                parts(
                    service.point_to_mission(act_for, here, &request),
                    |pointed| json!({"pointer": pointed.pointer}),
                )
            }
            "status" => parts(
                service.roster(act_for, here, line.mission()?.as_ref()),
                |roster| json!({"mission": roster.mission, "participants": roster.participants}),
            ),
            "list" => parts(
                service.missions(act_for, here, line.has("--all")),
                |missions| json!({"missions": missions}),
            ),
            "check" => parts(
                service.check_missions(act_for, here, line.mission()?.as_ref(), line.has("--all")),
                |checked| json!({"check": {"checked": checked}}),
            ),
            field => {
                let request = ChangeRequest {
                    mission: line.mission()?,
                    change: MissionChange::named(field, line.words[2])
                        .map_err(|error| line.bad(error))?,
                    strict: line.has("--strict"),
                };
                parts(
                    service.change_participant(act_for, here, &request),
                    |changed| {
                        json!({
                            "participant": changed.participant, "pointer": changed.pointer,
                            "warnings": changed.warnings,
                        })
                    },
                )
            }
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

fn resumable(found: &Resumable) -> Value {
    json!({"session": found.session, "native_id": found.native_id.as_str()})
}

/// No caller here works in a repository.
fn here() -> MissionPlace {
    MissionPlace {
        repo: None,
        user: "1000".to_owned(),
        roles: Vec::new(),
    }
}
