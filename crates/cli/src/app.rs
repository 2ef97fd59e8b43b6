//! The global options, and how a verb opens the store and shows its answer.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use tenure_app::keys::distinct_keys_here;
use tenure_app::open::{Context, Purpose};
use tenure_app::{location, mirror};
use tenure_core::key::Key;
use tenure_core::notice::{Channel, Notice};
use tenure_core::notification::Reason;
use tenure_core::reason::Reason as StatedReason;
use tenure_service::ActFor;
use tenure_service::answer::Problem;
use tenure_views::notify::sender;

use crate::exit::Exit;
use crate::output::{CliError, Output, Style, warn};

/// What a verb changes if it succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    Nothing,
    /// Only what the store already has: without a store there is nothing to change, and none is created.
    Known,
    /// Also what the store does not have yet.
    Anything,
}

impl From<bool> for Changes {
    fn from(changes: bool) -> Self {
        if changes {
            Changes::Anything
        } else {
            Changes::Nothing
        }
    }
}

/// The global options and what every verb needs.
pub struct App {
    /// How to show things.
    pub style: Style,
    pub session: Option<String>,
    /// `-v`.
    pub verbose: bool,
    /// What the verb changes if it succeeds.
    pub changes: Changes,
    /// The whole command line, for verbs that explain it.
    pub grammar: fn() -> clap::Command,
    /// Whether a store was opened that has mirrors to keep up to date.
    pub mirrored: Cell<bool>,
    /// Whether a store was opened whose user wants to know of deaths.
    pub notifies: Cell<bool>,
}

/// An open store that is left to the end of the process: freeing what SQLite holds costs more than a read.
pub struct UntilExit(Option<Context>);

/// It is there until the drop.
const THERE: &str = "only a drop takes it";

impl Deref for UntilExit {
    type Target = Context;

    fn deref(&self) -> &Context {
        self.0.as_ref().expect(THERE)
    }
}

impl DerefMut for UntilExit {
    fn deref_mut(&mut self) -> &mut Context {
        self.0.as_mut().expect(THERE)
    }
}

impl Drop for UntilExit {
    fn drop(&mut self) {
        if let Some(context) = self.0.take() {
            context.leave_to_exit();
        }
    }
}

impl App {
    /// The whole command line, for verbs that explain it.
    pub fn command(&self) -> clap::Command {
        (self.grammar)()
    }

    /// Opens the store that the settings name. A verb that only reads does not create one.
    pub fn open(&self) -> Result<Context, CliError> {
        self.open_for(match self.changes {
            Changes::Anything => Purpose::Write,
            Changes::Known => Purpose::Change,
            Changes::Nothing => Purpose::Read,
        })
    }

    /// The same for a verb that uses the store once and then ends.
    pub fn open_until_exit(&self) -> Result<UntilExit, CliError> {
        self.open().map(|context| UntilExit(Some(context)))
    }

    /// Opens the store and creates a missing one, whatever the verb usually changes.
    pub fn open_to_write(&self) -> Result<Context, CliError> {
        self.open_for(Purpose::Write)
    }

    fn open_for(&self, purpose: Purpose) -> Result<Context, CliError> {
        let mut context = tenure_app::open::open(purpose)?;
        self.mention_made(context.made.take().as_deref());
        if let Some(news) = context.news.take() {
            warn(format!("warning: {news}"));
        }
        if context.has_mirrors() {
            self.mirrored.set(true);
        }
        if sender::wants_alone(&context.settings.notify, Reason::Died) {
            self.notifies.set(true);
        }
        Ok(context)
    }

    /// If there is no store yet, checks what would fail before one is created.
    pub fn check_before_making(
        &self,
        check: impl FnOnce(&Context) -> Result<(), Problem>,
    ) -> Result<(), CliError> {
        let (_, place) = location::settings_and_store()?;
        if location::is_absent(&place) {
            check(&tenure_app::open::open(Purpose::Change)?)?;
        }
        Ok(())
    }

    /// Creates the state directory if it is missing, for a verb that stores other things in it.
    pub fn make_state_dir(&self) -> Result<(), CliError> {
        let made = location::make_state_dir()?;
        self.mention_made(made.as_deref());
        Ok(())
    }

    fn mention_made(&self, dir: Option<&Path>) {
        if let Some(dir) = dir.filter(|_| !self.style.json && !self.style.quiet) {
            warn(format!(
                "note: created the state directory {}",
                dir.display()
            ));
        }
    }

    /// Updates the mirrors of every session that changed, and mends those that were damaged.
    pub fn catch_up_mirrors(&self) {
        if !self.mirrored.take() {
            return;
        }
        // If the store does not open any more, the verb has reported why.
        if let Ok(mut context) = self.open() {
            for said in mirror::catch_up(&mut context) {
                warn(format!("warning: {said}"));
            }
        }
    }

    /// Lets a process of its own notify the user of the deaths that were just proved, by this command or another one. Each is
    /// sent once.
    pub fn notify_deaths(&self) {
        if !self.notifies.take() {
            return;
        }
        // If the store does not open any more, the verb has reported why.
        if let Ok(mut context) = self.open()
            && let Err(error) = sender::start_for_deaths(&mut context)
        {
            warn(format!("warning: cannot notify: {error}"));
        }
    }

    /// Shows an answer and records which notices were delivered.
    pub fn show(&self, shown: &Output) -> Exit {
        let showed = self.style.show(shown);
        self.delivered(&shown.notices, showed.channel);
        showed.end(self.changes != Changes::Nothing)
    }

    /// Shows a failure and records which notices were delivered.
    pub fn show_error(&self, failure: &CliError) -> Exit {
        let showed = self.style.show_error(failure);
        self.delivered(&failure.problem.notices, showed.channel);
        showed.end(false)
    }

    /// Records that notices were written to a channel. If that fails, they are delivered again.
    pub fn delivered(&self, notices: &[Notice], channel: Channel) {
        let lost = matches!(channel, Channel::Nowhere | Channel::Quiet);
        if notices.is_empty() || lost {
            return;
        }
        let kept = self.open().and_then(|mut context| {
            let kept = context.service().delivered(notices, channel);
            kept.map_err(CliError::from)
        });
        if let (Err(failure), true) = (kept, self.verbose) {
            warn(format!(
                "warning: these notices will be shown again: {}",
                failure.problem.message
            ));
        }
    }

    /// How many rows a list shows by default: all with `--json`, else `people`.
    pub fn limit(&self, asked: Option<usize>, people: usize) -> usize {
        let otherwise = if self.style.json { 0 } else { people };
        asked.unwrap_or(otherwise)
    }

    /// On whose behalf the caller acts.
    pub fn act_for(&self, reason: Option<&StatedReason>) -> ActFor {
        ActFor {
            session: self.session.clone(),
            reason: reason.cloned(),
        }
    }

    /// Reads a key, completing short forms from the repository of this directory.
    pub fn key(&self, typed: &str) -> Result<Key, CliError> {
        self.keys(&[typed.to_owned()])
            .map(|mut keys| keys.remove(0))
    }

    /// Reads several keys; fails if one is malformed.
    pub fn keys(&self, typed: &[String]) -> Result<Vec<Key>, CliError> {
        let read = distinct_keys_here(typed)?;
        if !self.style.json && !self.style.quiet {
            let notes = read.iter().filter_map(|one| one.note.as_ref());
            notes.for_each(|note| warn(format!("note: {note}")));
        }
        Ok(read.into_iter().map(|one| one.key).collect())
    }
}
