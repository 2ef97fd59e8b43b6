//! What agents' own files and terminals report about sessions, combined for the service.
//!
//! Everything here is read on demand, is bounded in size and time, and may be missing: a file that
//! is absent or not understood gives no answer. Nothing is stored but the windows of tmux, for later.

pub mod chat;
mod commands;
pub mod kept;
pub mod registry;
mod terminal;
pub mod titles;
mod windowless;

use std::path::PathBuf;

use tenure_agents::turn_records::SOURCE;
use tenure_core::conversation::fitness::Existence;
use tenure_core::witness::{OwnReport, Question, StoredConversation, Subject, Testimony, Witness};

use self::terminal::Places;
use crate::{background, window_memory};

/// The agents and terminals of this machine.
#[derive(Debug, Default)]
pub struct Witnesses {
    /// The state directory in which windows are remembered, if any.
    pub dir: Option<PathBuf>,
}

impl Witness for Witnesses {
    fn testify(&self, about: &[Subject], question: Question) -> Vec<Testimony> {
        let whole = question == Question::Whole;
        let places = if whole {
            terminal::places(about)
        } else {
            Places::default()
        };
        if let Some(dir) = &self.dir {
            window_memory::remember(dir, &places.windows);
        }
        let mut places = places.each.into_iter();
        let testimony = about.iter().map(|subject| {
            let (place, attended_at) = places.next().unwrap_or_default();
            let title = whole.then(|| titles::own_title(subject)).flatten();
            if subject.is_over {
                return Testimony {
                    own: with_title(None, title),
                    stopped_at: background::stopped_at(subject),
                    ..Testimony::default()
                };
            }
            let window = whole.then(|| windowless::place(subject)).flatten();
            Testimony {
                own: with_title(own_word(subject), title),
                place: window.or(place),
                attended_at,
                runs_since: commands::newest(subject),
                stopped_at: None,
            }
        });
        testimony.collect()
    }

    fn have(&self, kept: &[StoredConversation]) -> Vec<Existence> {
        kept::look(kept)
    }
}

/// What the agent's own files report about its turn.
fn own_word(subject: &Subject) -> Option<OwnReport> {
    match registry::own_word(subject) {
        Some(registry) => Some(chat::completed(registry, subject)),
        None => chat::own_word(subject),
    }
}

/// Combines what the agent's files report: its activity, and its title.
fn with_title(word: Option<OwnReport>, title: Option<String>) -> Option<OwnReport> {
    match (word, title) {
        (Some(word), title) => Some(OwnReport {
            title: word.title.or(title),
            ..word
        }),
        // It reports no activity, ever.
        (None, Some(title)) => Some(OwnReport {
            title: Some(title),
            ..OwnReport::empty(SOURCE, &[])
        }),
        (None, None) => None,
    }
}
