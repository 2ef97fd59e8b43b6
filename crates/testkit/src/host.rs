//! A machine of its own, as far as processes go: a pid namespace with its own /proc, boot id and host name.
//!
//! Its processes see only each other, and a process of the test sees them under other pids. It shares the network and
//! the files of this machine; TENURE_HOME is what makes it another host to tenure. Everything in it ends with it.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::Agent;
use crate::command::Cmd;
use crate::job::ProcessJob;
use crate::pinned::{PidSpace, Pinned, Stat};
use crate::protocol::Started;
use crate::space::Space;
use crate::worker::{self, WorkerHandle};

/// How to get a pid namespace: as root, or in a user namespace.
const WAYS: [&[&str]; 2] = [
    &["-pfmu", "--mount-proc", "--kill-child"],
    &["-Urpfmu", "--mount-proc", "--kill-child"],
];
/// Run by the first process of the namespace, which reaps orphans. Its arguments: the host's name, a file with its boot
/// id, and a command.
const INIT: &str = r#"echo "$1" >/proc/sys/kernel/hostname &&
mount --bind "$2" /proc/sys/kernel/random/boot_id && shift 2 && "$@"; exit $?"#;
/// How long the kernel may take to end all processes of a namespace.
const END: Duration = Duration::from_secs(20);

/// A host that a test starts and ends.
#[derive(Debug)]
pub struct Host {
    // Dropped in this order: its processes before the worker that started them, that before the directory.
    init: Pinned,
    pids: PidSpace,
    base: WorkerHandle,
    space: Arc<Space>,
}

impl Host {
    /// A host with this name; `None` if this system makes no such namespaces for us.
    #[track_caller]
    pub(crate) fn start(
        space: Arc<Space>,
        variables: &[(String, String)],
        name: &str,
        boot: &str,
    ) -> Option<Host> {
        let file = space.place.fresh("boot");
        std::fs::write(&file, format!("{boot}\n"))
            .expect("the environment's directory is writable");
        let script = |way: &[&str]| -> Vec<String> {
            let init = ["bash", "-c", INIT, "init", name];
            let words = way.iter().chain(&init).map(|word| (*word).to_owned());
            words.chain([file.display().to_string()]).collect()
        };
        let plain = space.plain();
        let mut ways = WAYS.iter().map(|way| script(way));
        let within = ways.find(|within| {
            let tried = Cmd::new("unshare").args(within.iter().cloned()).arg("true");
            ProcessJob::start(plain, &space.place, tried)
                .finish(plain)
                .code
                == 0
        })?;
        let base = WorkerHandle::in_namespace(&space.place, variables, "unshare", &within);
        let pids = base.pids().expect("it has one").clone();
        let init = pinned(&pids, 1).expect("it runs");
        Some(Host {
            init,
            pids,
            base,
            space,
        })
    }

    /// An agent with this name on this host, without a terminal.
    pub fn agent(&self, name: &str) -> Agent {
        let worker = self.base.neighbour(&self.space.place, name, &[]);
        Agent::new(worker, Arc::clone(&self.space))
    }

    /// A process of this host, by its pid there; `None` if it is gone.
    pub fn process(&self, pid: u32) -> Option<Pinned> {
        pinned(&self.pids, pid)
    }

    /// The pids of this test's namespace of all processes on this host.
    pub fn pids_here(&self) -> Vec<u32> {
        let all = std::fs::read_dir("/proc").expect("/proc").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| PidSpace::of(*pid).as_ref() == Some(&self.pids))
            .collect()
    }

    /// Ends every process of it at once, as when the machine loses power.
    pub fn vanish(&self) {
        worker::kill9(&self.init);
    }

    pub fn is_up(&self) -> bool {
        !self.init.is_gone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.init.signal(rustix::process::Signal::KILL);
        let gone = self.init.wait_gone(END);
        assert!(gone || std::thread::panicking(), "a host did not end");
    }
}

fn pinned(pids: &PidSpace, pid: u32) -> Option<Pinned> {
    let here = pids.pid_here(pid)?;
    let start = Stat::read(here)?.start;
    let pinned = Pinned::open_in(pids, Started { pid, start }).ok()?;
    (!pinned.is_gone()).then_some(pinned)
}
