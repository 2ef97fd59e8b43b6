//! A hook that may not wait for the store, and what it says when the store answers after all.
//!
//! On a store on a server, an event that repeats, or one about a tool that nothing blocks, holds its agent up for
//! `hook_wait` at most. Its store call runs in a second process ([`process`]), which has the ordinary limit of a hook.
//! If the answer comes in time, the hook prints it. If not, the second process keeps it in a file of the conversation
//! ([`kept`]), and the next event of the conversation that reaches the model says it first. A store in a file needs none
//! of this: no process is started and no file is looked for.
//!
//! *Crash* of the hook: before it took the answer, the answer is kept; after that, a warning is lost and a notice is told
//! again. *Crash* of the second process: its answer is lost, as when the machine dies; notices that it had not marked as
//! delivered are told again. *Older version*: it does not look for the file.

pub mod kept;
pub mod process;
