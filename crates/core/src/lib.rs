//! The domain of tenure: what a session, a claim and a death are, and every rule about them.

pub mod agent;
pub mod claim;
pub mod event;
pub mod id;
pub mod key;
pub mod liveness;
pub mod notice;
pub mod process;
pub mod session;
pub mod store;
pub mod time;
pub mod world;
