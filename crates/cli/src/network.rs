//! The verbs that speak over a network: linked into this program, or executed from the one beside it.
//!
//! The dynamic loader relocates a program's tables at every start. Those of an HTTP server, a TLS library and an HTTP
//! client would be paid for by every hook. See docs/decisions/0014-two-executables.md.

use tenure_app::dispatch::{Connect, connect};
use tenure_host::event_input;

use crate::app::App;
use crate::beside;
use crate::output::Outcome;
use crate::verbs::dispatch;

/// How the verbs that speak over a network are run.
#[derive(Clone, Copy)]
pub struct Network {
    pub(crate) dispatch: fn(&dispatch::Args, &App) -> Outcome,
    /// How a runner asks a forge. Runners of the dispatcher's jobs are the dispatcher's program.
    pub(crate) connect: Option<Connect>,
    /// Whether a store on a server can be opened in this program.
    has_server_stores: bool,
}

impl Network {
    /// They are in this program.
    pub fn linked() -> Self {
        tenure_app::server_store::link();
        tenure_app::run::model::link(tenure_server::model::serve);
        Self {
            dispatch: dispatch::run_linked,
            connect: Some(connect),
            has_server_stores: true,
        }
    }

    /// They are in the program beside this one, which takes this process over.
    pub fn beside() -> Self {
        Self {
            dispatch: dispatch::run,
            connect: None,
            has_server_stores: false,
        }
    }

    /// Hands a command over to the other program because its arguments may name stores on servers.
    pub(crate) fn follow_arguments(&self) {
        if !self.has_server_stores && beside::execute().is_err() {
            // The verb fails as it does for any store that cannot be opened.
        }
    }

    /// Hands a hook over to the other program, with the event that was read.
    pub(crate) fn follow_event(&self, event: &[u8]) {
        if !self.has_server_stores
            && event_input::put_back(event).is_ok()
            && beside::execute().is_err()
        {
            // The hook fails as it does for any store that cannot be opened.
        }
    }

    /// Hands a command over to the other program if its store is on a server and this one cannot open that. Called
    /// before anything is read from stdin. If the other program cannot be started, what opens the store says so.
    pub(crate) fn follow_store(&self) {
        if !self.has_server_stores
            && tenure_app::location::names_server()
            && beside::execute().is_err()
        {
            // The verb fails as it does for any store that cannot be opened.
        }
    }
}
