//! The process that sends notifications: started by a hook or a watch, detached, and never waited for.
//!
//! It has a session of its own, no descriptor and no variable of the agent, so the agent neither waits for it nor counts
//! it as its own. Before it sends, it looks whether what it was started for is still so. *Crash*: one notification is
//! missing, and the next change is reported again.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_app::location::settings_and_store;
use tenure_app::open::{self, Context, Purpose};
use tenure_app::settings::notify::NotifyChannel;
use tenure_app::tmux::TmuxServer;
use tenure_core::event::{EventFilter, EventKind};
use tenure_core::notification::Reason;
use tenure_core::time::Timestamp;
use tenure_core::witness::TerminalPlace;
use tenure_host::{clock, descriptors, env, pause, system};
use tenure_service::ListRequest;
use tenure_service::answer::Problem;

use super::channel;
use super::edges::{of_state, states};
use super::event::Notification;
use super::ledger::{self, Ledger};
use super::rule::{Edge, SendDecision, Sent};
use super::terminal::Target;

/// How long after a death the next command still reports it.
const DEATH_IS_NEW_FOR: Duration = Duration::from_secs(60);
/// How many of them; the rest is in `ps`.
const MAX_DEATHS: usize = 8;
/// How long a session waits for a person before anyone is notified: most questions are answered by then.
const ASKS_AFTER: Duration = Duration::from_secs(10);
/// Longer than any order.
const MAX_LENGTH: u64 = 1 << 16;
/// What a sender inherits: how to reach the store and the desktop, and nothing of an agent.
const KEPT: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "TZ",
    "LANG",
    "LC_ALL",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "PGPASSWORD",
    "PGPASSFILE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "TENURE_HOME",
    "TENURE_STORE",
    "TENURE_TMUX",
    "TENURE_TEST",
];

/// What a sender is started for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub reason: String,
    /// When it was so.
    pub at: Timestamp,
    /// The id of the session.
    pub session: Option<String>,
    /// The event, if it comes from the log and so cannot change.
    pub event: Option<Notification>,
    /// The terminal of the watch that starts it.
    pub terminal: Option<Target>,
}

impl Order {
    /// For a state that the sender looks at itself.
    pub fn state(reason: Reason, session: Option<String>) -> Self {
        Self {
            reason: reason.as_str().to_owned(),
            at: clock::wall(),
            session,
            event: None,
            terminal: None,
        }
    }

    /// For an event that a watch found.
    pub fn of(event: &Notification, terminal: Option<&Target>) -> Option<Self> {
        let reason = event.reason()?;
        let session = event.session.as_ref().map(|session| session.id.clone());
        Some(Self {
            event: Some(event.clone()).filter(|_| reason.is_logged() || reason.is_outage()),
            terminal: terminal.cloned(),
            ..Self::state(reason, session)
        })
    }
}

/// Whether a channel reports this that needs no terminal: a hook and a command have none for it.
pub fn wants_alone(channels: &[NotifyChannel], reason: Reason) -> bool {
    channels
        .iter()
        .any(|channel| reports_alone(channel, reason))
}

fn reports_alone(channel: &NotifyChannel, reason: Reason) -> bool {
    channel.on.contains(&reason) && !channel.needs_terminal()
}

/// Starts a sender for each death that was just proved, by this command or another one, and that none has looked at.
pub fn start_for_deaths(context: &mut Context) -> io::Result<()> {
    let filter = EventFilter {
        kind: Some(EventKind::Died),
        since: Some(clock::wall().minus(DEATH_IS_NEW_FOR)),
        limit: MAX_DEATHS,
        ..EventFilter::default()
    };
    // If the store does not answer any more, the command has reported why.
    let Ok(found) = context.service().log(&filter, None) else {
        return Ok(());
    };
    if found.value.items.is_empty() {
        return Ok(());
    }
    let sent = ledger::sent(&context.dir);
    for died in found.value.items {
        let Some(session) = died.session else {
            continue;
        };
        let is_new = |channel: &NotifyChannel| {
            let seen = sent.get(&channel.name);
            !seen.is_some_and(|sent| sent.has_seen(Reason::Died, &session.id, died.at))
        };
        let mut channels = context.settings.notify.iter();
        if channels.any(|channel| reports_alone(channel, Reason::Died) && is_new(channel)) {
            start(&Order::state(Reason::Died, Some(session.id)))?;
        }
    }
    Ok(())
}

/// Whether one of the channels reports this.
pub fn wants(channels: &[NotifyChannel], reason: Reason) -> bool {
    channels.iter().any(|channel| channel.on.contains(&reason))
}

/// Starts a sender. It is not waited for: it goes on alone once it has its order.
pub fn start(order: &Order) -> io::Result<()> {
    let mut child = command("start")?.spawn()?;
    give(&mut child, order)?;
    Ok(())
}

/// The same for a process that stays, which must not collect ended children.
pub fn start_and_stay(order: &Order) -> io::Result<()> {
    let mut child = command("start")?.spawn()?;
    give(&mut child, order)?;
    child.wait().map(drop)
}

fn give(child: &mut std::process::Child, order: &impl Serialize) -> io::Result<()> {
    match child.stdin.take() {
        Some(mut pipe) => pipe.write_all(&serde_json::to_vec(order)?),
        None => Ok(()),
    }
}

/// This program at a stage, with an environment of its own.
pub(super) fn command(stage: &str) -> io::Result<Command> {
    let mut command = Command::new(env::installed()?);
    command
        .args(["__notify", stage])
        .env_clear()
        .envs(KEPT.iter().filter_map(|name| Some((name, env::var(name)?))))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

/// What this program does when it was started as one of the stages.
pub fn main(stage: &str) -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().take(MAX_LENGTH).read_to_end(&mut text)?;
    if stage == "test" {
        let outcome = send_test(&serde_json::from_slice(&text)?);
        return io::stdout().write_all(&serde_json::to_vec(&outcome)?);
    }
    let order: Order = serde_json::from_slice(&text)?;
    if stage == "start" {
        // No descriptor is passed on but the three standard ones.
        descriptors::pass_on_only(-1)?;
        if rustix::process::setsid().is_err() {
            // It leads a session already.
        }
        let mut child = command("send")?.spawn()?;
        return give(&mut child, &order);
    }
    send(&order).map_err(|problem| io::Error::other(problem.message))
}

/// A test of one channel.
#[derive(Debug, Serialize, Deserialize)]
struct Test {
    channel: String,
    event: Notification,
    terminal: Option<Target>,
}

/// Sends a test as a sender would: from a process with the same variables and directory.
pub fn test(channel: &str, event: &Notification) -> Result<(), String> {
    let test = Test {
        channel: channel.to_owned(),
        event: event.clone(),
        terminal: Target::own(),
    };
    let run = || {
        let mut child = command("test")?.stdout(Stdio::piped()).spawn()?;
        give(&mut child, &test)?;
        child.wait_with_output()
    };
    let told = run().map_err(|error| format!("no sender can be started: {error}"))?;
    let outcome = serde_json::from_slice(&told.stdout);
    outcome.unwrap_or_else(|_| Err(format!("the sender failed: {}", told.status)))
}

fn send_test(test: &Test) -> Result<(), String> {
    let (settings, place) = settings_and_store().map_err(|problem| problem.message)?;
    let mut channels = settings.notify.iter();
    let channel = channels.find(|channel| channel.name == test.channel);
    let channel = channel.ok_or("it is not configured any more")?;
    channel::send(channel, &test.event, test.terminal.as_ref())?;
    // It works, so what went wrong before is over; a test creates nothing.
    if place.dir().join("notify").is_dir()
        && let Ok(ledger) = Ledger::open(place.dir())
        && ledger.note(&channel.name, &Ok(())).is_err()
    {
        // The state directory is full or gone, which other commands report.
    }
    Ok(())
}

/// What is sent, and what tells it from the next of its kind.
struct EdgeNotification {
    event: Notification,
    edge: Edge,
}

fn send(order: &Order) -> Result<(), Problem> {
    let Ok(reason) = Reason::parse(&order.reason) else {
        return Ok(());
    };
    // A terminal belongs to one watch, and nobody else can write there.
    let is_ours = |channel: &&NotifyChannel| {
        channel.on.contains(&reason) && (!channel.needs_terminal() || order.terminal.is_some())
    };
    let (settings, place) = settings_and_store()?;
    let channels: Vec<&NotifyChannel> = settings.notify.iter().filter(is_ours).collect();
    if channels.is_empty() {
        return Ok(());
    }
    if reason == Reason::Asks {
        sleep_until(order.at.plus(ASKS_AFTER));
    }
    // That the store is away is reported without it, and no more once it answers.
    let context = match open::open(Purpose::Look) {
        Ok(mut context) if reason == Reason::Store => {
            if context.service().list(&ListRequest::default()).is_ok() {
                return Ok(());
            }
            None
        }
        Ok(context) => Some(context),
        Err(_) if reason == Reason::Store => None,
        Err(problem) => return Err(problem),
    };
    let ledger = Ledger::open(place.dir()).ok();
    if ledger.is_none() && reason != Reason::Store {
        return Ok(());
    }
    Sending {
        order,
        reason,
        context,
        ledger,
    }
    .run(channels)
}

/// An order while it is carried out.
struct Sending<'a> {
    order: &'a Order,
    reason: Reason,
    /// None if the store is away.
    context: Option<Context>,
    /// None if the state directory is away too.
    ledger: Option<Ledger>,
}

impl Sending<'_> {
    fn run(mut self, channels: Vec<&NotifyChannel>) -> Result<(), Problem> {
        let mut open = channels;
        let mut waited = false;
        while let Some(found) = self.look(waited)? {
            if let Some(context) = &mut self.context {
                if is_seen(context, &found) {
                    break;
                }
                // Bytes there would end up on the screen that the agent draws, or in what it reads.
                let terminal = self.order.terminal.as_ref();
                if terminal.is_some_and(|own| is_an_agents(context, own)) {
                    open.retain(|channel| !channel.needs_terminal());
                }
            }
            let (later, next) = self.report(&open, &found, waited);
            if later.is_empty() {
                return Ok(());
            }
            sleep_until(next);
            (open, waited) = (later, true);
        }
        self.settle(&open);
        Ok(())
    }

    /// Sends on the channels that may be used now; returns those to look again for, and when.
    fn report<'c>(
        &self,
        open: &[&'c NotifyChannel],
        found: &EdgeNotification,
        waited: bool,
    ) -> (Vec<&'c NotifyChannel>, Timestamp) {
        let (mut due, mut later, mut next) = (Vec::new(), Vec::new(), clock::wall());
        let (mut digests, mut unkept) = (Vec::new(), Vec::new());
        for channel in open {
            match self.decide(channel, &found.edge, waited) {
                Ok(SendDecision::Send) => due.push(*channel),
                Ok(SendDecision::Wait(until)) => {
                    next = next.max(until);
                    later.push(*channel);
                }
                Ok(SendDecision::Digest(at)) => digests.push((channel, at)),
                Ok(SendDecision::Skip) => {}
                Err(why) => unkept.push((channel, why)),
            }
        }
        // Without a ledger, only what a watch sends once a day by itself: twice is worse than late.
        if self.reason == Reason::Store {
            due.extend(unkept.iter().map(|(channel, _)| **channel));
        }
        self.send_each(&due, &found.event);
        for (channel, why) in unkept {
            self.note(channel, &Err(why));
        }
        for (channel, at) in digests {
            sleep_until(at);
            let counts = self.change(channel, Sent::take_digest);
            self.send_digest(channel, counts.unwrap_or_default());
        }
        (later, next)
    }

    /// Decides about a channel. A digest that nobody sent in time goes out first.
    fn decide(
        &self,
        channel: &NotifyChannel,
        edge: &Edge,
        waited: bool,
    ) -> Result<SendDecision, String> {
        let (overdue, verdict) = self.change(channel, |sent| {
            // Under the lock, so that nobody finds what was sent later than now, as after a clock that went back.
            let now = clock::wall();
            (sent.overdue(now), sent.decide(edge, now, waited))
        })?;
        self.send_digest(channel, overdue);
        Ok(verdict)
    }

    fn change<T>(
        &self,
        channel: &NotifyChannel,
        act: impl FnOnce(&mut Sent) -> T,
    ) -> Result<T, String> {
        let ledger = self.ledger.as_ref().ok_or("the state directory is away")?;
        let changed = ledger.change(&channel.name, act);
        changed.map_err(|error| format!("what was sent cannot be kept: {error}"))
    }

    fn send_digest(&self, channel: &NotifyChannel, counts: BTreeMap<String, usize>) {
        if !counts.is_empty() {
            self.send_each(&[channel], &Notification::digest(counts, clock::wall()));
        }
    }

    /// Sends on all channels at the same time, so that one that hangs holds up no other.
    fn send_each(&self, channels: &[&NotifyChannel], event: &Notification) {
        let terminal = self.order.terminal.as_ref();
        let ledger = self.ledger.as_ref();
        std::thread::scope(|scope| {
            for channel in channels {
                scope.spawn(|| note(ledger, channel, &channel::send(channel, event, terminal)));
            }
        });
    }

    fn note(&self, channel: &NotifyChannel, outcome: &Result<(), String>) {
        note(self.ledger.as_ref(), channel, outcome);
    }

    /// Keeps of a death that there is nothing to report, so that no other command looks again.
    fn settle(&self, channels: &[&NotifyChannel]) {
        if let (Reason::Died, Some(id)) = (self.reason, &self.order.session) {
            for channel in channels {
                let settle = |sent: &mut Sent| sent.settle(self.reason, id, clock::wall());
                if self.change(channel, settle).is_err() {
                    // The next command looks again.
                }
            }
        }
    }

    /// What is so now; none if it is over.
    fn look(&mut self, waited: bool) -> Result<Option<EdgeNotification>, Problem> {
        let (order, reason) = (self.order, self.reason);
        if let Some(event) = &order.event {
            let session = order.session.clone().unwrap_or_default();
            // Two entries of the log are two events: both are sent, or counted in a digest.
            let of = match event.cursor {
                Some(cursor) => format!("{session} {cursor}"),
                None => session,
            };
            let since = match event.cursor {
                Some(cursor) => cursor.to_string(),
                None => event.at.to_string(),
            };
            let began = reason.is_outage().then_some(event.at);
            let edge = Edge {
                reason,
                of,
                since,
                began,
            };
            let event = event.clone();
            return Ok(Some(EdgeNotification { event, edge }));
        }
        let Some(context) = &mut self.context else {
            return Ok(None);
        };
        let listed = context.service().list(&ListRequest::default())?;
        let mut sessions = listed.value.items.iter();
        let Some(session) = sessions.find(|session| order.session.as_ref() == Some(&session.id))
        else {
            return Ok(None);
        };
        let began = session.activity_since.filter(|_| session.host.is_none());
        let is_early = |began| !has_waited(began, order.at, clock::wall(), waited);
        if reason == Reason::Asks && began.is_some_and(is_early) {
            return Ok(None);
        }
        let found = states(session);
        let since = found.into_iter().find(|(state, _)| *state == reason);
        Ok(since.map(|(_, since)| EdgeNotification {
            event: of_state(session, reason, clock::wall()),
            edge: Edge {
                reason,
                of: session.id.clone(),
                since,
                began: None,
            },
        }))
    }
}

/// Whether a wait is the one that a sender was started for, or is as long. A later one has a sender of its own.
fn has_waited(began: Timestamp, ordered: Timestamp, now: Timestamp, waited: bool) -> bool {
    began
        <= if waited {
            now.minus(ASKS_AFTER)
        } else {
            ordered
        }
}

fn note(ledger: Option<&Ledger>, channel: &NotifyChannel, outcome: &Result<(), String>) {
    if let Some(ledger) = ledger
        && ledger.note(&channel.name, outcome).is_err()
    {
        // The state directory is full or gone, which other commands report.
    }
}

fn sleep_until(at: Timestamp) {
    pause::sleep(clock::wall().age_at(at));
}

/// Whether a session reads or writes this terminal.
fn is_an_agents(context: &mut Context, own: &Target) -> bool {
    let Ok(listed) = context.service().list(&ListRequest::default()) else {
        return true;
    };
    let device = Path::new(&own.path);
    let mut pids = listed
        .value
        .items
        .iter()
        .filter_map(|session| session.process.pid);
    pids.any(|pid| (0..3).any(|fd| system::descriptor(pid, fd).is_some_and(|name| name == device)))
}

/// Whether its person looks at its pane now.
fn is_seen(context: &mut Context, found: &EdgeNotification) -> bool {
    let Some(session) = &found.event.session else {
        return false;
    };
    let window = context.service().window(&session.id);
    let place = window.ok().and_then(|window| window.value.place);
    let Some(TerminalPlace::Tmux { socket, pane, .. }) = place else {
        return false;
    };
    let server = TmuxServer::look_at_all(&[&socket]).pop().flatten();
    server.is_some_and(|server| server.pane(&pane).is_some_and(|pane| pane.is_seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_reported_only_after_ten_seconds_of_its_own() {
        let at = |seconds: u64| Timestamp(1_000_000_000).plus(Duration::from_secs(seconds));
        // The sender of the wait that began at 0 looks at 10.
        assert!(has_waited(at(0), at(1), at(11), false));
        assert!(!has_waited(at(8), at(1), at(11), false));
        // One that had to wait for a minute reports another question, if it is as old.
        assert!(has_waited(at(50), at(1), at(60), true));
        assert!(!has_waited(at(51), at(1), at(60), true));
    }
}
