//! `tenure serve`: one process that answers over HTTP, and its door for the same user.
//!
//! One thread runs everything that waits for the network, one owns the store, and the first one looks at the fleet while
//! somebody follows it. A fourth waits at a socket in the state directory, over which `tenure serve --open` asks for the
//! login of a browser. A kernel lock lets one server run per user and state directory. *Crash*: logins are over, the
//! lock is free, and the next server replaces the socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_app::notifications;
use tenure_app::open::Context;
use tenure_core::ignore::Ignore;
use tenure_core::world::World;
use tenure_host::digest::sha256;
use tenure_host::kernel_lock::{HeldLock, LockDir, LockError, LockName, Sharing};
use tenure_host::machine::Machine;
use tenure_host::{file, peer, process};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_views::notify::notifier;
use tokio::sync::watch;

use crate::api::origin::Origins;
use crate::api::{Server, fleet, router, store};
use tenure_http::{ConnectionLimits, Listener};

/// How many connections there are at once.
const MAX_CONNECTIONS: usize = 256;
/// For the head of a request, and for the answers in progress at the end.
const WITHIN: Duration = Duration::from_secs(10);
/// For a peer to read some of its answer.
const READS_WITHIN: Duration = Duration::from_secs(30);
/// How long the answers in progress may take when the server stops.
const STOPS_WITHIN: Duration = Duration::from_secs(2);
/// How long a peer at the door may take.
const DOOR_WITHIN: Duration = Duration::from_secs(5);
/// The longest line there.
const MAX_LINE: u64 = 4096;
/// What is asked there.
const LOGIN: &str = "login";

/// Where to listen.
#[derive(Debug, Clone)]
pub enum Place {
    Tcp(SocketAddr),
    Socket(PathBuf),
}

/// How to serve.
#[derive(Debug, Clone)]
pub struct Options {
    pub place: Place,
    /// The address that a proxy with TLS has.
    pub public_url: Option<String>,
}

/// The address at which a browser logs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub url: String,
    /// A page that leads there, which only this user can read.
    pub file: PathBuf,
}

/// A server that listens and does not answer yet.
pub struct Serving {
    context: Context,
    looking: fleet::Looking,
    server: Server,
    files: Files,
    door: UnixListener,
    stop: watch::Sender<bool>,
    socket: Option<PathBuf>,
    network: std::thread::JoinHandle<()>,
    _lock: HeldLock,
}

/// The files of a server in the state directory.
#[derive(Debug, Clone)]
struct Files {
    dir: PathBuf,
    user: String,
}

impl Files {
    fn of(context: &Context) -> Self {
        Self {
            dir: context.dir().join("serve"),
            user: user(),
        }
    }

    fn door(&self) -> PathBuf {
        self.dir.join(format!("{}.sock", self.user))
    }

    fn lock(&self) -> Result<HeldLock, Problem> {
        let failed = |error: &dyn std::fmt::Display| {
            cannot("lock its directory", &io::Error::other(error.to_string()))
        };
        let name = LockName::plain(&self.user).map_err(|error| failed(&error))?;
        let locks = LockDir::open(&self.dir).map_err(|error| failed(&error))?;
        locks
            .try_lock(&name, Sharing::Exclusive)
            .map_err(|error| match error {
                LockError::Held { .. } => runs_already(),
                error => failed(&error),
            })
    }
}

fn user() -> String {
    rustix::process::getuid().as_raw().to_string()
}

/// Asks the server that runs already for the login of a browser; none if none runs.
pub fn ask(context: &Context) -> Result<Option<Invitation>, Problem> {
    let files = Files::of(context);
    let Ok(stream) = peer::connect_now(&files.door()) else {
        return Ok(None);
    };
    let asked = || -> io::Result<String> {
        stream.set_read_timeout(Some(DOOR_WITHIN))?;
        stream.set_write_timeout(Some(DOOR_WITHIN))?;
        let mut writer = &stream;
        writer.write_all(format!("{LOGIN}\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(Read::take(&stream, MAX_LINE)).read_line(&mut line)?;
        Ok(line)
    };
    let line = asked().map_err(|error| cannot("ask the running server", &error))?;
    let said: Result<Invitation, String> = serde_json::from_str(&line)
        .map_err(|error| cannot("ask the running server", &error.into()))?;
    said.map(Some).map_err(|why| {
        let hint = Hint::step("run it in a terminal of your own");
        Problem::new(Class::Refused, "person_only", why, hint)
    })
}

impl Serving {
    /// Listens.
    pub fn start(options: &Options) -> Result<Self, Problem> {
        let context = store::open_for_callers()?;
        let files = Files::of(&context);
        file::make_dir(&files.dir).map_err(|error| cannot("make its directory", &error))?;
        let lock = files.lock()?;
        let (listener, origins, socket) = bind(options)?;
        let door = replace(&files.door()).map_err(|error| cannot("make its socket", &error))?;
        let (looking, following) = fleet::pair().map_err(|error| cannot("start", &error))?;
        let (stop, stopped) = watch::channel(false);
        let location = context.store.location();
        let known = (files.user.clone(), location);
        let server = Server::new(origins, store::start()?, following, known, stopped.clone());
        let network = network(listener, server.clone(), stopped)?;
        Ok(Self {
            context,
            looking,
            server,
            files,
            door,
            stop,
            socket,
            network,
            _lock: lock,
        })
    }

    /// The address of the dashboard.
    pub fn url(&self) -> &str {
        self.server.origins().url()
    }

    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The login of a browser.
    pub fn invite(&self) -> Result<Invitation, Problem> {
        invite(&self.server, &self.files).map_err(|error| cannot("make a login", &error))
    }

    /// Answers until a signal comes, which it returns.
    pub fn work(mut self) -> Result<i32, Problem> {
        let (server, files) = (self.server.clone(), self.files.clone());
        let door = self.door;
        let machine = self.context.machine().clone();
        let opened = std::thread::Builder::new()
            .name("door".to_owned())
            .spawn(move || {
                for stream in door.incoming().flatten() {
                    answer_at_door(&stream, &server, &files, &machine)
                        .ignore("the caller is gone, and asks again");
                }
            });
        opened.map_err(|error| cannot("start", &error))?;
        let store = self.context.settings.store.as_deref();
        notifications::keep(store, self.context.dir(), notifier::start_beside)
            .map_err(|error| cannot("start", &error))?;
        let signal = self.looking.work(&mut self.context);
        self.stop.send_replace(true);
        self.network.join().ignore("it has said why");
        self.server.logins().close();
        for path in [Some(self.files.door()), self.socket].into_iter().flatten() {
            file::remove(&path).ignore("the next server replaces it");
        }
        signal
    }
}

/// A listener of either kind, before the thread that uses it.
enum Bound {
    Tcp(std::net::TcpListener),
    Unix(UnixListener),
}

/// Listens at a place, and says which hosts and origins are ours there.
fn bind(options: &Options) -> Result<(Bound, Origins, Option<PathBuf>), Problem> {
    let public = options.public_url.as_deref().map(public).transpose()?;
    match &options.place {
        Place::Tcp(address) => {
            if public.is_none() && !address.ip().is_loopback() {
                return Err(not_loopback(*address));
            }
            let listen = || -> io::Result<_> {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                Ok((listener, address))
            };
            let (listener, address) =
                listen().map_err(|error| cannot(&format!("listen at {address}"), &error))?;
            let origins = public.unwrap_or_else(|| Origins::of_address(address));
            Ok((Bound::Tcp(listener), origins, None))
        }
        Place::Socket(path) => {
            let shown = path.display();
            let listener = replace(path).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            let listener =
                listener.map_err(|error| cannot(&format!("listen at {shown}"), &error))?;
            let origins = public.unwrap_or_else(Origins::of_socket);
            Ok((Bound::Unix(listener), origins, Some(path.clone())))
        }
    }
}

fn public(url: &str) -> Result<Origins, Problem> {
    Origins::of_public(url).map_err(|why| {
        let message = format!("--public-url {url:?} cannot be used: {why}");
        let hint = Hint::step("give the address of the proxy, such as https://agents.example.org");
        Problem::new(Class::Usage, "usage", message, hint)
    })
}

fn not_loopback(address: SocketAddr) -> Problem {
    let message = format!("{address} can be reached from other machines, and there is no TLS");
    let hint = Hint::step(
        "put a proxy with TLS in front and name it with --behind-proxy --public-url, or listen on 127.0.0.1",
    );
    Problem::new(Class::Usage, "usage", message, hint)
}

/// Listens at a socket that only this user can use. One that nobody answers is replaced.
fn replace(path: &Path) -> io::Result<UnixListener> {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            if peer::connect_now(path).is_ok() {
                let why = format!("another program listens at {}", path.display());
                return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
            }
            fs_err::remove_file(path)?;
        }
        Ok(_) => {
            let why = format!("{} is not a socket; move it away", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = peer::listen(path)?;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers requests in a thread of its own until it is stopped.
fn network(
    listener: Bound,
    server: Server,
    mut stopped: watch::Receiver<bool>,
) -> Result<std::thread::JoinHandle<()>, Problem> {
    let run = move || -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        runtime.block_on(async {
            let listener = match listener {
                Bound::Tcp(listener) => Listener::Tcp(tokio::net::TcpListener::from_std(listener)?),
                Bound::Unix(listener) => {
                    Listener::Unix(tokio::net::UnixListener::from_std(listener)?)
                }
            };
            let limits = ConnectionLimits {
                connections: MAX_CONNECTIONS,
                within: WITHIN,
                reads_within: READS_WITHIN,
                ends_within: STOPS_WITHIN,
            };
            let stopped = async {
                if stopped.wait_for(|is_stopped| *is_stopped).await.is_err() {
                    // The server was dropped.
                }
            };
            tenure_http::serve(listener, router(server), limits, stopped).await;
            Ok(())
        })
    };
    let thread = std::thread::Builder::new().name("network".to_owned());
    let started = thread.spawn(move || run().ignore("nothing can be answered; a client says so"));
    started.map_err(|error| cannot("start", &error))
}

/// A code, and the page that leads a browser to it.
fn invite(server: &Server, files: &Files) -> io::Result<Invitation> {
    let url = server.origins().url();
    let (code, file) = server.logins().invite(|code| {
        let path = files.dir.join(format!("open-{}.html", &sha256(code.as_bytes())[..16]));
        // Nothing in it needs escaping: an origin and hexadecimal digits.
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
             <meta http-equiv=\"refresh\" content=\"0;url={url}/#code={code}\"><title>tenure</title>\n"
        );
        file::write_private(&path, page.as_bytes())?;
        Ok(path)
    })?;
    Ok(Invitation {
        url: format!("{url}/#code={code}"),
        file,
    })
}

/// Gives a login to a process of the same user that is no agent's.
fn answer_at_door(
    stream: &UnixStream,
    server: &Server,
    files: &Files,
    machine: &Machine,
) -> io::Result<()> {
    stream.set_read_timeout(Some(DOOR_WITHIN))?;
    stream.set_write_timeout(Some(DOOR_WITHIN))?;
    let own = rustix::process::geteuid().as_raw();
    let pid = peer::pid_of(stream)?;
    if peer::uid_of(stream)? != own {
        return Ok(());
    }
    let mut line = String::new();
    BufReader::new(Read::take(stream, MAX_LINE)).read_line(&mut line)?;
    if line.trim_end() != LOGIN {
        return Ok(());
    }
    let said: Result<Invitation, String> = match check_person(server, machine, pid) {
        Ok(()) => Ok(invite(server, files)?),
        Err(problem) => Err(problem.message),
    };
    let mut writer = stream;
    writer.write_all(format!("{}\n", serde_json::to_string(&said)?).as_bytes())
}

/// Fails if the process is, or is below, an agent.
fn check_person(server: &Server, machine: &Machine, pid: u32) -> Result<(), Problem> {
    let (chain, chain_broken) = process::chain_from(pid, machine.observer());
    server.store().ask_blocking(move |context| {
        context.facts.chain = chain;
        context.facts.chain_broken = chain_broken;
        context.service().only_person(LOG_IN)?;
        Ok(())
    })
}

/// What only a person can do.
pub const LOG_IN: &str = "log in to the dashboard";

fn runs_already() -> Problem {
    let hint = Hint::run("serve", ["--open"], "to log a browser in to it");
    let message = "a server runs already for this state directory";
    Problem::new(Class::Refused, "already_serving", message, hint)
}

fn cannot(what: &str, error: &io::Error) -> Problem {
    let message = format!("cannot {what}: {error}");
    let hint = Hint::step("choose another address with --listen, or end what uses this one");
    Problem::new(Class::Internal, "cannot_serve", message, hint)
}
