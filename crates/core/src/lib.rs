//! The rules of tenure: what a session, a claim and a death are, and every rule about them.
//!
//! No use cases, SQL, files, environment, clock or printing. Leaf types first ([`id`], [`time`], [`process`]),
//! then the rules ([`liveness`], [`registration`], [`claim`]), then the ports: what a backend ([`store`]) and a
//! machine ([`world`]) must do, and who else can report about a session ([`witness`]).

pub mod activity;
pub mod agent;
pub mod agent_event;
pub mod back_off;
pub mod behalf;
pub mod claim;
pub mod commit;
pub mod conversation;
pub mod dispatch;
pub mod end;
pub mod event;
pub mod forge;
pub mod git_move;
pub mod glob;
pub mod hint;
pub mod id;
pub mod ignore;
pub mod import;
pub mod json_fault;
pub mod keeper;
pub mod key;
pub mod line;
pub mod liveness;
pub mod local_time;
pub mod mirror_failure;
pub mod mission;
pub mod notice;
pub mod notification;
pub mod openclaw;
pub mod order;
pub mod policy;
pub mod present;
pub mod process;
pub mod program;
pub mod queue;
pub mod reason;
pub mod registration;
pub mod repository;
pub mod run;
pub mod session;
pub mod settled;
pub mod shell_line;
pub mod shell_write;
pub mod skill;
pub mod spelling;
pub mod start;
pub mod store;
pub mod text;
pub mod time;
pub mod timeline;
pub mod title;
pub mod token;
pub mod transcript;
pub mod tree_lock;
pub mod trust;
pub mod version;
pub mod visible;
pub mod waking;
pub mod witness;
pub mod worktree_changes;
pub mod world;
pub mod write_conflict;
