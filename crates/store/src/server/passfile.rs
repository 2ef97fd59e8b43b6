//! The password of a connection in a file of libpq's format: `host:port:database:user:password` on each line.

use super::url::{PostgresUrl, Secret};

/// The password in the first matching line.
pub fn find(text: &str, url: &PostgresUrl) -> Option<Secret> {
    let user = url.user.as_deref().unwrap_or_default();
    let database = url.database.as_deref().unwrap_or(user);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for fields in lines.map(fields) {
        let [host, port, name, role, password] = fields.as_slice() else {
            continue;
        };
        let fits = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        let is_there = url.addresses.iter().any(|at| {
            let is_socket = at.host.starts_with('/');
            let is_host = fits(host, &at.host) || (is_socket && host == "localhost");
            is_host && fits(port, &at.port.to_string())
        });
        if is_there && fits(name, database) && fits(role, user) {
            return Some(Secret::new(password.as_str()));
        }
    }
    None
}

/// The fields of a line; a backslash escapes the next character.
fn fields(line: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            // The last field, the password, may contain colons.
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            '\\' => field.extend(characters.next()),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str, url: &str) -> Option<String> {
        let url = PostgresUrl::parse(url).unwrap();
        find(text, &url).map(|secret| secret.reveal().to_owned())
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        let file = "# a comment\nother:*:*:*:no\ndb:5432:work:ann:one\n*:*:*:ann:two\n*:*:*:*:a\\:b\\\\c:d\n";
        let found = |url| password(file, url);
        assert_eq!(found("postgres://ann@db/work").as_deref(), Some("one"));
        assert_eq!(found("postgres://ann@db:1/work").as_deref(), Some("two"));
        assert_eq!(found("postgres://bob@db/work").as_deref(), Some("a:b\\c:d"));
        assert_eq!(password("db:*:*", "postgres://ann@db/work"), None);
        let local = "localhost:5432:work:ann:socket\n";
        assert_eq!(
            password(local, "postgres://ann@/work?host=/run/pg").as_deref(),
            Some("socket")
        );
    }
}
