//! A repository without a remote that both hosts have at the same path.
//!
//! A place is a directory of one host. So what workers of one host claim there is never in the way of the other host,
//! and all workers of one host claim the same keys. Each host's keys are a space of their own.

use std::collections::BTreeMap;

use tenure_core::key::Key;

use super::history::{Call, History};
use super::record::{CallAnswer, Op};
use super::rule::Violation;

/// The repository of a key, if it is named by its directory.
pub fn repository(key: &str) -> Option<String> {
    let key = Key::parse(key).ok()?;
    let (repository, _) = key.path_parts()?;
    repository.starts_with('@').then(|| repository.to_owned())
}

/// The keys that a call names.
fn named(op: &Op) -> &[String] {
    match op {
        Op::Claim(claim) => &claim.keys,
        Op::Release { key, .. }
        | Op::Handoff { key, .. }
        | Op::Takeover { key, .. }
        | Op::Guard { key, .. }
        | Op::Recall { key, .. } => std::slice::from_ref(key),
        Op::Register { .. } | Op::End | Op::Renew => &[],
    }
}

/// The keys of each such repository that were used.
pub fn spaces(history: &History) -> Vec<Vec<&str>> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for key in history.calls.iter().flat_map(|call| named(&call.op)) {
        if let Some(repository) = repository(key) {
            found.entry(repository).or_default().push(key);
        }
    }
    let mut spaces: Vec<Vec<&str>> = found.into_values().collect();
    for keys in &mut spaces {
        keys.sort_unstable();
        keys.dedup();
    }
    spaces
}

/// Who was in the way of a call, or lost something by it, at a place.
fn in_the_way(answer: &CallAnswer) -> Vec<&str> {
    let is_place = |key: &str| repository(key).is_some();
    match answer {
        CallAnswer::Refused(refusal) if refusal.key.as_deref().is_some_and(is_place) => {
            refusal.holder.iter().map(String::as_str).collect()
        }
        CallAnswer::Granted { grants } => {
            let grants = grants.iter().filter(|grant| is_place(&grant.key));
            let taken = grants.filter_map(|grant| grant.taken_from.as_ref());
            taken.map(|(session, _)| session.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

/// A host that has two names for the repository or shares one with the other host, and a session in the way of the other
/// host.
pub fn violations(history: &History) -> Vec<Violation> {
    let host = |call: &Call| history.lives[call.life].host.as_deref();
    let mut found = Vec::new();
    let mut repositories: BTreeMap<String, Option<&str>> = BTreeMap::new();
    for (at, call) in history.calls.iter().enumerate() {
        let names = named(&call.op).iter().filter_map(|key| repository(key));
        let names: Vec<String> = names.collect();
        for name in &names {
            repositories.entry(name.clone()).or_insert(host(call));
        }
        let is_own = |name: &String| {
            let mut all = repositories.iter();
            all.all(|(other, owner)| (*owner == host(call)) == (other == name))
        };
        if !names.iter().all(is_own) {
            let what = format!(
                "{} names a directory that is not of its host alone",
                call.tag
            );
            found.push(Violation::new("own places", what, vec![at]));
        }
        for session in call.answer.iter().flat_map(in_the_way) {
            let tenancies = history.tenancies_of(session).iter();
            let mut hosts = tenancies.map(|one| history.lives[one.life].host.as_deref());
            if hosts.any(|other| other != host(call)) {
                let what = format!("{session} of the other host is in the way of {}", call.tag);
                found.push(Violation::new("own places", what, vec![at]));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::{Story, claim, grant, granted, held, register, registered};

    const A: &str = "path:@ma/w/.git:src/**";
    const B: &str = "path:@mb/w/.git:src/**";

    /// Two sessions of host a, and one of host b.
    fn story() -> (Story, [usize; 3]) {
        let mut story = Story::default();
        let lives = ["a", "aa", "b"].map(|name| story.life(name));
        for (life, (host, session)) in lives.into_iter().zip([("a", "A"), ("a", "AA"), ("b", "B")])
        {
            story.on(life, host);
            story.call(
                life,
                "",
                1,
                2,
                register(session),
                registered(session, "new", &[]),
            );
        }
        let took = granted(&[grant(A, 1)]);
        story.call(lives[0], "A", 3, 4, claim(&[A]), took);
        story.call(lives[1], "AA", 5, 6, claim(&[A]), held(A, "A", 1));
        (story, lives)
    }

    fn found(story: &Story) -> usize {
        violations(&story.history()).len()
    }

    #[test]
    fn the_same_path_is_one_key_on_one_host_and_another_on_the_other() {
        let (mut story, [_, other, b]) = story();
        story.call(b, "B", 7, 8, claim(&[B]), granted(&[grant(B, 1)]));
        assert_eq!(found(&story), 0);
        assert_eq!(spaces(&story.history()), [[A], [B]]);
        let mut shared = story.clone();
        shared.call(b, "B", 9, 10, claim(&[A]), None);
        assert_eq!(found(&shared), 1, "both hosts have one key");
        story.call(other, "AA", 9, 10, claim(&["path:@mc/w/.git:src/**"]), None);
        assert_eq!(found(&story), 1, "one host has two keys");
    }

    #[test]
    fn a_session_of_the_other_host_that_is_in_the_way_is_found() {
        let (mut story, [_, _, b]) = story();
        let mut robbed = story.clone();
        story.call(b, "B", 7, 8, claim(&[B]), held(B, "A", 1));
        assert_eq!(found(&story), 1);
        let mut taken = grant(B, 2);
        taken.taken_from = Some(("A".into(), 1));
        robbed.call(b, "B", 7, 8, claim(&[B]), granted(&[taken]));
        assert_eq!(found(&robbed), 1);
    }
}
