//! The decision about one event.

use serde::{Deserialize, Serialize};

use super::no::No;
use super::rule::{OnClose, Repo, Rule, Rules};
use crate::forge::{
    Association, EventKind, ForgeEvent, Permission, Person, Pull, text, worktree_issue,
};
use crate::id::AgentName;
use crate::key::Key;

/// What only the store and the forge know about an event.
#[derive(Debug, Clone, Default)]
pub struct Facts<'a> {
    /// The account that tenure writes as.
    pub own: Option<&'a Person>,
    /// What the actor may do, as the forge answered.
    pub permission: Option<Permission>,
    /// The same for who opened the pull request.
    pub subject_permission: Option<Permission>,
    /// A pull request that the event describes no further, as the forge answered.
    pub pull: Option<&'a Pull>,
    /// Whether the text of this event, or the label of this item, has started a job before.
    pub triggered_before: bool,
}

/// Whose code a run works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Of the repository itself, or of someone whom the rule names.
    Permitted,
    /// Of anyone else: the run needs its rule's wrap.
    Outside,
}

impl Trust {
    pub fn as_str(self) -> &'static str {
        match self {
            Trust::Permitted => "permitted",
            Trust::Outside => "outside",
        }
    }
}

/// A run that a rule starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    pub rule: String,
    pub agent: AgentName,
    pub item: Key,
    pub trust: Trust,
    /// The commit that was permitted; a newer one is not.
    pub head: Option<String>,
    /// The branch of a pull request in the repository itself.
    pub branch: Option<String>,
}

/// What one rule says about the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleVerdict {
    pub rule: String,
    /// None if it matches.
    pub no: Option<No>,
}

/// An item that is over: its queued jobs are cancelled, and its conversation closes with its last open item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleanup {
    pub item: Key,
    pub is_merged: bool,
    /// Whether a person did it; a run must not be stopped because its own agent merged.
    pub by_person: bool,
    /// The rules whose live runs of this item are stopped; others finish.
    pub stops: Vec<String>,
}

/// An item whose agents a person stops: their live runs end, and their waiting jobs are cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    pub item: Key,
    /// The rules whose jobs are meant; none for all.
    pub rules: Option<Vec<String>>,
    pub why: String,
}

/// The first item continues the conversations of the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub item: Key,
    pub target: Key,
}

/// Everything that an event means. Clean up first, then reset, link and run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    pub runs: Vec<Matched>,
    pub cleanup: Option<Cleanup>,
    /// An item that was closed and is open again.
    pub reopened: Option<Key>,
    /// The item whose conversations are dropped.
    pub reset: Option<Key>,
    /// The rules whose live runs a reset stops; it waits for others to end.
    pub reset_stops: Vec<String>,
    pub halt: Option<Halt>,
    pub link: Option<Link>,
    /// What each rule says, in their order; empty if no rule was asked.
    pub verdicts: Vec<RuleVerdict>,
    /// Why no run is started.
    pub no: Option<No>,
    /// Whether a person did it, and not a program or tenure's own account.
    pub by_person: bool,
}

impl Decision {
    fn refused(no: No) -> Self {
        Self {
            no: Some(no),
            ..Self::default()
        }
    }

    /// The same if the event is about another repository that has the name now: items with the same numbers are others.
    #[must_use]
    pub fn without_items(self, no: No) -> Self {
        let is_refused = self.runs.is_empty() && (self.changes_items() || self.no.is_none());
        Self {
            cleanup: None,
            reopened: None,
            reset: None,
            reset_stops: Vec::new(),
            halt: None,
            link: None,
            no: if is_refused { Some(no) } else { self.no },
            ..self
        }
    }

    /// Whether there is anything to do.
    pub fn acts(&self) -> bool {
        !self.runs.is_empty() || self.changes_items()
    }

    /// Whether it changes something besides the queue.
    pub fn changes_items(&self) -> bool {
        self.cleanup.is_some()
            || self.reopened.is_some()
            || self.reset.is_some()
            || self.halt.is_some()
            || self.link.is_some()
    }
}

/// Decides about an event that arrived at the endpoint of this forge.
pub fn decide(event: &ForgeEvent, forge: &str, rules: &Rules, facts: &Facts<'_>) -> Decision {
    let Some(repo) = rules.repo(forge, &event.repo) else {
        return Decision::refused(No::UnknownRepository {
            repo: event.repo.clone(),
            forge: forge.to_owned(),
        });
    };
    if event.kind == EventKind::RepoDeleted {
        return Decision::refused(No::Deleted);
    }
    let Some(item) = &event.item else {
        return Decision::refused(No::NoItem(event.kind));
    };
    let asked = EventContext {
        event,
        item,
        repo,
        facts,
    };
    let mut decision = Decision {
        cleanup: asked.cleanup(rules),
        reopened: event.kind.is_reopening().then(|| item.clone()),
        link: asked.link(),
        by_person: asked.is_by_person(),
        ..Decision::default()
    };
    if let Err(no) = asked.may_trigger() {
        decision.no = Some(no);
        return decision;
    }
    if event.kind.is_comment() && !event.is_edit && text::asks_for_reset(event.text()) {
        match asked.reset(rules) {
            Ok(item) => {
                decision.reset = Some(item);
                decision.reset_stops = asked.stops(rules);
            }
            Err(no) => decision.no = Some(no),
        }
        return decision;
    }
    match asked.halt(rules) {
        Ok(None) => {}
        Ok(halt) => {
            decision.halt = halt;
            return decision;
        }
        Err(no) => {
            decision.no = Some(no);
            return decision;
        }
    }
    asked.run(rules, &mut decision);
    decision
}

/// An event and what is known about it.
struct EventContext<'a> {
    event: &'a ForgeEvent,
    item: &'a Key,
    repo: &'a Repo,
    facts: &'a Facts<'a>,
}

impl EventContext<'_> {
    fn is_own(&self, person: &Person) -> bool {
        let by_login = self.repo.own_account.as_deref().map(Person::named);
        let known = self.facts.own.is_some_and(|own| own.is(person));
        known || by_login.is_some_and(|own| own.is(person))
    }

    fn is_by_person(&self) -> bool {
        let actor = &self.event.actor;
        !self.is_own(actor) && !self.repo.is_bot(actor)
    }

    fn cleanup(&self, rules: &Rules) -> Option<Cleanup> {
        let event = self.event;
        if !event.kind.is_closing() {
            return None;
        }
        let by_person = self.is_by_person();
        Some(Cleanup {
            item: self.item.clone(),
            is_merged: event.is_merged(),
            by_person,
            stops: self.stops(rules),
        })
    }

    /// The rules whose live runs are stopped when a person ends their item or conversation.
    fn stops(&self, rules: &Rules) -> Vec<String> {
        let by_person = self.is_by_person();
        let stops = |rule: &&Rule| {
            by_person && rule.action.on_close == OnClose::Stop && self.is_for_repo(rule).is_ok()
        };
        let named = rules.rules.iter().filter(stops);
        named.map(|rule| rule.name.clone()).collect()
    }

    /// A pull request continues the issue that it closes, unless it is from a fork.
    fn link(&self) -> Option<Link> {
        let event = self.event;
        let may_link = matches!(event.kind, EventKind::PullOpened | EventKind::PullEdited);
        let pull = event
            .pull
            .as_ref()
            .filter(|pull| may_link && !pull.is_fork)?;
        if event.is_edit_by_other() {
            return None;
        }
        let target = event.closes().into_iter().next();
        let target = target.or_else(|| worktree_issue(&pull.branch, &event.repo))?;
        Some(Link {
            item: self.item.clone(),
            target,
        })
    }

    /// Whether the event can start anything at all.
    fn may_trigger(&self) -> Result<(), No> {
        let event = self.event;
        if self.is_own(&event.actor) {
            return Err(No::OwnAccount {
                login: event.actor.name(),
            });
        }
        if event.kind.is_writing() && text::is_ours(event.text()) {
            return Err(No::OwnText);
        }
        if event.is_edit_by_other() {
            let author = event.text_author.as_ref();
            return Err(No::EditedByOther {
                actor: event.actor.name(),
                author: author.map_or_else(|| Person::default().name(), Person::name),
            });
        }
        if event.is_edit && self.facts.triggered_before {
            return Err(No::EditedAfterTrigger);
        }
        Ok(())
    }

    fn reset(&self, rules: &Rules) -> Result<Key, No> {
        if self.may_start_any(rules) {
            Ok(self.item.clone())
        } else {
            Err(No::ResetRefused {
                login: self.event.actor.name(),
            })
        }
    }

    /// Whether the actor may start a run by some rule of the repository.
    fn may_start_any(&self, rules: &Rules) -> bool {
        let may = |rule: &Rule| self.is_for_repo(rule).is_ok() && self.is_permitted(rule).is_ok();
        rules.rules.iter().any(may)
    }

    /// What a person stops, by a comment or by taking the assignment back.
    fn halt(&self, rules: &Rules) -> Result<Option<Halt>, No> {
        let event = self.event;
        let login = event.actor.name();
        let is_command =
            event.kind.is_comment() && !event.is_edit && text::asks_to_stop(event.text());
        let (named, why) = if is_command {
            (None, format!("{login} commented /tenure stop"))
        } else if let Some(named) = self.unassigned(rules) {
            (named, format!("{login} removed its assignee"))
        } else {
            return Ok(None);
        };
        if !self.may_start_any(rules) {
            return Err(No::StopRefused { login });
        }
        Ok(Some(Halt {
            item: self.item.clone(),
            rules: named,
            why,
        }))
    }

    /// The rules that an assignment started which is no longer there; all if it was tenure's own account.
    fn unassigned(&self, rules: &Rules) -> Option<Option<Vec<String>>> {
        let event = self.event;
        if !event.kind.is_unassigning() {
            return None;
        }
        let own = self.repo.own_account.as_deref();
        if own.is_some_and(|own| contains(&event.removed, own)) {
            return Some(None);
        }
        let is_gone = |assignee: &str| {
            if event.removed.is_empty() {
                // This forge tells only who is left.
                !contains(&event.assignees, assignee)
            } else {
                contains(&event.removed, assignee)
            }
        };
        let is_meant = |rule: &&Rule| {
            let assignee = rule.when.assignee.as_deref();
            assignee.is_some_and(is_gone) && self.is_for_repo(rule).is_ok()
        };
        let named = rules.rules.iter().filter(is_meant);
        let named: Vec<String> = named.map(|rule| rule.name.clone()).collect();
        (!named.is_empty()).then_some(Some(named))
    }

    fn run(&self, rules: &Rules, decision: &mut Decision) {
        let mut last: Option<&str> = None;
        for rule in &rules.rules {
            let answer = match last {
                Some(earlier) => Err(No::Earlier(earlier.to_owned())),
                None => self.matches(rule),
            };
            let no = match answer {
                Ok(matched) => {
                    decision.runs.push(matched);
                    last = (!rule.goes_on).then_some(&rule.name);
                    None
                }
                Err(no) => Some(no),
            };
            decision.verdicts.push(RuleVerdict {
                rule: rule.name.clone(),
                no,
            });
        }
        decision.no = decision.runs.is_empty().then_some(No::NoRule);
    }

    fn matches(&self, rule: &Rule) -> Result<Matched, No> {
        self.is_for_repo(rule)?;
        if !self.event.is_one_of(&rule.when.on) {
            return Err(No::OtherEvent(rule.when.on.clone()));
        }
        self.is_permitted(rule)?;
        self.has_what_it_asks(rule)?;
        let trust = self.code(rule)?;
        let own = self.pull().filter(|pull| !pull.is_fork);
        let pull = self.pull().and_then(|pull| pull.head.clone());
        Ok(Matched {
            rule: rule.name.clone(),
            agent: rule.action.agent.clone(),
            item: self.item.clone(),
            trust,
            head: pull.or_else(|| self.event.pushed.clone()),
            branch: own.map(|pull| pull.branch.clone()),
        })
    }

    fn is_for_repo(&self, rule: &Rule) -> Result<(), No> {
        match &rule.when.repo {
            Some(other) if *other != self.event.repo => Err(No::OtherRepository(other.clone())),
            _ => Ok(()),
        }
    }

    fn is_permitted(&self, rule: &Rule) -> Result<(), No> {
        let (event, facts) = (self.event, self.facts);
        permitted(rule, &event.actor, event.association, facts.permission)
    }

    fn has_what_it_asks(&self, rule: &Rule) -> Result<(), No> {
        let (event, when) = (self.event, &rule.when);
        if let Some(label) = &when.label {
            self.has_label(label)?;
        }
        if let Some(mention) = &when.mention
            && !text::mentions(&event.spoken(), mention)
        {
            return Err(No::NoMention(mention.clone()));
        }
        if let Some(assignee) = &when.assignee {
            let is_new = event.kind.is_assigning() && !event.added.is_empty();
            let among = if is_new {
                &event.added
            } else {
                &event.assignees
            };
            if !contains(among, assignee) {
                return Err(No::NoAssignee(assignee.clone()));
            }
        }
        if let Some(reviewer) = &when.reviewer {
            let is_new = event.kind == EventKind::PullReviewRequested && !event.added.is_empty();
            let among = if is_new {
                &event.added
            } else {
                &event.reviewers
            };
            if !contains(among, reviewer) {
                return Err(No::NoReviewer(reviewer.clone()));
            }
        }
        if let Some(branch) = &when.branch {
            let base = self.pull().map(|pull| pull.base.as_str());
            let Some(found) = base.or(event.branch.as_deref()) else {
                return Err(No::NoBranch(branch.to_string()));
            };
            if !branch.matches(found) {
                return Err(No::OtherBranch {
                    found: found.to_owned(),
                    wanted: branch.to_string(),
                });
            }
        }
        Ok(())
    }

    fn has_label(&self, label: &str) -> Result<(), No> {
        let event = self.event;
        if !contains(&event.labels, label) {
            return Err(No::NoLabel(label.to_owned()));
        }
        if !event.kind.is_labeling() || contains(&event.added, label) {
            Ok(())
        } else if !event.added.is_empty() {
            Err(No::OtherLabel(label.to_owned()))
        } else if self.facts.triggered_before {
            Err(No::LabelBefore(label.to_owned()))
        } else {
            Ok(())
        }
    }

    fn pull(&self) -> Option<&Pull> {
        self.event.pull.as_ref().or(self.facts.pull)
    }

    /// Whose code the rule would run, if it may.
    fn code(&self, rule: &Rule) -> Result<Trust, No> {
        let no = match self.foreign_code(rule) {
            None => return Ok(Trust::Permitted),
            Some(no) => no,
        };
        if rule.action.wrap.is_empty() {
            Err(no)
        } else {
            Ok(Trust::Outside)
        }
    }

    /// Why code is not known to be of someone whom the rule names.
    fn foreign_code(&self, rule: &Rule) -> Option<No> {
        let event = self.event;
        if !event.kind.is_of_pull() {
            return None;
        }
        let Some(pull) = self.pull() else {
            return Some(No::UnknownCode {
                item: self.item.clone(),
            });
        };
        if pull.is_fork {
            let fork = pull
                .head_repo
                .as_deref()
                .unwrap_or("of an unknown repository");
            return Some(No::Fork(fork.to_owned()));
        }
        let nobody = Person::default();
        let author = event.subject_author.as_ref().unwrap_or(&nobody);
        let association = event.subject_association;
        // The actor was found to be permitted before.
        let may = author.is(&event.actor)
            || self.is_own(author)
            || permitted(rule, author, association, self.facts.subject_permission).is_ok();
        (!may).then(|| No::ForeignCode {
            author: author.name(),
        })
    }
}

/// Whether a rule lets someone start a run.
fn permitted(
    rule: &Rule,
    person: &Person,
    association: Option<Association>,
    permission: Option<Permission>,
) -> Result<(), No> {
    let (login, wanted) = (person.name(), &rule.when.associations);
    if rule.when.names(person) {
        // A login can change hands, and a person can leave.
        return match permission {
            Some(Permission::Read | Permission::Nothing) => Err(No::NamedNotPermitted { login }),
            _ => Ok(()),
        };
    }
    if wanted.is_empty() {
        return Err(No::NotAnAuthor { login });
    }
    let wanted = wanted.clone();
    match (permission, association) {
        (Some(permission), _) if permission.is_among(&wanted) => Ok(()),
        // What the forge answered is newer than what the event reports.
        (Some(_), _) => Err(No::NotPermitted { login, wanted }),
        (None, Some(found)) if wanted.contains(&found) => Ok(()),
        (None, Some(found)) => Err(No::OtherAssociation {
            login,
            found,
            wanted,
        }),
        (None, None) => Err(No::AssociationUnknown { login }),
    }
}

fn contains(among: &[String], wanted: &str) -> bool {
    let wanted = wanted.to_lowercase();
    among.iter().any(|one| one.to_lowercase() == wanted)
}
