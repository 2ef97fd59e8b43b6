//! Rules that no event can match.

use super::rule::{Repo, Rule, Rules, When};
use crate::forge::EventKind;

/// Why a rule never matches, and the key that is to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Never {
    #[error("there is no [repo.\"{0}\"]")]
    NoRepository(String),
    #[error("the file has no [repo] section")]
    NoRepositories,
    #[error("it names no event")]
    NoEvent,
    #[error("{} is about the repository as a whole and starts no run", .0.as_str())]
    NoItem(EventKind),
    #[error("{} is never sent by forge {forge}", .kind.as_str())]
    NeverSent { kind: EventKind, forge: String },
    #[error("it names nobody who may start a run; set authors or associations")]
    Nobody,
    #[error("its only author, {0}, is the account that tenure writes as, whose events are ignored")]
    OnlyOwnAccount(String),
    #[error("forge {0} does not send associations; set its url and token_file, or name authors")]
    NoAssociations(String),
    #[error("none of its events has {0}")]
    NotCarried(&'static str),
    #[error("rule {0} comes first and matches everything that this one does")]
    Shadowed(String),
}

impl Never {
    /// The setting that the reason is about.
    pub fn key(&self) -> &'static str {
        match self {
            Never::NoRepository(_) | Never::NoRepositories => "repo",
            Never::NoEvent | Never::NoItem(_) | Never::NeverSent { .. } => "on",
            Never::Shadowed(_) => "on",
            Never::Nobody | Never::OnlyOwnAccount(_) => "authors",
            Never::NoAssociations(_) => "associations",
            Never::NotCarried(what) => what,
        }
    }
}

/// The rules that never match, by their place, each with one reason.
///
/// An event in `on` that its forge never sends is named too, although the rule's other events may match: it was
/// surely meant to do something.
pub fn unreachable(rules: &Rules) -> Vec<(usize, Never)> {
    let mut found = Vec::new();
    for (place, rule) in rules.rules.iter().enumerate() {
        let earlier = &rules.rules[..place];
        let never = never(&rule.when, &rules.repos).or_else(|| shadow(rule, earlier));
        found.extend(never.map(|never| (place, never)));
    }
    found
}

fn never(when: &When, repos: &[Repo]) -> Option<Never> {
    let is_meant = |repo: &&Repo| when.repo.as_ref().is_none_or(|name| *name == repo.name);
    let meant: Vec<&Repo> = repos.iter().filter(is_meant).collect();
    if meant.is_empty() {
        let named = when.repo.clone().map(Never::NoRepository);
        return Some(named.unwrap_or(Never::NoRepositories));
    }
    never_on(when, &meant).or_else(|| never_by(when, &meant))
}

/// By what it is about.
fn never_on(when: &When, meant: &[&Repo]) -> Option<Never> {
    if when.on.is_empty() {
        return Some(Never::NoEvent);
    }
    for kind in &when.on {
        if !kind.has_item() {
            return Some(Never::NoItem(*kind));
        }
        if meant.iter().all(|repo| repo.never_sends.contains(kind)) {
            let forge = meant[0].forge.clone();
            return Some(Never::NeverSent { kind: *kind, forge });
        }
    }
    let carries = |what: &'static str, asks: bool, has: fn(EventKind) -> bool| {
        let lacks = asks && !when.on.iter().any(|kind| has(*kind));
        lacks.then_some(Never::NotCarried(what))
    };
    let is_item = |kind: EventKind| kind.is_of_issue() || kind.is_of_pull();
    carries("label", when.label.is_some(), is_item)
        .or_else(|| carries("mention", when.mention.is_some(), is_item))
        .or_else(|| carries("assignee", when.assignee.is_some(), is_item))
        .or_else(|| carries("reviewer", when.reviewer.is_some(), EventKind::is_of_pull))
        .or_else(|| carries("branch", when.branch.is_some(), EventKind::has_branch))
}

/// By who may start it.
fn never_by(when: &When, meant: &[&Repo]) -> Option<Never> {
    if when.authors.is_empty() && when.associations.is_empty() {
        return Some(Never::Nobody);
    }
    if !when.associations.is_empty() {
        let told = meant.iter().any(|repo| repo.tells_associations);
        let only = when.authors.is_empty() && !told;
        return only.then(|| Never::NoAssociations(meant[0].forge.clone()));
    }
    let is_own = |author: &String, repo: &Repo| {
        let own = repo.own_account.as_deref();
        own.is_some_and(|own| own.eq_ignore_ascii_case(author))
    };
    let all_own = meant
        .iter()
        .all(|repo| when.authors.iter().all(|author| is_own(author, repo)));
    all_own.then(|| Never::OnlyOwnAccount(when.authors[0].clone()))
}

/// The earlier rule that leaves nothing for this one.
fn shadow(rule: &Rule, earlier: &[Rule]) -> Option<Never> {
    let hides = |one: &&Rule| !one.goes_on && includes(one, rule);
    let hiding = earlier.iter().find(hides);
    hiding.map(|one| Never::Shadowed(one.name.clone()))
}

/// Whether the first matches every event that the second matches.
fn includes(first: &Rule, second: &Rule) -> bool {
    let (one, other) = (&first.when, &second.when);
    let repo = one.repo.is_none() || one.repo == other.repo;
    let is_included = |kind: &EventKind| one.on.iter().any(|wide| wide.includes(*kind));
    let on = other.on.iter().all(is_included);
    let is_named = |author: &String| {
        let mut names = one.authors.iter();
        names.any(|name| name.eq_ignore_ascii_case(author))
    };
    let authors = other.authors.iter().all(is_named);
    let associations = other
        .associations
        .iter()
        .all(|found| one.associations.contains(found));
    let same = |one: &Option<String>, other: &Option<String>| {
        let lower = |text: &Option<String>| text.as_ref().map(|text| text.to_lowercase());
        one.is_none() || lower(one) == lower(other)
    };
    let filters = same(&one.label, &other.label)
        && same(&one.mention, &other.mention)
        && same(&one.assignee, &other.assignee)
        && same(&one.reviewer, &other.reviewer);
    let branch = match (&one.branch, &other.branch) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(one), Some(other)) => one.includes(other),
    };
    // Without a wrap the first leaves the code of others to the second.
    let code = !first.action.wrap.is_empty()
        || second.action.wrap.is_empty()
        || !other.on.iter().any(|kind| kind.is_of_pull());
    repo && on && authors && associations && filters && branch && code
}
