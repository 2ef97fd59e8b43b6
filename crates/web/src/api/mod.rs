//! The HTTP API: routes over the use cases of the service.
//!
//! A request passes the same steps wherever it goes: its Host is ours ([`origin`]); there is such a route ([`routes`]); a
//! browser sent it from our own page; its body is JSON; its token is valid and has the scope ([`access`]); nothing in it
//! is unknown ([`request`]). Then one job on the store's thread makes one call ([`store`]).

pub mod access;
mod acts;
mod agents;
mod answer;
mod events;
pub mod fleet;
mod lists;
mod metrics;
mod openapi;
pub mod origin;
mod private;
mod request;
mod routes;
mod run_log;
mod server;
mod sessions;
mod state;
pub mod store;
mod stream;
mod tail;
mod usage;

pub use server::router;
pub use state::Server;
