//! Notifications of what a process that stays sees. Each is sent once, however many of them see it: senders share what
//! was sent.

use std::io;
use std::path::Path;
use std::process::{Child, Stdio};

use tenure_app::location::settings_and_store;
use tenure_app::open::{Context, Purpose, open};
use tenure_app::settings::notify::NotifyChannel;
use tenure_core::ignore::Ignore;
use tenure_core::notification::Reason;
use tenure_service::ActFor;
use tenure_service::answer::Problem;
use tenure_service::view::SessionView;

use super::event::Notification;
use super::sender::{self, Order};
use super::terminal::Target;
use super::watch::{ResidentWatch, WatchScope, stand};

/// The reasons that at least one of these channels reports.
pub fn reasons(channels: &[NotifyChannel]) -> Vec<Reason> {
    let mut on: Vec<Reason> = channels.iter().flat_map(|one| one.on.clone()).collect();
    on.sort_unstable();
    on.dedup();
    on
}

/// The terminal of this process, if it may be written to. What an agent started writes to none: it may be the agent's own.
pub fn own_terminal(context: &mut Context) -> Option<Target> {
    let is_agents = context.service().own_session(&ActFor::default()).is_ok();
    Target::own().filter(|_| !is_agents)
}

/// Lets a process of its own send an event, if a channel wants it.
pub fn send(
    event: &Notification,
    channels: &[NotifyChannel],
    terminal: Option<&Target>,
) -> io::Result<()> {
    let reason = event.reason();
    let wanted = reason.filter(|reason| sender::wants(channels, *reason));
    match wanted.and_then(|_| Order::of(event, terminal)) {
        Some(order) => sender::start_and_stay(&order),
        None => Ok(()),
    }
}

/// Notifies of what a process sees that lists the sessions anyway. Without a channel it does nothing.
#[derive(Default)]
pub struct Notifier {
    standing: Option<ResidentWatch>,
    channels: Vec<NotifyChannel>,
    terminal: Option<Target>,
}

impl Notifier {
    /// Sends what is new in this list, and in the log.
    pub fn look(&mut self, context: &mut Context, sessions: &[SessionView]) -> Result<(), Problem> {
        if context.settings.notify.is_empty() {
            return Ok(());
        }
        let standing = match &mut self.standing {
            Some(standing) => standing,
            None => {
                self.channels.clone_from(&context.settings.notify);
                self.terminal = own_terminal(context);
                let on = reasons(&self.channels);
                let standing = ResidentWatch::begin(context, &on, &WatchScope::Machine)?;
                self.standing.insert(standing)
            }
        };
        let events = standing.look(context, sessions)?;
        events.iter().for_each(|event| self.send(event));
        Ok(())
    }

    /// The same when the store does not answer.
    pub fn away(&mut self, problem: &Problem) {
        let event = self
            .standing
            .as_mut()
            .and_then(|standing| standing.away(problem));
        event.iter().for_each(|event| self.send(event));
    }

    fn send(&self, event: &Notification) {
        send(event, &self.channels, self.terminal.as_ref()).ignore("the list shows the same");
    }
}

/// Starts the process that notifies of what happens to the sessions of this machine while a keeper or a dashboard's
/// server runs. It ends when nobody reads its output any more.
pub fn start_beside(store: Option<&str>, state: &Path) -> io::Result<Child> {
    let mut command = sender::command("stand")?;
    if let Some(store) = store {
        command.env("TENURE_STORE", store);
    }
    command
        .env("TENURE_HOME", state)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
}

/// What that process does.
pub fn stand_beside() -> Result<(), Problem> {
    // The keeper is not looked after: it ends this process.
    let mut context = open(Purpose::Look)?;
    let mut on = Reason::ALL.to_vec();
    on.push(Reason::Store);
    let emit = |_: &Context, event: &Notification| {
        // Read again each time: a keeper runs for weeks.
        if let Ok((settings, _)) = settings_and_store() {
            send(event, &settings.notify, None).ignore("`ps` shows the same");
        }
    };
    stand(&mut context, (&on, &WatchScope::Machine), true, || (), emit).map(drop)
}
