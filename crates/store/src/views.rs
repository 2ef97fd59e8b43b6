//! Views for dashboards and other programs: the columns that are promised, whatever the tables become.
//!
//! They are no part of the file that every hook parses: for SQLite they are statements that a reader runs first. A
//! server has them in a schema of their own.

/// The text of every engine.
const VIEWS: &str = include_str!("views.sql");

/// What differs between engines.
pub struct ViewDialect<'a> {
    /// What creates a view, up to its name.
    pub create: &'a str,
    /// What stands before the name of a table.
    pub tables: &'a str,
    /// A time, with `{}` for its milliseconds.
    pub at: &'a str,
    /// An epoch, with `{}` for the stored one.
    pub epoch: &'a str,
}

/// Views of a file for one connection.
pub const TEMPORARY: ViewDialect<'_> = ViewDialect {
    create: "CREATE TEMP VIEW ",
    tables: "main.",
    at: "strftime('%Y-%m-%dT%H:%M:%fZ', {} / 1000.0, 'unixepoch')",
    epoch: "({} + coalesce((SELECT CAST(value AS INTEGER) FROM main.meta WHERE name = 'base'), 0))",
};

/// The statements of an engine.
pub fn views(dialect: &ViewDialect<'_>) -> String {
    let lines = VIEWS.lines().filter(|line| !line.starts_with("--"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = text.trim_start().replace("CREATE VIEW ", dialect.create);
    let text = text.replace("FROM ", &format!("FROM {}", dialect.tables));
    let text = text.replace("JOIN ", &format!("JOIN {}", dialect.tables));
    let text = call(&text, "AT(", dialect.at);
    let mut text = call(&text, "EPOCH(", dialect.epoch);
    text.push('\n');
    text
}

/// Replaces each `NAME(argument)`.
fn call(text: &str, name: &str, form: &str) -> String {
    let mut parts = text.split(name);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (argument, rest) = part.split_once(')').unwrap_or((part, ""));
        made.push_str(&form.replace("{}", argument));
        made.push_str(rest);
    }
    made
}
