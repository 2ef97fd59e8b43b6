//! The keeper: the process that answers for the sessions of this machine on a store that several machines use.
//!
//! No other machine can see whether a process here lives. So one small process per user, machine, pid namespace and store
//! renews a row in the store, watches the processes of the sessions here through descriptors that the kernel wakes, and
//! records their deaths at once. It is started by the first command that needs it, and ends by itself when there has been
//! nothing to watch for a while.
//!
//! **One keeper.** A kernel lock on a file that is never deleted is held from before the socket is bound until exit.
//! Only its holder removes and binds the socket. A command that cannot connect tries the lock; the winner starts a keeper
//! and passes the lock on to it. Nothing is ever killed or replaced because it cannot be reached.
//!
//! **Processes.** The command starts a *starter*, which leaves the session and the descriptors of the command behind and
//! starts a *parent*. The parent starts the *keeper*, and again when that crashes. All three hold the lock. They have an
//! environment of their own, so nothing takes them for a part of an agent.
//!
//! *Crash*: without a keeper, sessions live by the last renewal until its lease is over, and by their own calls; the next
//! command starts one, which watches what it sees and records the other deaths. *Clock jump*: leases are on the store's
//! clock and on the boot clock of this machine. *Older version*: a keeper that is older than the command is asked to
//! end; its parent executes the program again, which is the new one.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod events;
mod keep;
mod listener;
mod renewal;
mod stages;
mod unit;

pub use events::Render;
pub use stages::main;
pub use unit::unit;

use tenure_app::location::settings_and_store;
use tenure_app::notifications::StartNotifier;
use tenure_app::settings::Settings;
use tenure_service::answer::Problem;

/// Runs the keeper of this machine in this process.
pub fn run_here(render: Render, notify: StartNotifier) -> Result<(), Problem> {
    let (_, place) = settings_and_store()?;
    let settings = Settings::of_user()?;
    keep::keep_here(&settings, &place, render, notify)
}
