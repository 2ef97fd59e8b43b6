//! The test environment tested: what tests of identity rely on must itself hold.

#![allow(clippy::unwrap_used)]

mod agents;
mod crash;
mod mock;
mod scratch;
mod terminals;
mod worlds;

use std::path::Path;
use std::time::Duration;

use tenure_testkit::Env;
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::Started;

/// Long enough for anything on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// An environment whose tenure is `env`, because tenure itself may not be built.
fn env() -> Env {
    Env::new(Path::new("/usr/bin/env"))
}

fn pin(pid: u32) -> Pinned {
    let start = Stat::read(pid).unwrap().start;
    Pinned::open(Started { pid, start }).unwrap()
}

/// The pids from a process up to the top.
fn ancestry(pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        Stat::read(*pid)
            .map(|stat| stat.parent)
            .filter(|pid| *pid != 0)
    };
    std::iter::successors(Some(pid), parent).collect()
}

/// The name under which /proc shows the executable.
fn exe_name(pid: u32) -> String {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    exe.file_name().unwrap().to_str().unwrap().to_owned()
}
