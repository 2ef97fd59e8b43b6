//! The thread that answers commands and wakes up when a watched process exits. It never waits for the store.
//!
//! A connection has a short time to ask, and asks one line. What is too long, of another version or of another user is
//! refused, and the connection closed; nothing that a peer does can hold up the others.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tenure_core::id::Ticket;
use tenure_core::ignore::Ignore;
use tenure_core::notice::Channel;
use tenure_core::policy::Policy;
use tenure_core::process::Process;
use tenure_core::version::is_newer;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::{clock, peer};

use super::events::Events;
use super::renewal::{RenewalCommand, SharedState};
use tenure_app::keeper::wire::{
    KeeperCommand, KeeperRequest, MAX_LENGTH, Response, VERSION, write_line,
};

/// How many commands may be connected at once.
const MAX_COUNT: usize = 512;
/// How long a connection may take to ask.
const ASKS_WITHIN: Duration = Duration::from_secs(5);

/// How the listener was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerEnd {
    /// A command asked for it, or there was nothing to do for a while.
    Ended,
    /// For a newer program.
    MadeWay,
}

struct Connection {
    stream: UnixStream,
    asked: Vec<u8>,
    since: Instant,
    /// Whether the keeper looks around when this one leaves.
    looks: bool,
    /// The ticket of a waiter that is told when it may be its turn.
    waits: Option<Ticket>,
}

/// Passes what a command says on to the store; what the keeper itself says comes first.
pub type PassOn = Box<dyn Fn(UnixStream, bool)>;

pub struct Listener {
    listener: UnixListener,
    pass_on: PassOn,
    /// Readable when the other thread has news.
    woken: UnixStream,
    shared: SharedState,
    commands: Sender<RenewalCommand>,
    connections: Vec<Connection>,
    watches: Vec<(Process, ProcessWatch)>,
    answered: u64,
    events: Events,
    /// How long there may be nothing to watch before the keeper ends.
    idle: Duration,
    busy_at: Instant,
}

impl Listener {
    pub fn new(
        listener: UnixListener,
        pass_on: PassOn,
        woken: UnixStream,
        shared: SharedState,
        commands: Sender<RenewalCommand>,
        events: Events,
        policy: &Policy,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok(Self {
            listener,
            pass_on,
            woken,
            shared,
            commands,
            connections: Vec::new(),
            watches: Vec::new(),
            answered: 0,
            events,
            idle: policy.host_lease,
            busy_at: clock::instant(),
        })
    }

    /// Answers until it is asked to close.
    pub fn run(&mut self) -> io::Result<ListenerEnd> {
        loop {
            let ready = self.wait()?;
            let exited: Vec<bool> = ready.exits;
            if exited.contains(&true) {
                let mut exited = exited.iter();
                self.watches.retain(|_| exited.next() != Some(&true));
                self.command(RenewalCommand::Exit);
            }
            if ready.woken {
                self.catch_up();
            }
            if let Some(closed) = self.serve(&ready.connections) {
                return Ok(closed);
            }
            if ready.accepts {
                self.accept();
            }
            if self.is_idle() {
                self.command(RenewalCommand::Stop);
                return Ok(ListenerEnd::Ended);
            }
        }
    }

    /// Ends the other thread when this one cannot go on.
    pub fn give_up(&self) {
        self.command(RenewalCommand::MakeWay);
    }

    fn command(&self, command: RenewalCommand) {
        self.commands
            .send(command)
            .ignore("the other thread has ended, and the process ends next");
    }

    fn is_idle(&mut self) -> bool {
        if !self.watches.is_empty() || !self.connections.is_empty() {
            self.busy_at = clock::instant();
        }
        clock::instant().duration_since(self.busy_at) >= self.idle
    }

    /// Watches what the store says is here.
    fn catch_up(&mut self) {
        let mut drained = [0; 64];
        while matches!(self.woken.read(&mut drained), Ok(read) if read > 0) {}
        let (answered, processes, woken) = {
            let mut known = self.shared.lock();
            let woken = std::mem::take(&mut known.woken);
            (known.answered, known.processes.clone(), woken)
        };
        for ticket in woken {
            let mut waiters = self.connections.iter_mut();
            if let Some(waiter) = waiters.find(|connection| connection.waits == Some(ticket)) {
                waiter.say(&Response::Turn);
            }
        }
        if answered == self.answered {
            return;
        }
        self.answered = answered;
        self.watches
            .retain(|(process, _)| processes.contains(process));
        let mut some_gone = false;
        for process in processes {
            if self.watches.iter().any(|(watched, _)| *watched == process) {
                continue;
            }
            match ProcessWatch::open(&process) {
                Some(watch) => self.watches.push((process, watch)),
                // It exited between the renewal and now.
                None => some_gone = true,
            }
        }
        if some_gone {
            self.command(RenewalCommand::Exit);
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let own = rustix::process::geteuid().as_raw();
            let is_welcome = peer::uid_of(&stream).is_ok_and(|uid| uid == own || uid == 0);
            if !is_welcome
                || self.connections.len() >= MAX_COUNT
                || stream.set_nonblocking(true).is_err()
            {
                continue;
            }
            self.connections.push(Connection {
                stream,
                asked: Vec::new(),
                since: clock::instant(),
                looks: false,
                waits: None,
            });
        }
    }

    /// Reads requests and answers them. Returns how the listener closes, if one asked for that.
    fn serve(&mut self, ready: &[bool]) -> Option<ListenerEnd> {
        let mut looks = false;
        let waiters = |connections: &[Connection]| -> BTreeSet<Ticket> {
            connections
                .iter()
                .filter_map(|connection| connection.waits)
                .collect()
        };
        let before = waiters(&self.connections);
        let mut room = Room {
            shared: &self.shared,
            pass_on: &self.pass_on,
            events: &self.events,
            closed: None,
        };
        let mut ready = ready.iter().copied();
        self.connections.retain_mut(|connection| {
            let stays = if ready.next().unwrap_or(false) {
                connection.read_request(&mut room)
            } else {
                connection.looks
                    || connection.waits.is_some()
                    || connection.since.elapsed() < ASKS_WITHIN
            };
            looks |= connection.looks && !stays;
            stays
        });
        let closed = room.closed;
        let waiting = waiters(&self.connections);
        if waiting != before {
            self.shared.lock().waiting = waiting;
            self.command(RenewalCommand::Lines);
        }
        if looks {
            self.command(RenewalCommand::Look);
        }
        if let Some(closed) = closed {
            self.command(match closed {
                ListenerEnd::Ended => RenewalCommand::Stop,
                ListenerEnd::MadeWay => RenewalCommand::MakeWay,
            });
        }
        closed
    }

    fn wait(&self) -> io::Result<PollResult> {
        let fds = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut all = vec![fds(self.listener.as_fd()), fds(self.woken.as_fd())];
        all.extend(self.watches.iter().map(|(_, watch)| fds(watch.as_fd())));
        all.extend(
            self.connections
                .iter()
                .map(|connection| fds(connection.stream.as_fd())),
        );
        let limit = if self.connections.is_empty() {
            self.idle
        } else {
            ASKS_WITHIN.min(self.idle)
        };
        let limit = Timespec::try_from(limit).ok();
        loop {
            match poll(&mut all, limit.as_ref()) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut ready = all.iter().map(|fd| !fd.revents().is_empty());
        Ok(PollResult {
            accepts: ready.next().unwrap_or(false),
            woken: ready.next().unwrap_or(false),
            exits: ready.by_ref().take(self.watches.len()).collect(),
            connections: ready.collect(),
        })
    }
}

/// What answers are made of.
struct Room<'a> {
    shared: &'a SharedState,
    pass_on: &'a PassOn,
    events: &'a Events,
    closed: Option<ListenerEnd>,
}

struct PollResult {
    accepts: bool,
    woken: bool,
    exits: Vec<bool>,
    connections: Vec<bool>,
}

impl Connection {
    /// Reads on; returns whether the connection stays open.
    fn read_request(&mut self, room: &mut Room<'_>) -> bool {
        let mut some = [0; 4096];
        let mut left = false;
        loop {
            match self.stream.read(&mut some) {
                Ok(0) => {
                    left = true;
                    break;
                }
                Ok(read) => self.asked.extend_from_slice(&some[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
            if self.asked.len() > MAX_LENGTH {
                self.say(&Response::Refused(format!(
                    "a request may have at most {MAX_LENGTH} bytes"
                )));
                return false;
            }
        }
        let Some(end) = self.asked.iter().position(|byte| *byte == b'\n') else {
            return !left;
        };
        let line: Vec<u8> = self.asked.drain(..=end).collect();
        self.answer(&line, room) && !left
    }

    fn answer(&mut self, line: &[u8], room: &mut Room<'_>) -> bool {
        let ask = match understood(line) {
            Ok(ask) => ask,
            Err(why) => {
                self.say(&Response::Refused(why));
                return false;
            }
        };
        match ask {
            KeeperCommand::Status => {
                let status = Box::new(room.shared.lock().status.clone());
                self.say(&Response::Status(status));
            }
            KeeperCommand::LookAfterwards { version } => {
                self.looks = true;
                if is_newer(&version, env!("CARGO_PKG_VERSION")) {
                    room.closed = Some(ListenerEnd::MadeWay);
                }
                return true;
            }
            KeeperCommand::Store => {
                // This connection ends here, and goes on there.
                let own = std::process::id();
                let is_own = peer::pid_of(&self.stream).is_ok_and(|pid| pid == own);
                if let Ok(stream) = self.stream.try_clone() {
                    (room.pass_on)(stream, is_own);
                }
            }
            KeeperCommand::Event(request) => {
                // The answer comes from the thread that records it.
                if let Ok(stream) = self.stream.try_clone() {
                    room.events.record(request, stream);
                }
            }
            KeeperCommand::Wait { ticket } => {
                self.waits = Some(Ticket(ticket));
                self.say(&Response::Accepted);
                return true;
            }
            KeeperCommand::Printed { whose, for_model } => {
                let channel = if for_model {
                    Channel::Hook
                } else {
                    Channel::Terminal
                };
                room.events.printed(whose, channel);
                self.say(&Response::Accepted);
            }
            KeeperCommand::Stop => {
                self.say(&Response::Accepted);
                room.closed = Some(ListenerEnd::Ended);
            }
        }
        false
    }

    fn say(&mut self, response: &Response) {
        // An answer fits into the buffer of a socket that has had none.
        write_line(&mut self.stream, response).ignore("it did not wait for the answer");
    }
}

fn understood(line: &[u8]) -> Result<KeeperCommand, String> {
    #[derive(serde::Deserialize)]
    struct Version {
        v: u32,
    }
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { v: VERSION }) => {}
        Ok(Version { v }) => {
            return Err(format!("this keeper speaks version {VERSION}, not {v}"));
        }
        Err(_) => return Err("a request is one line of JSON with v and ask".to_owned()),
    }
    let request = serde_json::from_slice::<KeeperRequest>(line);
    request
        .map(|request| request.ask)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_another_version_is_refused_by_its_version() {
        assert_eq!(
            understood(br#"{"v":1,"ask":"status"}"#),
            Ok(KeeperCommand::Status)
        );
        let other = understood(br#"{"v":2,"ask":"dance"}"#);
        assert_eq!(other, Err("this keeper speaks version 1, not 2".to_owned()));
        assert!(understood(br#"{"v":1,"ask":"dance"}"#).is_err());
        assert!(understood(b"\xff").is_err());
    }
}
