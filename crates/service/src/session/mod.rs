//! Sessions: how they start, continue, are read and end.

pub mod acts;
pub mod attend;
pub mod beat;
pub mod cut_off;
pub mod death;
pub mod dismiss;
pub mod kill;
pub mod look;
pub mod new_session;
pub mod register;
pub mod resume;
pub mod status;
pub mod survivors;
pub(crate) mod title;
pub(crate) mod troubles;
pub mod unmanaged;
pub mod view;
pub mod wake;

pub use acts::{MetaChange, RenewRequest, SentMessage};
pub use attend::Window;
pub use kill::Killable;
pub use look::{Awaited, ListRequest, WaitGoal, Whoami};
pub use register::{RegisterRequest, Registered, Subject};
pub use resume::Resumable;
pub use status::{Glance, Glancer, Status, WARNED_FOR};
pub use survivors::LeftBehind;
pub use wake::{Delivery, Receipt, Sleeper, WakeRequest, Woke};
