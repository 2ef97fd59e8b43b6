//! The benchmark: what tenure costs, as ratios against baselines that are measured in the same run.
//!
//! Machines are shared and noisy, so nothing here is a test and no time alone is a result: ours and the
//! baseline take turns, many times, and the medians are compared. Counts of instructions and of system
//! calls stand beside the times, since those repeat. A row that cannot be measured fails the run.
//!
//! A row is one line of the table. [`rows`] has one file per kind of row; each measures and judges, and
//! [`report`] prints and writes. [`bare`] is the hand-written SQLite that ours is compared with,
//! [`bare_postgres`] the hand-written PostgreSQL, and [`floor`] the least that a hook can be. [`counts_by_verb`] are the counts
//! that `scripts/counts` holds, and [`hot`] counts them.

pub mod bare;
pub mod bare_postgres;
pub mod counts;
pub mod counts_by_verb;
pub mod crew;
pub mod flock;
pub mod floor;
pub mod hot;
pub mod machine;
pub mod place;
pub mod program;
pub mod report;
pub mod rows;
pub mod sample;
pub mod seeded;
pub mod worker;

/// Why a measurement did not come to a number.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;
