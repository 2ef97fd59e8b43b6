use tenure_doctor::backup::BackupView;

use crate::lines::Lines;
use crate::output::Output;

/// What was written, of a backup or an export.
pub fn written(name: &'static str, made: &BackupView) -> Output {
    let mut text = Lines::default();
    text.line(format!(
        "wrote {} rows of {} to {}",
        made.rows, made.store, made.file
    ));
    Output::new(name, made, text)
}
