//! Liveness, the model's input: the standing of a holder at a call, provided by the driver of the
//! model.

use std::fmt::Debug;

use super::state::Hold;
use crate::history::Call;

/// The standing of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its process is proved alive.
    Alive,
    /// Its process is proved dead, or it has ended.
    Dead,
    /// Its process is not visible, and its lease has not expired.
    Unknown,
    /// Its lease has expired, but the lock delay has not.
    Suspect,
    /// Both have expired.
    Expired,
}

impl Standing {
    /// Standings from which a claim takes a key.
    pub const YIELDS: &[Self] = &[Standing::Dead, Standing::Expired];
    /// Standings that block an overlapping path.
    pub const BARS: &[Self] = &[Standing::Alive, Standing::Unknown, Standing::Suspect];
    /// Standings of a holder that is waited for without doubt.
    pub const HOLDS: &[Self] = &[Standing::Alive, Standing::Unknown];
    /// Standings that keep a hold until another session claims it.
    pub const HAS: &[Self] = &[
        Standing::Alive,
        Standing::Unknown,
        Standing::Suspect,
        Standing::Expired,
    ];
}

/// Who is alive, as far as a call can know. In doubt, several standings are possible.
pub trait Liveness: Debug {
    fn may_be(&self, hold: &Hold, standing: Standing, call: &Call) -> bool;

    /// Whether a hold without a known end may have ended with its process.
    fn may_have_ended(&self, hold: &Hold, call: &Call) -> bool;

    /// Whether the receiver of a handoff may have this standing.
    fn may_find(&self, session: &str, standing: Standing, call: &Call) -> bool;

    /// The processes in which it may get that key.
    fn open_in(&self, session: &str, call: &Call) -> Vec<usize>;

    /// Whether the host of an earlier holder may not know yet that a key was taken over from it.
    fn may_be_untold(&self, _key: &str, _call: &Call) -> bool {
        false
    }

    /// Whether a process's child may still run.
    fn may_be_noisy(&self, _life: usize, _call: &Call) -> bool {
        false
    }

    /// Whether a child that a process started as this session ran during the whole call.
    fn surely_noisy(&self, _session: &str, _life: usize, _call: &Call) -> bool {
        false
    }
}
