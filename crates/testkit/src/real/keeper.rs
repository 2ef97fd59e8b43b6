//! The process that ends whatever still runs in a world, however the test ended.
//!
//! It holds one end of a socket and waits for the other to close. Then it kills every process whose
//! HOME is the world's. The directory was created for this world, so no other process has it.

use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::pinned::{Pinned, Stat};
use crate::place::TestRoot;
use crate::poll::poll;
use crate::protocol::{Started, WorkerMode};
use crate::worker;

/// How long ending everything may take.
const END: Duration = Duration::from_secs(20);

/// How long a process may show no variables before it counts as having none.
const SETTLED: Duration = Duration::from_secs(1);

/// The test's end of the socket.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Pinned,
    socket: UnixStream,
}

impl Keeper {
    pub(super) fn start(place: &TestRoot, variables: &[(String, String)]) -> Keeper {
        let path = place.fresh("socket");
        let listener = UnixListener::bind(&path)
            .unwrap_or_else(|error| panic!("cannot listen at {}: {error}", path.display()));
        let home = place.root().join("home");
        let mode = WorkerMode::Keep { socket: path, home };
        let order = place.order_mode(&mode, "keeper", &[]);
        let process = worker::pin(place.launch(variables, order));
        listener
            .set_nonblocking(true)
            .expect("a listener can be asked without waiting");
        let socket = poll(END, "the keeper connects", || {
            assert!(!process.is_gone(), "the keeper ended at once");
            listener.accept().ok().map(|(socket, _)| socket)
        });
        Keeper { process, socket }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // An error means that the keeper is gone, which shows below.
        self.socket.shutdown(Shutdown::Both).ok();
        let ended = self.process.wait_gone(END * 2);
        assert!(
            ended || std::thread::panicking(),
            "the keeper did not end what the world started"
        );
    }
}

/// The keeper's work: waits for the test's end, then ends the remaining processes.
pub fn end_all_at_home(mut socket: &UnixStream, home: &Path) {
    // Nothing is ever sent; end of file or an error is the signal.
    socket.read_exact(&mut [0]).ok();
    let began = Instant::now();
    // A killed process may have started another one just before, so the search repeats until none
    // is found.
    poll(END * 2, "nothing is left in the world", || {
        let left = END.saturating_sub(began.elapsed());
        let (found, unsure) = all_at_home(home);
        for process in &found {
            process.signal(Signal::KILL);
        }
        for process in &found {
            process.wait_gone(left);
        }
        let is_done = found.is_empty() && (!unsure || began.elapsed() > SETTLED);
        (is_done || left.is_zero()).then_some(())
    });
}

/// The processes of this home, and whether there is one that shows no variables. One that becomes
/// another program has none for a moment.
fn all_at_home(home: &Path) -> (Vec<Pinned>, bool) {
    let line = format!("HOME={}", home.display());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut unsure = false;
    let found = pids
        .filter(|pid| *pid != std::process::id())
        .filter_map(|pid| {
            // The start is read first and compared again when the process is pinned, so all three
            // refer to one process.
            let stat = Stat::read(pid).filter(|stat| stat.state != 'Z')?;
            let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            // Threads of the kernel have no program.
            let has_program = || std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
            unsure |= environ.is_empty() && has_program();
            let is_ours = environ
                .split(|byte| *byte == 0)
                .any(|one| one == line.as_bytes());
            let start = stat.start;
            is_ours.then(|| Pinned::open(Started { pid, start }).ok())?
        })
        .filter(|process| !process.is_gone())
        .collect();
    (found, unsure)
}
