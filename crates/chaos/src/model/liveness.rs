//! Liveness, the model's input: how a holder stands for a call, as the driver of the model says.

use std::fmt::Debug;

use super::state::Hold;
use crate::history::Call;

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its process is seen to live.
    Alive,
    /// Its process is seen to be dead, or it has ended.
    Dead,
    /// Its process cannot be seen, and its lease runs.
    Unknown,
    /// Its lease has run out, and the lock-delay has not.
    Suspect,
    /// Both have run out.
    Expired,
}

impl Standing {
    /// Those from whom a claim takes a key.
    pub const YIELDS: &[Self] = &[Standing::Dead, Standing::Expired];
    /// Those who stand in the way of an overlapping path.
    pub const BARS: &[Self] = &[Standing::Alive, Standing::Unknown, Standing::Suspect];
    /// Those whose hold is waited for without a word of doubt.
    pub const HOLDS: &[Self] = &[Standing::Alive, Standing::Unknown];
    /// Those who still have what they hold, until somebody claims it.
    pub const HAS: &[Self] = &[
        Standing::Alive,
        Standing::Unknown,
        Standing::Suspect,
        Standing::Expired,
    ];
}

/// Who lives, as far as a call can know. Where that is uncertain, several standings are possible.
pub trait Liveness: Debug {
    fn may_be(&self, hold: &Hold, standing: Standing, call: &Call) -> bool;

    /// Whether a hold that nobody is known to have ended may have ended with its process.
    fn may_have_ended(&self, hold: &Hold, call: &Call) -> bool;

    /// Whether somebody to whom a key is to be handed may stand so.
    fn may_find(&self, session: &str, standing: Standing, call: &Call) -> bool;

    /// The processes in which it may get that key.
    fn open_in(&self, session: &str, call: &Call) -> Vec<usize>;

    /// Whether something that a process started may still run.
    fn may_be_noisy(&self, _life: usize, _call: &Call) -> bool {
        false
    }

    /// Whether something that a process started as this session ran all through a call.
    fn surely_noisy(&self, _session: &str, _life: usize, _call: &Call) -> bool {
        false
    }
}
