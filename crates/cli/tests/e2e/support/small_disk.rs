//! A dispatcher whose store is on a small disk that a test fills up.

use std::path::PathBuf;

use tenure_testkit::{Agent, Env, poll};

use super::line::SOON;
use super::mount::with_mounts;
use super::webhook::Dispatcher;

const SCRIPT: &str = "mkdir -p $TENURE_HOME; mount -t tmpfs -o size=12m,mode=700 tmpfs $TENURE_HOME
    tenure queue >/dev/null
    tenure dispatch --json &
    while [ ! -e $FULL ]; do sleep 0.02; done
    dd if=/dev/zero of=$TENURE_HOME/filler bs=512 2>/dev/null || true
    : >$FULL.done
    while [ -e $FULL ]; do sleep 0.02; done
    rm $TENURE_HOME/filler
    : >$FULL.room
    wait";

/// Once full, and once with room again.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn dispatcher(env: &Env, agent: &Agent) -> (Self, Dispatcher) {
        let flag = env.dir().join("full");
        let command = with_mounts(SCRIPT).env("FULL", flag.to_str().expect("text"));
        (Self(flag), Dispatcher::start_as(agent, command))
    }

    fn says(&self, word: &str) {
        let file = self.0.with_extension(word);
        poll(SOON, "the disk is as asked for", || {
            file.exists().then_some(())
        });
    }

    pub fn fill(&self) {
        std::fs::write(&self.0, "").expect("the environment is ours");
        self.says("done");
    }

    pub fn make_room(&self) {
        std::fs::remove_file(&self.0).expect("it was full");
        self.says("room");
    }
}
