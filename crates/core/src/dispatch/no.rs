//! Why an event starts nothing, or a rule does not match.

use crate::forge::{Association, EventKind};
use crate::key::Key;

/// A reason that a person understands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum No {
    #[error("{repo} is not a repository of forge {forge} in the settings")]
    UnknownRepository { repo: String, forge: String },
    #[error("{} is about the repository as a whole", .0.as_str())]
    NoItem(EventKind),
    #[error("the repository was deleted; its jobs wait until a person retries them")]
    Deleted,
    #[error(
        "{repo} has the id {id} at its forge now: it is not the repository whose items are known"
    )]
    ReplacedRepository { repo: String, id: u64 },
    #[error("{login} is the account that tenure writes as")]
    OwnAccount { login: String },
    #[error(
        "tenure wrote this text itself (it has the line {})",
        crate::forge::text::MARKER
    )]
    OwnText,
    #[error("{actor} edited a text of {author}; only an edit by its author counts")]
    EditedByOther { actor: String, author: String },
    #[error("this text has started a run before; editing it does not start another")]
    EditedAfterTrigger,
    #[error("no rule matches")]
    NoRule,
    #[error("a reset was asked for by {login}, whom no rule of this repository lets start a run")]
    ResetRefused { login: String },
    #[error("a stop was asked for by {login}, whom no rule of this repository lets start a run")]
    StopRefused { login: String },
    #[error("the rule is for {0}")]
    OtherRepository(String),
    #[error("its events are {}", names(.0))]
    OtherEvent(Vec<EventKind>),
    #[error("{login} is not one of its authors")]
    NotAnAuthor { login: String },
    #[error("the association of {login} with this repository is {}, and the rule asks for {}", .found.as_str(), associations(.wanted))]
    OtherAssociation {
        login: String,
        found: Association,
        wanted: Vec<Association>,
    },
    #[error("{login} may not write to this repository, and the rule asks for {}", associations(.wanted))]
    NotPermitted {
        login: String,
        wanted: Vec<Association>,
    },
    #[error("the rule names {login}, who may not write to this repository")]
    NamedNotPermitted { login: String },
    #[error(
        "the association of {login} with this repository is unknown; set url and token_file of the forge so that tenure can ask"
    )]
    AssociationUnknown { login: String },
    #[error("it does not have the label {0}")]
    NoLabel(String),
    #[error("another label was added, not {0}")]
    OtherLabel(String),
    #[error(
        "the label {0} may have been there before: this forge does not say which label was added, and this item has started a run"
    )]
    LabelBefore(String),
    #[error("{0} is not mentioned")]
    NoMention(String),
    #[error("it is not assigned to {0}")]
    NoAssignee(String),
    #[error("no review was requested from {0}")]
    NoReviewer(String),
    #[error("branch {found} does not match {wanted}")]
    OtherBranch { found: String, wanted: String },
    #[error("the event names no branch, and the rule asks for {0}")]
    NoBranch(String),
    #[error("its code is from the fork {0}, and the rule has no wrap to run it under")]
    Fork(String),
    #[error(
        "its code was written by {author}, whom the rule does not let start a run, and the rule has no wrap to run it under"
    )]
    ForeignCode { author: String },
    #[error(
        "the event does not say where the code of {item} is from; set url and token_file of the forge so that tenure can ask, or give the rule a wrap"
    )]
    UnknownCode { item: Key },
    #[error("rule {0} matched first, and does not have continue = true")]
    Earlier(String),
}

impl No {
    /// Whether someone else, or other code, would have started a run.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            No::EditedByOther { .. }
                | No::EditedAfterTrigger
                | No::ReplacedRepository { .. }
                | No::ResetRefused { .. }
                | No::StopRefused { .. }
                | No::NotAnAuthor { .. }
                | No::OtherAssociation { .. }
                | No::NotPermitted { .. }
                | No::NamedNotPermitted { .. }
                | No::AssociationUnknown { .. }
                | No::Fork(_)
                | No::ForeignCode { .. }
                | No::UnknownCode { .. }
        )
    }

    /// For programs.
    pub fn kind(&self) -> &'static str {
        match self {
            No::UnknownRepository { .. } => "unknown_repository",
            No::NoItem(_) => "no_item",
            No::Deleted => "deleted",
            No::ReplacedRepository { .. } => "replaced_repository",
            No::OwnAccount { .. } => "own_account",
            No::OwnText => "own_text",
            No::EditedByOther { .. } => "edited_by_other",
            No::EditedAfterTrigger => "edited_after_trigger",
            No::NoRule => "no_rule",
            No::ResetRefused { .. } => "reset_refused",
            No::StopRefused { .. } => "stop_refused",
            No::OtherRepository(_) => "other_repository",
            No::OtherEvent(_) => "other_event",
            No::NotAnAuthor { .. } => "not_an_author",
            No::OtherAssociation { .. } => "other_association",
            No::NotPermitted { .. } => "not_permitted",
            No::NamedNotPermitted { .. } => "named_not_permitted",
            No::AssociationUnknown { .. } => "association_unknown",
            No::NoLabel(_) => "no_label",
            No::OtherLabel(_) => "other_label",
            No::LabelBefore(_) => "label_before",
            No::NoMention(_) => "no_mention",
            No::NoAssignee(_) => "no_assignee",
            No::NoReviewer(_) => "no_reviewer",
            No::OtherBranch { .. } => "other_branch",
            No::NoBranch(_) => "no_branch",
            No::Fork(_) => "fork",
            No::ForeignCode { .. } => "foreign_code",
            No::UnknownCode { .. } => "unknown_code",
            No::Earlier(_) => "earlier_rule",
        }
    }
}

fn names(kinds: &[EventKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    names.join(", ")
}

fn associations(wanted: &[Association]) -> String {
    let names: Vec<&str> = wanted.iter().map(|one| one.as_str()).collect();
    names.join(" or ")
}
