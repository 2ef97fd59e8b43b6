//! A forge on loopback: the part of its API that tenure uses, over a small state in memory.
//!
//! The answers are written from the forges' documentation. They are not recordings of a real
//! server, so they prove that tenure follows the documentation, not that a forge does. Each forge
//! has a file with its paths and names; `state` has what they share.
//!
//! A test can make requests fail: with a limit, without an answer, or after they were carried out.

mod forgejo;
mod github;
mod gitlab;
mod http;
mod state;

use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use http::Request;
pub use state::{Comment, ForgeState, InjectedFault, MadePull, PullHead, Sent, Thread};

/// Which forge a [`FakeForge`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Forgejo,
    GitHub,
    GitLab,
}

impl Dialect {
    /// All of them, with their names in the settings.
    pub const ALL: [(Dialect, &'static str); 3] = [
        (Dialect::Forgejo, "forgejo"),
        (Dialect::GitHub, "github"),
        (Dialect::GitLab, "gitlab"),
    ];
}

/// A forge that answers until the test ends.
pub struct FakeForge {
    pub url: String,
    state: Arc<Mutex<ForgeState>>,
}

impl FakeForge {
    /// Starts a forge with the repository `acme/web`, to which the account `bot` may write.
    pub fn start(dialect: Dialect) -> FakeForge {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(Mutex::new(ForgeState::default()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || http::serve(stream, dialect, &state));
            }
        });
        FakeForge {
            url: format!("http://{address}"),
            state,
        }
    }

    /// Its state, to read and to change.
    pub fn state(&self) -> MutexGuard<'_, ForgeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The comments that the account `bot` wrote.
    pub fn own_comments(&self) -> Vec<Comment> {
        let state = self.state();
        let own = state.comments.iter().filter(|one| one.login == "bot");
        own.cloned().collect()
    }

    /// How many requests so far begin with this, such as `GET /user`; paths are without the API's
    /// prefix.
    pub fn asked(&self, beginning: &str) -> usize {
        let state = self.state();
        let all = state.requests.iter();
        all.filter(|one| one.starts_with(beginning)).count()
    }
}

/// The answer of a dialect to a request; `None` if it has no such path.
fn answer(
    dialect: Dialect,
    state: &mut ForgeState,
    request: &Request,
) -> Option<http::FakeResponse> {
    match dialect {
        Dialect::Forgejo => forgejo::answer(state, request),
        Dialect::GitHub => github::answer(state, request),
        Dialect::GitLab => gitlab::answer(state, request),
    }
}

/// The prefix of all paths of the API.
fn prefix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Forgejo => "/api/v1",
        Dialect::GitHub => "/api/v3",
        Dialect::GitLab => "/api/v4",
    }
}
