//! `tenure hook AGENT --wait`: the process that waits beside an idle agent for messages.
//!
//! Its agent starts one after each turn; the newest stays. It waits for its directory ([`Bell`]) and for the exit of the
//! agent's process, with no store open. When a message is announced, it opens the store, takes what may start a turn now,
//! prints it and ends. It ends with its agent, with the conversation, and at any signal. Whatever goes wrong ends it: the
//! message then waits for the next event.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use tenure_agents::{Adapter, Report, Waking};
use tenure_app::hook_store::HookStore;
use tenure_app::open::{Purpose, open};
use tenure_app::own_process::{self, HookCaller};
use tenure_app::settings::Settings;
use tenure_core::agent_event::Happening;
use tenure_core::id::AgentName;
use tenure_core::notice::NoticeId;
use tenure_core::session::Doing;
use tenure_core::wake;
use tenure_core::world::World;
use tenure_host::caller::RUN_VARIABLE;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::watch::{WakeCause, Watch};
use tenure_host::{clock, env, event_input};
use tenure_service::answer::Problem;
use tenure_service::{Sleeper, WakeRequest, Woke};

use crate::wake::bell::Bell;

/// How long the event may take to arrive, and finding out who sent it.
const BEGINS_WITHIN: Duration = Duration::from_secs(2);
/// The exit code with which a hook starts a turn.
const STARTS_TURN: u8 = 2;

/// Waits until a message starts a turn, or the wait is over; returns the exit code.
pub fn wait(adapter: &Adapter) -> u8 {
    let Some(way) = adapter.wakes.filter(|way| way.waits()) else {
        return 0;
    };
    let Some(waiter) = Waiter::begin(adapter) else {
        return 0;
    };
    let Some(text) = waiter.message() else {
        return 0;
    };
    let (written, code) = match way {
        Waking::ByStderr => (writeln!(io::stderr(), "{text}"), STARTS_TURN),
        Waking::ByStdout | Waking::ByCommand { .. } => (writeln!(io::stdout(), "{text}"), 0),
    };
    if written.is_ok() { code } else { 0 }
}

/// What an event that was recorded means for the waiter of its session.
pub fn after_event(state_dir: &Path, adapter: &Adapter, report: &Report) {
    let (Some(_), Some(native_id), None) = (
        adapter.wakes.filter(|way| way.waits()),
        &report.native_id,
        &report.subagent,
    ) else {
        return;
    };
    let bell = || Bell::of(state_dir, adapter.name, native_id);
    if matches!(report.what, Happening::End { .. }) {
        bell().end();
    } else if report.doing.is_some_and(Doing::rests) {
        bell().rest();
    }
}

/// Whether our plugin is to start a waiter after this event.
pub fn waits_after(adapter: &Adapter, report: &Report) -> bool {
    matches!(adapter.wakes, Some(Waking::ByStdout))
        && report.doing.is_some_and(Doing::rests)
        && report.subagent.is_none()
        && env::var(RUN_VARIABLE).is_none()
}

struct Waiter {
    name: String,
    bell: Bell,
    watch: Watch,
    agent: ProcessWatch,
    sleeper: Sleeper,
}

impl Waiter {
    /// None if nobody is to wait here.
    fn begin(adapter: &Adapter) -> Option<Self> {
        let until = clock::instant() + BEGINS_WITHIN;
        let report = adapter.read(&event_input::read(until).ok()?);
        let is_end = matches!(report.what, Happening::End { .. } | Happening::Leaves);
        // The end of a run is waited for.
        if report.subagent.is_some() || is_end || env::var(RUN_VARIABLE).is_some() {
            return None;
        }
        let settings = Settings::of_user().ok()?;
        if !settings.wake.is_on(adapter.name) {
            return None;
        }
        let native_id = report.native_id?;
        let store = HookStore::prepare(settings, until).ok()?;
        let found = own_process::find(adapter, store.machine(), report.pid);
        let HookCaller::Agent(found) = found else {
            return None;
        };
        let agent = ProcessWatch::open(&found.process)?;
        let bell = Bell::of(store.dir(), adapter.name, &native_id);
        bell.make().ok()?;
        let mut watch = Watch::on_nothing();
        if !watch.turn_beside(&[bell.dir().to_owned()]) {
            return None;
        }
        watch.catch_signals().ok()?;
        let random = store.machine().random();
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        bell.take_over(&name).ok()?;
        Some(Self {
            name,
            bell,
            watch,
            agent,
            sleeper: Sleeper {
                agent: AgentName::known(adapter.name),
                native_id,
                process: found.process,
            },
        })
    }

    /// The text that starts a turn; none if the wait is over without one.
    fn message(self) -> Option<String> {
        loop {
            if !self.bell.is_held_by(&self.name) {
                return None;
            }
            let announced = self.bell.announced();
            if !announced.is_empty()
                && let Some(text) = self.take(&announced)
            {
                return Some(text);
            }
            match self.watch.wait(std::slice::from_ref(&self.agent), None) {
                Ok(WakeCause::Exit | WakeCause::Signal(_)) => {
                    if self.bell.is_held_by(&self.name) {
                        self.bell.end();
                    }
                    return None;
                }
                Err(_) => return None,
                Ok(WakeCause::Beside | WakeCause::Change | WakeCause::Timeout) => {}
            }
        }
    }

    /// Takes what may start a turn now. What does not stays announced while it is pending: a later event may let it.
    fn take(&self, announced: &[NoticeId]) -> Option<String> {
        match self.taken(announced).ok()? {
            Woke::Messages(messages) => {
                let ids: Vec<NoticeId> = messages.iter().filter_map(|one| one.id).collect();
                self.bell.forget(&ids);
                Some(wake::prompt(&messages))
            }
            Woke::Not(pending) => {
                let is_over = |id: &&NoticeId| !pending.contains(id);
                let over: Vec<NoticeId> = announced.iter().filter(is_over).copied().collect();
                self.bell.forget(&over);
                None
            }
        }
    }

    fn taken(&self, announced: &[NoticeId]) -> Result<Woke, Problem> {
        let mut context = open(Purpose::Change)?;
        // It may have been switched off since.
        let wake = context.settings.wake.clone();
        if !wake.is_on(self.sleeper.agent.as_str()) {
            return Ok(Woke::Not(Vec::new()));
        }
        let request = WakeRequest {
            sleeper: &self.sleeper,
            announced,
            from_agents: wake.from_agents,
        };
        Ok(context.service().take_to_wake(&request)?.value)
    }
}
