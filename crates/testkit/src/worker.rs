//! One worker process, as the test sees it: a socket for requests, a pidfd for signals.
//!
//! Every request has a deadline, so a worker that was stopped or killed makes the test fail, not
//! hang. After a request went unanswered no other is sent, because a late answer would be taken for
//! its answer.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::pinned::{self, PidSpace, Pinned};
use crate::place::TestRoot;
use crate::protocol::{ProcessOrder, Started, WorkerMode, WorkerReply, WorkerRequest};

use crate::terminal::Terminal;

/// How long a worker may take to answer, unless the test changes it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long the kernel may take to end a killed process.
const END: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct WorkerHandle {
    name: String,
    process: Pinned,
    /// The pid namespace in which it names what it starts, if not the test's.
    pids: Option<PidSpace>,
    connection: Mutex<BufReader<UnixStream>>,
    patience: Mutex<Duration>,
    /// Everything that it started and that may still run; ended with it.
    charges: Mutex<Vec<Arc<Pinned>>>,
    /// Its terminal, which hangs up when the master end closes.
    _terminal: Option<Terminal>,
}

impl WorkerHandle {
    /// A detached worker that leads its own process session.
    pub(crate) fn detached(
        place: &TestRoot,
        variables: &[(String, String)],
        name: &str,
        args: &[&str],
        terminal: Option<Terminal>,
    ) -> WorkerHandle {
        let (listener, socket) = listen(place);
        let mode = WorkerMode::Work {
            socket,
            lead: true,
            terminal: terminal.as_ref().map(|one| one.path().to_owned()),
        };
        let order = place.order_mode(&mode, name, args);
        let log = order.stderr.clone();
        let process = pin(place.launch(variables, order));
        WorkerHandle::accept(name, process, &listener, &log, terminal)
    }

    /// A worker that is a child of this one.
    pub(crate) fn nested(&self, place: &TestRoot, name: &str, args: &[&str]) -> WorkerHandle {
        let (listener, socket) = listen(place);
        let mode = WorkerMode::Work {
            socket,
            lead: false,
            terminal: None,
        };
        let order = place.order_mode(&mode, name, args);
        let log = order.stderr.clone();
        let process = self.pin(self.start(order).started());
        self.beside(WorkerHandle::accept(name, process, &listener, &log, None))
    }

    /// A worker that leads its own process session, in the pid namespace of this one.
    pub(crate) fn neighbour(&self, place: &TestRoot, name: &str, args: &[&str]) -> WorkerHandle {
        let (listener, socket) = listen(place);
        let mode = WorkerMode::Work {
            socket,
            lead: true,
            terminal: None,
        };
        let order = place.order_mode(&mode, name, args);
        let log = order.stderr.clone();
        let process = self.pin(self.orphan(order).started());
        self.beside(WorkerHandle::accept(name, process, &listener, &log, None))
    }

    /// The worker in a pid namespace that this program makes; `within` comes before the worker's own
    /// command line.
    pub(crate) fn in_namespace(
        place: &TestRoot,
        variables: &[(String, String)],
        program: &str,
        within: &[String],
    ) -> WorkerHandle {
        let (listener, socket) = listen(place);
        let mode = WorkerMode::Work {
            socket,
            lead: true,
            terminal: None,
        };
        let mut order = place.order_mode(&mode, "host", &[]);
        let own = std::mem::replace(&mut order.program, program.to_owned());
        order.argv0 = None;
        order.args = within.iter().cloned().chain([own]).collect();
        let log = order.stderr.clone();
        let process = pin(place.launch(variables, order));
        let mut worker = WorkerHandle::accept("host", process, &listener, &log, None);
        let peer = worker.peer();
        worker.pids = Some(PidSpace::of(peer).expect("it has just connected"));
        worker
    }

    /// The pid here of the process that serves.
    fn peer(&self) -> u32 {
        let connection = self.connection();
        let peer = rustix::net::sockopt::socket_peercred(connection.get_ref())
            .expect("a connected socket has a peer");
        peer.pid.as_raw_nonzero().get().cast_unsigned()
    }

    fn beside(&self, mut worker: WorkerHandle) -> WorkerHandle {
        worker.pids.clone_from(&self.pids);
        worker
    }

    pub(crate) fn pids(&self) -> Option<&PidSpace> {
        self.pids.as_ref()
    }

    /// Pins a process that this worker started.
    fn pin(&self, started: Started) -> Pinned {
        let pinned = match &self.pids {
            Some(pids) => Pinned::open_in(pids, started),
            None => Pinned::open(started),
        };
        pinned.unwrap_or_else(|error| panic!("pidfd of {}: {error}", started.pid))
    }

    fn accept(
        name: &str,
        process: Pinned,
        listener: &UnixListener,
        log: &PathBuf,
        terminal: Option<Terminal>,
    ) -> WorkerHandle {
        let mut fds = vec![listener.as_fd()];
        fds.extend(process.fd());
        let stream = match pinned::ready(&fds, PATIENCE) {
            Some(0) => listener.accept().expect("somebody is there").0,
            _ => panic!(
                "the worker {name} (pid {}) did not come up: {}",
                process.started().pid,
                std::fs::read_to_string(log).unwrap_or_default()
            ),
        };
        let worker = WorkerHandle {
            name: name.to_owned(),
            process,
            pids: None,
            connection: Mutex::new(BufReader::new(stream)),
            patience: Mutex::new(PATIENCE),
            charges: Mutex::new(Vec::new()),
            _terminal: terminal,
        };
        worker.set_patience(PATIENCE);
        worker
    }

    pub(crate) fn process(&self) -> &Pinned {
        &self.process
    }

    pub(crate) fn label(&self) -> String {
        format!("{} (pid {})", self.name, self.process.started().pid)
    }

    pub(crate) fn patience(&self) -> Duration {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_patience(&self, patience: Duration) {
        let connection = self.connection();
        let stream = connection.get_ref();
        stream
            .set_read_timeout(Some(patience))
            .and_then(|()| stream.set_write_timeout(Some(patience)))
            .expect("a timeout above zero can be set");
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner) = patience;
    }

    #[track_caller]
    fn connection(&self) -> std::sync::MutexGuard<'_, BufReader<UnixStream>> {
        match self.connection.lock() {
            Ok(connection) => connection,
            Err(_) => panic!("{} failed to answer before", self.label()),
        }
    }

    #[track_caller]
    fn ask(&self, request: &WorkerRequest) -> WorkerReply {
        let mut text = serde_json::to_string(request).expect("a request can be written as JSON");
        text.push('\n');
        let mut connection = self.connection();
        let mut line = String::new();
        let answered = connection
            .get_mut()
            .write_all(text.as_bytes())
            .and_then(|()| connection.read_line(&mut line));
        match answered {
            Ok(1..) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!(
                    "{} did not answer within {:?}; is it stopped? It was asked {text}",
                    self.label(),
                    self.patience()
                )
            }
            Ok(0) | Err(_) => panic!("{} is gone; it was asked {text}", self.label()),
        }
        match serde_json::from_str(&line) {
            Ok(WorkerReply::Failed(why)) => {
                drop(connection);
                panic!("{} could not: {why}\nit was asked {text}", self.label())
            }
            Ok(reply) => reply,
            Err(error) => panic!("{} answered {line}: {error}", self.label()),
        }
    }

    #[track_caller]
    fn started(&self, request: &WorkerRequest) -> Arc<Pinned> {
        let started = match self.ask(request) {
            WorkerReply::Started(started) => started,
            other => panic!("{} answered {other:?}", self.label()),
        };
        let charge = Arc::new(self.pin(started));
        let mut charges = self.charges();
        charges.retain(|charge| !charge.is_gone());
        charges.push(Arc::clone(&charge));
        charge
    }

    #[track_caller]
    pub(crate) fn start(&self, order: ProcessOrder) -> Arc<Pinned> {
        self.started(&WorkerRequest::Start(order))
    }

    #[track_caller]
    pub(crate) fn orphan(&self, order: ProcessOrder) -> Arc<Pinned> {
        self.started(&WorkerRequest::Orphan(order))
    }

    #[track_caller]
    pub(crate) fn wait(&self, pid: u32) -> i32 {
        match self.ask(&WorkerRequest::Wait(pid)) {
            WorkerReply::Ended(code) => code,
            other => panic!("{} answered {other:?}", self.label()),
        }
    }

    /// Makes this worker end `process` when the test is gone.
    pub(crate) fn adopt(&self, process: &Pinned) {
        if process.is_gone() {
            return;
        }
        match self.ask(&WorkerRequest::Adopt(process.here())) {
            WorkerReply::Done => {}
            other => panic!("{} answered {other:?}", self.label()),
        }
    }

    fn charges(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Pinned>>> {
        self.charges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands this worker and what it started to `caretaker`, because it can no longer end them itself.
    pub(crate) fn hand_over(&self, caretaker: &WorkerHandle) {
        caretaker.adopt(&self.process);
        for charge in self.charges().iter() {
            caretaker.adopt(charge);
        }
    }

    /// Closes the socket, so that the worker exits by itself.
    pub(crate) fn close(&self) {
        // An error means that the other end is already closed.
        self.connection()
            .get_ref()
            .shutdown(std::net::Shutdown::Both)
            .ok();
        assert!(
            self.process.wait_gone(self.patience()),
            "{} was closed and did not end",
            self.label()
        );
    }

    /// Ends it and everything that it started, whatever state they are in.
    pub(crate) fn end(&self) {
        let charges = self.charges();
        let all = || std::iter::once(&self.process).chain(charges.iter().map(Arc::as_ref));
        for process in all() {
            process.signal(Signal::KILL);
        }
        for process in all() {
            let gone = process.wait_gone(END);
            assert!(
                gone || std::thread::panicking(),
                "pid {} was killed and did not end",
                process.started().pid
            );
        }
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.end();
    }
}

/// Kills with -9 and waits until it is gone.
pub(crate) fn kill9(process: &Pinned) {
    process.signal(Signal::KILL);
    assert!(
        process.wait_gone(END),
        "pid {} was killed and did not end",
        process.started().pid
    );
}

/// Pins a process that was just started.
pub(crate) fn pin(started: Started) -> Pinned {
    Pinned::open(started).unwrap_or_else(|error| panic!("pidfd of {}: {error}", started.pid))
}

fn listen(place: &TestRoot) -> (UnixListener, PathBuf) {
    let path = place.fresh("socket");
    let listener = UnixListener::bind(&path)
        .unwrap_or_else(|error| panic!("cannot listen at {}: {error}", path.display()));
    (listener, path)
}
