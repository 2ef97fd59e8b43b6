//! How people read that their store was written into the settings.

use tenure_app::settings::kept_store::KeptStore;

use crate::lines::Lines;

/// Says where a store is kept now.
pub fn store_lines(text: &mut Lines, kept: &KeptStore, dry: bool) {
    let word = if dry { "would add" } else { "added" };
    let file = kept.file.display();
    text.line(format!(
        "store: {word} {} to {file}, so that agents without TENURE_STORE use it too",
        kept.store
    ));
    if kept.has_password {
        text.line("  its password is not written; put it into ~/.pgpass or a file that password_file names");
    }
}
