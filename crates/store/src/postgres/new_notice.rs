//! The row of a new notice. A transaction that decides about an earlier commit adds one too.

use tenure_core::notice::Notice;

use super::connection::Statement;
use super::value::params;

/// The statement that adds a notice.
pub(super) fn insert(notice: &Notice, epoch: Option<i64>) -> Statement {
    let sql = "INSERT INTO notices (recipient, kind, message, key, epoch, sender, at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let row = params![
        notice.to.to_string(),
        notice.kind.as_str(),
        &notice.message,
        &notice.key,
        epoch,
        notice.from.map(|from| from.to_string()),
        notice.at.0,
    ];
    Statement::execute(sql, row)
}
