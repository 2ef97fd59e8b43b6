//! Plain rules over a history, each checked without the model.
//!
//! They overlap with the search for an order on purpose: they are short enough to be obviously
//! correct, and their reports name the calls that contradict each other.

use std::collections::{BTreeMap, HashMap};

use tenure_core::key::Key;

use super::history::{Call, History, Name};
use super::record::{CallAnswer, Claim, Op};
use super::worker::is_away;

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub what: String,
    /// The calls that show it, as indexes into the history.
    pub calls: Vec<usize>,
    /// The state before those calls, if it matters.
    pub before: Option<String>,
}

impl Violation {
    pub(super) fn new(rule: &'static str, what: String, calls: Vec<usize>) -> Self {
        Self {
            rule,
            what,
            calls,
            before: None,
        }
    }
}

/// Checks a history against all rules.
pub fn violations(history: &History) -> Vec<Violation> {
    let had = observed(history);
    let mut found = unexpected(history);
    found.extend(shared_sessions(history));
    for sightings in had.values() {
        found.extend(epochs(sightings));
        found.extend(robberies(history, sightings));
    }
    found
}

/// An answer which shows that a session had a key with an epoch.
#[derive(Debug, Clone)]
pub struct Sighting {
    pub key: String,
    pub epoch: u64,
    pub session: Name,
    /// Its process, if the answer identifies it.
    pub life: Option<usize>,
    /// The call, as an index into the history.
    pub call: usize,
    pub asked: u64,
    pub until: u64,
    /// When its session's lease was surely renewed for the last time: by this call, if the session made it.
    pub renewed: u64,
}

/// All such answers, by key.
pub fn observed(history: &History) -> BTreeMap<String, Vec<Sighting>> {
    let mut found: BTreeMap<String, Vec<Sighting>> = BTreeMap::new();
    for (place, call) in history.calls.iter().enumerate() {
        for sighting in sightings(history, place, call) {
            found
                .entry(sighting.key.clone())
                .or_default()
                .push(sighting);
        }
    }
    found
}

fn sightings(history: &History, place: usize, call: &Call) -> Vec<Sighting> {
    let (Some(me), Some(answer)) = (&call.session, &call.answer) else {
        return Vec::new();
    };
    let mine = |key: &str, epoch: u64| Sighting {
        key: key.to_owned(),
        epoch,
        session: me.clone(),
        life: Some(call.life),
        call: place,
        asked: call.asked,
        until: call.until,
        renewed: call.asked,
    };
    match (&call.op, answer) {
        (_, CallAnswer::Granted { grants }) => grants
            .iter()
            .map(|grant| mine(&grant.key, grant.epoch))
            .collect(),
        (_, CallAnswer::Registered { regranted, .. }) => regranted
            .iter()
            .map(|(key, epoch)| mine(key, *epoch))
            .collect(),
        (
            Op::Handoff { key, to, .. },
            CallAnswer::Yes {
                epoch: Some(epoch), ..
            },
        ) => {
            let lives = history.open_in(to, call);
            let life = lives.first().copied().filter(|_| lives.len() == 1);
            vec![Sighting {
                session: to.as_str().into(),
                life,
                renewed: life.map_or(0, |life| renewed_before(history, life, call)),
                ..mine(key, *epoch)
            }]
        }
        // Another key may cover a path; the answer then names that key's epoch.
        (
            Op::Guard { key, .. },
            CallAnswer::Yes {
                epoch: Some(epoch), ..
            },
        ) if !key.starts_with("path:") => {
            vec![mine(key, *epoch)]
        }
        _ => Vec::new(),
    }
}

/// When a process last asked for something that the store had answered when this call began.
fn renewed_before(history: &History, life: usize, call: &Call) -> u64 {
    let is_answered = |one: &&Call| {
        let answer = one.answer.as_ref();
        one.life == life && one.until <= call.asked && answer.is_some_and(|one| !is_away(one))
    };
    let answered = history.calls.iter().filter(is_answered);
    answered.map(|one| one.asked).max().unwrap_or(0)
}

/// Answers that should never occur here.
fn unexpected(history: &History) -> Vec<Violation> {
    let is_right = |call: &Call| match (&call.op, &call.answer) {
        (_, None) => true,
        // A waiter of a host outlasts a store that is away.
        (
            Op::Claim(Claim {
                wait: Some(wait), ..
            }),
            Some(answer),
        ) if history.terms.is_some() && is_away(answer) => {
            call.until - call.asked >= wait * 1_000_000
        }
        (_, Some(answer)) if history.may_be_away() && is_away(answer) => true,
        (op, Some(CallAnswer::Refused(refusal))) if history.terms.is_some() => {
            is_known(op, &refusal.kind) || is_known_apart(op, &refusal.kind)
        }
        (op, Some(CallAnswer::Refused(refusal))) => is_known(op, &refusal.kind),
        (Op::Register { .. }, Some(CallAnswer::Registered { word, .. })) => {
            ["new", "same", "resumed", "twin"].contains(&&**word)
        }
        (Op::Register { .. }, Some(_)) | (_, Some(CallAnswer::Registered { .. })) => false,
        _ => true,
    };
    let strange = |(place, call): (usize, &Call)| {
        let what = || match &call.answer {
            Some(CallAnswer::Refused(refusal)) => {
                format!(
                    "{} was refused as {}: {}",
                    call.tag, refusal.kind, refusal.text
                )
            }
            other => format!("{} was answered {other:?}", call.tag),
        };
        (!is_right(call)).then(|| Violation::new("unexpected answer", what(), vec![place]))
    };
    history
        .calls
        .iter()
        .enumerate()
        .filter_map(strange)
        .collect()
}

/// Whether a refusal of this kind is a possible answer to this request.
pub fn is_known(op: &Op, kind: &str) -> bool {
    let known = match op {
        Op::Register { .. } | Op::End | Op::Renew => "",
        Op::Claim(claim) if claim.wait.is_some() => {
            "held done already_held lost overlaps timed_out"
        }
        Op::Claim(claim) if claim.quiet => "held done already_held lost overlaps survivors",
        Op::Claim(_) => "held done already_held lost overlaps",
        Op::Release { .. } => "lost no_such_epoch held done free",
        Op::Handoff { .. } => "lost no_such_epoch held done free not_live already_held overlaps",
        Op::Takeover { .. } => "done free already_held held overlaps",
        Op::Guard { .. } => "lost no_such_epoch held done free overlaps",
        Op::Recall { .. } => "store_away",
    };
    known.split(' ').any(|known| known == kind)
}

/// The same for answers that only exist because processes of another host cannot be seen. They promise nothing.
fn is_known_apart(op: &Op, kind: &str) -> bool {
    let known = match op {
        Op::Claim(claim) if claim.quiet => "suspect survivors_unknown",
        Op::Claim(_) => "suspect",
        Op::Handoff { .. } => "cannot_tell suspect",
        _ => "",
    };
    known.split(' ').any(|known| known == kind)
}

/// Two live processes in one session.
fn shared_sessions(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    for (session, tenancies) in &history.tenancies {
        for (place, one) in tenancies.iter().enumerate() {
            let both = |other: &&super::history::Tenancy| {
                other.life != one.life
                    && one.surely_from.max(other.surely_from)
                        < one.surely_until.min(other.surely_until)
            };
            if let Some(other) = tenancies[place + 1..].iter().find(both) {
                let name = |life: usize| history.lives[life].name.clone();
                let what = format!(
                    "{} and {} were both session {session} while both lived",
                    name(one.life),
                    name(other.life)
                );
                found.push(Violation::new("own identity", what, Vec::new()));
            }
        }
    }
    found
}

/// An epoch belongs to one session, and later grants have higher ones.
fn epochs(sightings: &[Sighting]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut owner: HashMap<u64, &Sighting> = HashMap::new();
    for seen in sightings {
        let first = owner.entry(seen.epoch).or_insert(seen);
        if first.session != seen.session {
            let what = format!(
                "{} epoch {} was given to two sessions",
                seen.key, seen.epoch
            );
            found.push(Violation::new(
                "one holder",
                what,
                vec![first.call, seen.call],
            ));
        }
    }
    let mut by_end: Vec<&Sighting> = sightings.iter().collect();
    by_end.sort_by_key(|seen| seen.until);
    let mut by_start: Vec<&Sighting> = sightings.iter().collect();
    by_start.sort_by_key(|seen| seen.asked);
    let mut ended = by_end.into_iter().peekable();
    let mut highest: Option<&Sighting> = None;
    for seen in by_start {
        while let Some(before) = ended.next_if(|before| before.until < seen.asked) {
            if highest.is_none_or(|high| before.epoch > high.epoch) {
                highest = Some(before);
            }
        }
        if let Some(high) = highest.filter(|high| high.epoch > seen.epoch) {
            let what = format!(
                "{} was had with epoch {} after it had epoch {}",
                seen.key, seen.epoch, high.epoch
            );
            found.push(Violation::new(
                "growing epochs",
                what,
                vec![high.call, seen.call],
            ));
        }
    }
    found
}

/// A key that another session got although its holder was alive and did not give it up.
fn robberies(history: &History, sightings: &[Sighting]) -> Vec<Violation> {
    let Some(key) = sightings.first().map(|seen| seen.key.as_str()) else {
        return Vec::new();
    };
    let lettings = lettings(history, key);
    let mut by_epoch: Vec<&Sighting> = sightings.iter().collect();
    by_epoch.sort_by_key(|seen| seen.epoch);
    let mut found = Vec::new();
    for (place, holder) in by_epoch.iter().enumerate() {
        let Some(life) = holder.life else { continue };
        let kept = kept_until(history, &lettings, holder, life);
        // The very next epochs of others are enough, because later ones come after them.
        let others = by_epoch[place + 1..]
            .iter()
            .filter(|seen| seen.epoch > holder.epoch && seen.session != holder.session);
        let is_robber = |seen: &&&Sighting| {
            // A path may be freed by the other host, which takes one that overlaps it.
            let visible = !key.starts_with("path:")
                && seen.epoch == holder.epoch + 1
                && seen
                    .life
                    .is_some_and(|other| !history.are_apart(life, other));
            let lease = match history.terms {
                Some(terms) if !visible => holder.renewed.saturating_add(terms.surely()),
                _ => u64::MAX,
            };
            seen.until < kept.min(lease)
        };
        let robber = others.take(8).find(is_robber);
        if let Some(robber) = robber {
            let what = format!(
                "{key} epoch {} was taken from a living holder by epoch {}",
                holder.epoch, robber.epoch
            );
            let calls = vec![holder.call, robber.call];
            found.push(Violation::new("the living are not robbed", what, calls));
        }
    }
    found
}

/// A call after which a key may belong to another session although its holder is alive.
struct Letting {
    asked: u64,
    until: u64,
    /// The caller; none if it takes keys from others.
    life: Option<usize>,
    /// The resulting epoch, if the answer has one.
    epoch: Option<u64>,
}

fn lettings(history: &History, key: &str) -> Vec<Letting> {
    let path = |text: &str| Key::parse(text).ok();
    let overlap = |other: &str| {
        let (one, other) = (path(key), path(other));
        match (
            one.as_ref().and_then(Key::path),
            other.as_ref().and_then(Key::path),
        ) {
            (Some((_, one)), Some((_, other))) => one.overlaps(&other),
            _ => false,
        }
    };
    let mut found = Vec::new();
    for call in &history.calls {
        let life = match &call.op {
            Op::End => Some(call.life),
            Op::Release { key: other, .. } | Op::Handoff { key: other, .. } if other == key => {
                Some(call.life)
            }
            Op::Takeover { key: other, .. } if other == key || overlap(other) => None,
            _ => continue,
        };
        let epoch = match (&call.op, &call.answer) {
            (_, Some(CallAnswer::Refused(_))) => continue,
            (Op::Takeover { key: other, .. }, Some(CallAnswer::Granted { grants }))
                if other == key =>
            {
                grants.first().map(|grant| grant.epoch)
            }
            _ => None,
        };
        found.push(Letting {
            asked: call.asked,
            until: call.until,
            life,
            epoch,
        });
    }
    found
}

/// Until when a holder certainly keeps what it was seen to have.
fn kept_until(history: &History, lettings: &[Letting], holder: &Sighting, life: usize) -> u64 {
    let applies = |letting: &&Letting| {
        let own = letting.life.is_none_or(|by| by == life);
        let later = letting.epoch.is_none_or(|epoch| epoch > holder.epoch);
        own && later && letting.until >= holder.asked
    };
    let first = lettings
        .iter()
        .filter(applies)
        .map(|letting| letting.asked)
        .min();
    first.unwrap_or(u64::MAX).min(history.lives[life].doomed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Terms;
    use crate::story::{
        Story, claim, grant, granted, guard, held, refused, register, registered, release,
        takeover, yes,
    };

    fn rules(story: &Story) -> Vec<&'static str> {
        violations(&story.history())
            .iter()
            .map(|found| found.rule)
            .collect()
    }

    fn two() -> (Story, usize, usize) {
        let mut story = Story::default();
        let (a, b) = (story.life("a"), story.life("b"));
        (story, a, b)
    }

    #[test]
    fn a_key_that_is_given_back_and_granted_again_is_right() {
        let (mut story, a, b) = two();
        story.call(a, "A", 1, 2, claim(&["wp:1"]), granted(&[grant("wp:1", 1)]));
        story.call(b, "B", 3, 4, claim(&["wp:1"]), held("wp:1", "A", 1));
        story.call(a, "A", 5, 8, release("wp:1"), yes(1));
        story.call(b, "B", 6, 7, claim(&["wp:1"]), granted(&[grant("wp:1", 2)]));
        story.call(b, "B", 9, 10, guard("wp:1", 2), yes(2));
        assert_eq!(rules(&story), [""; 0]);
    }

    #[test]
    fn two_sessions_with_one_epoch_are_found() {
        let (mut story, a, b) = two();
        story.killed(a, 3, 3);
        story.call(a, "A", 1, 2, claim(&["wp:1"]), granted(&[grant("wp:1", 1)]));
        story.call(b, "B", 4, 5, claim(&["wp:1"]), granted(&[grant("wp:1", 1)]));
        assert_eq!(rules(&story), ["one holder"]);
    }

    #[test]
    fn an_epoch_that_falls_is_found() {
        let (mut story, a, b) = two();
        story.call(a, "A", 1, 2, claim(&["wp:1"]), granted(&[grant("wp:1", 2)]));
        story.call(a, "A", 3, 4, release("wp:1"), yes(2));
        story.call(b, "B", 5, 6, claim(&["wp:1"]), granted(&[grant("wp:1", 1)]));
        assert_eq!(rules(&story)[0], "growing epochs");
    }

    /// The giver cannot renew the lease of a session on another host.
    #[test]
    fn a_key_that_was_handed_over_is_kept_for_the_lease_of_its_receiver() {
        let hand_over = || Op::Handoff {
            key: "wp:1".into(),
            to: "R".into(),
            epoch: None,
        };
        for (at, expected) in [(80, &["the living are not robbed"][..]), (90, &[])] {
            let (mut story, a, b) = two();
            let receiver = story.life("r");
            for (life, host) in [(a, "a"), (receiver, "a"), (b, "b")] {
                story.on(life, host);
            }
            story.call(
                receiver,
                "",
                1,
                2,
                register("n"),
                registered("R", "new", &[]),
            );
            story.call(a, "A", 3, 4, claim(&["wp:1"]), granted(&[grant("wp:1", 1)]));
            story.call(a, "A", 60, 61, hand_over(), yes(2));
            let taken = granted(&[grant("wp:1", 3)]);
            story.call(b, "B", at, at + 1, claim(&["wp:1"]), taken);
            let (lease, delay) = (100, 10);
            let history = History {
                terms: Some(Terms { lease, delay }),
                ..story.history()
            };
            let found = violations(&history);
            let rules: Vec<&str> = found.iter().map(|violation| violation.rule).collect();
            assert_eq!(rules, expected, "{at}");
        }
    }

    #[test]
    fn the_living_are_robbed_by_claims_and_never_by_takeovers() {
        let (mut story, a, b) = two();
        story.call(a, "A", 1, 2, claim(&["wp:1"]), granted(&[grant("wp:1", 1)]));
        let mut taken = story.clone();
        let mut dead = story.clone();
        story.call(b, "B", 3, 4, claim(&["wp:1"]), granted(&[grant("wp:1", 2)]));
        assert_eq!(rules(&story), ["the living are not robbed"]);
        story.killed(a, 5, 6);
        assert_eq!(rules(&story), ["the living are not robbed"]);
        dead.killed(a, 4, 6);
        dead.call(b, "B", 3, 4, claim(&["wp:1"]), granted(&[grant("wp:1", 2)]));
        assert_eq!(rules(&dead), [""; 0]);
        taken.call(b, "B", 3, 4, takeover("wp:1"), granted(&[grant("wp:1", 2)]));
        assert_eq!(rules(&taken), [""; 0]);
    }

    #[test]
    fn a_stale_guard_that_says_yes_is_found() {
        let (mut story, a, b) = two();
        story.call(a, "A", 1, 2, claim(&["wp:1"]), granted(&[grant("wp:1", 1)]));
        story.call(b, "B", 3, 4, takeover("wp:1"), granted(&[grant("wp:1", 2)]));
        story.call(a, "A", 5, 6, guard("wp:1", 1), yes(1));
        assert_eq!(rules(&story)[0], "growing epochs");
    }

    #[test]
    fn a_session_in_two_living_processes_is_found() {
        let (mut story, a, b) = two();
        story.call(a, "", 1, 2, register("n"), registered("A", "new", &[]));
        let mut ended = story.clone();
        let mut dead = story.clone();
        story.call(b, "", 3, 4, register("n"), registered("A", "resumed", &[]));
        assert_eq!(rules(&story), ["own identity"]);
        dead.killed(a, 3, 5);
        dead.call(b, "", 3, 4, register("n"), registered("A", "resumed", &[]));
        assert_eq!(rules(&dead), [""; 0]);
        let nothing = Some(CallAnswer::Yes {
            epoch: None,
            holder: None,
        });
        ended.call(a, "A", 3, 4, Op::End, nothing);
        ended.call(b, "", 5, 6, register("n"), registered("A", "resumed", &[]));
        assert_eq!(rules(&ended), [""; 0]);
    }

    #[test]
    fn a_waiter_of_a_host_that_ends_before_its_time_because_the_store_is_away_is_found() {
        for (until, expected) in [(4_000_000, &["unexpected answer"][..]), (5_000_001, &[])] {
            let (mut story, a, _) = two();
            let Op::Claim(mut waits) = claim(&["wp:1"]) else {
                panic!("a claim");
            };
            waits.wait = Some(5);
            let away = refused("store_unavailable", "wp:1");
            story.call(a, "A", 1, until, Op::Claim(waits), away);
            let (lease, delay) = (100, 10);
            let history = History {
                is_shared: true,
                terms: Some(Terms { lease, delay }),
                ..story.history()
            };
            let found = violations(&history);
            let rules: Vec<&str> = found.iter().map(|violation| violation.rule).collect();
            assert_eq!(rules, expected, "{until}");
        }
    }

    #[test]
    fn answers_that_nobody_should_get_are_found() {
        for kind in [
            "store_busy",
            "suspect",
            "cannot_tell",
            "no_session",
            "timed_out",
        ] {
            let (mut story, a, _) = two();
            story.call(a, "A", 1, 2, claim(&["wp:1"]), refused(kind, "wp:1"));
            assert_eq!(rules(&story), ["unexpected answer"], "{kind}");
        }
    }
}
