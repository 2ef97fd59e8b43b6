//! Conversations that their agents have deleted. Each host searches once a day, because only it has
//! the files.
//!
//! The modification time of a file in the state directory shows when that was. Two processes that
//! search at the same moment may both log what they find. *Crash* before the file is written: the
//! search is repeated. *Clock jump*: the next search comes sooner or later than after a day.

use std::time::{Duration, SystemTime};

use tenure_app::open::Context;
use tenure_core::ignore::Ignore;
use tenure_host::file;

const EVERY: Duration = Duration::from_secs(24 * 3600);
const MARKER: &str = "conversations.looked-for";

pub(super) fn sweep(context: &mut Context) {
    let marker = context.dir().join(MARKER);
    let looked = fs_err::metadata(&marker).and_then(|found| found.modified());
    let is_new = |at: SystemTime| at.elapsed().is_ok_and(|age| age < EVERY);
    if looked.is_ok_and(is_new) {
        return;
    }
    let found = context.service().sweep_conversations();
    if found.is_ok() {
        file::write_private(&marker, b"").ignore("the next call searches again");
    }
}
