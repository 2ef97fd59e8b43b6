//! Which rule an event of a forge starts, and why another does not.
//!
//! [`decide`] is the whole rule and pure: an event, the rules in their order, and the facts that only the store
//! and the forge know. The first rule that matches wins; one with `continue` lets later ones match too. Each no
//! is a [`No`], which people read in `dispatch explain` and with the stored delivery. [`unreachable()`] finds
//! rules that no event can ever match. [`publish`] decides what becomes of a result.
//!
//! *Invariants*: no one starts a run whom the rule does not name. What tenure wrote starts nothing. An edit by
//! someone else starts nothing. Code of a fork, or of an author whom the rule does not name, runs only under a
//! rule with `wrap`.

mod decision;
pub mod endpoint;
mod no;
pub mod publish;
mod rule;
mod unreachable;

#[cfg(test)]
mod tests;

pub use decision::{Cleanup, Decision, Facts, Halt, Link, Matched, RuleVerdict, Trust, decide};
pub use no::No;
pub use rule::{Action, BranchPattern, Caps, OnClose, Reply, Repo, Rule, Rules, When};
pub use unreachable::{Never, unreachable};
