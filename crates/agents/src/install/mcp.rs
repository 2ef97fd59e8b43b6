//! The entry that makes an agent start `tenure mcp`, among the MCP servers in its own settings:
//!
//! ```json
//! {"mcpServers": {"tenure": {"command": "…/tenure", "args": ["mcp"]}}}
//! ```
//!
//! Only an entry of that name that runs `tenure mcp` is ours; another server with that name is refused, and stays. The
//! entry is added after the hooks of the same file, and removed before them.

use std::ops::Range;

use serde_json::{Value, json};
use toml_edit::{Document, Item, Table};

use super::hooks_file::{
    Edited, HooksFileError, HooksFormat, added, list_of_object, object, property, range, whole_file,
};
use super::splice::{Comments, line_end, spliced};

/// The name of our server.
const NAME: &str = "tenure";
/// What it runs.
const VERB: &str = "mcp";
/// The variables by which tenure finds its store, for an agent that gives its servers no others.
const VARIABLES: [&str; 3] = ["TENURE_HOME", "TENURE_STORE", "XDG_CONFIG_HOME"];
/// The comment above a table that we added.
const COMMENT: &str = "# The tools of tenure; `tenure uninstall codex` removes them.";
const TABLE: &str = "mcp_servers";

/// How an agent keeps its MCP servers.
#[derive(Debug)]
pub struct McpServers {
    /// The file, in the agent's directory: the first that is there, else the first.
    pub files: &'static [&'static str],
    /// Whether the file lies beside that directory, unless a variable moves the directory.
    pub is_beside: bool,
    pub format: McpFormat,
}

#[derive(Debug)]
pub enum McpFormat {
    /// An object with this name; the function makes an entry of it.
    Json {
        name: &'static str,
        entry: fn(&str) -> Value,
        file: HooksFormat,
    },
    /// A table of Codex's config.toml.
    Toml,
}

/// An entry with a program and its arguments.
pub fn command_and_args(program: &str) -> Value {
    json!({"command": program, "args": [VERB]})
}

/// The same with its kind.
pub fn stdio(program: &str) -> Value {
    json!({"type": "stdio", "command": program, "args": [VERB]})
}

/// An entry with one list.
pub fn local(program: &str) -> Value {
    json!({"type": "local", "command": [program, VERB], "enabled": true})
}

impl McpServers {
    /// The tenure that our entry runs; none without an entry of ours.
    pub fn program(&self, text: &str) -> Result<Option<String>, HooksFileError> {
        match &self.format {
            McpFormat::Json { name, file, .. } => {
                let (_, body) = file.split_mark(text);
                Ok(found(file, &body, name)?.and_then(|entry| program_of(&entry)))
            }
            McpFormat::Toml => Ok(in_toml(text)?.and_then(|entry| program_of(&entry))),
        }
    }

    /// The text with our entry for this tenure and no other byte changed. Of an entry that runs another tenure only the
    /// program is replaced: what the user added to it stays. A second call changes nothing.
    pub fn install(&self, text: &str, program: &str) -> Result<String, HooksFileError> {
        match self.program(text)? {
            Some(there) if there == program => Ok(text.to_owned()),
            Some(_) => self.replace(text, program),
            None => self.add(text, program),
        }
    }

    /// The text with this program in our entry.
    fn replace(&self, text: &str, program: &str) -> Result<String, HooksFileError> {
        let (mark, at, quoted) = match &self.format {
            McpFormat::Json { name, file, .. } => {
                let (mark, body) = file.split_mark(text);
                let at = program_in_json(file, &body, name)?;
                (mark, at, json!(program).to_string())
            }
            McpFormat::Toml => {
                let (mark, body) = split_mark(text);
                (mark, program_in_toml(body)?, quoted(program))
            }
        };
        let at = at.ok_or_else(|| unusual(text, 0))?;
        let at = at.start + mark.len()..at.end + mark.len();
        Ok(spliced(text, &[(at, quoted)]))
    }

    /// The text without our entry, as it was before.
    pub fn uninstall(&self, text: &str) -> Result<Edited, HooksFileError> {
        if self.program(text)?.is_none() {
            return Ok(Edited::Text(text.to_owned()));
        }
        let left = match &self.format {
            McpFormat::Json { name, file, .. } => {
                let (mark, body) = file.split_mark(text);
                let left = without(file, &body, name)?;
                if left.trim().is_empty() {
                    return Ok(Edited::Nothing);
                }
                format!("{mark}{left}")
            }
            McpFormat::Toml => {
                let (mark, body) = split_mark(text);
                format!("{mark}{}", without_table(body)?)
            }
        };
        Ok(if left.trim().is_empty() {
            Edited::Nothing
        } else {
            Edited::Text(left)
        })
    }

    fn add(&self, text: &str, program: &str) -> Result<String, HooksFileError> {
        match &self.format {
            McpFormat::Json { name, entry, file } => {
                let (mark, body) = file.split_mark(text);
                if found(file, &body, name)?.is_some() {
                    return Err(another(text));
                }
                let with = with_entry(file, &body, name, &entry(program))?;
                Ok(format!("{mark}{with}"))
            }
            McpFormat::Toml => {
                if in_toml(text)?.is_some() {
                    return Err(another(text));
                }
                let block = block(text, program);
                let with = match text {
                    "" => block.trim_start().to_owned(),
                    text => format!("{text}{block}"),
                };
                // A table written as `mcp_servers = {…}` cannot have a part elsewhere.
                toml(split_mark(&with).1)?;
                Ok(with)
            }
        }
    }
}

fn another(text: &str) -> HooksFileError {
    HooksFileError::at(text, 0, "another MCP server is named tenure")
}

fn unusual(text: &str, at: usize) -> HooksFileError {
    let what = "the MCP server tenure is written in a form that tenure cannot edit";
    HooksFileError::at(text, at, what)
}

/// The program of an entry that runs `tenure mcp`.
fn program_of(entry: &Value) -> Option<String> {
    let words: Vec<&str> = match (&entry["command"], &entry["args"]) {
        (Value::String(program), Value::Array(args)) => std::iter::once(Some(program.as_str()))
            .chain(args.iter().map(Value::as_str))
            .collect::<Option<_>>()?,
        (Value::Array(words), _) => words.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    let [program, VERB] = words[..] else {
        return None;
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    name.starts_with(NAME).then(|| program.to_owned())
}

/// The entry with our name, also one that a person made.
fn found(file: &HooksFormat, text: &str, name: &str) -> Result<Option<Value>, HooksFileError> {
    let Some(value) = file.parse(text)? else {
        return Ok(None);
    };
    let root = object(text, &value, "the file")?;
    let Some((_, servers)) = property(root, name) else {
        return Ok(None);
    };
    let servers = object(text, &servers.value, name)?;
    let entry = property(servers, NAME).map(|(_, entry)| &text[range(&entry.value)]);
    Ok(entry.map(|entry| serde_json::from_str(entry).unwrap_or(Value::Null)))
}

/// Where the program of the entry is.
fn program_in_json(
    file: &HooksFormat,
    text: &str,
    name: &str,
) -> Result<Option<Range<usize>>, HooksFileError> {
    let Some(value) = file.parse(text)? else {
        return Ok(None);
    };
    let entry = value
        .as_object()
        .and_then(|root| property(root, name)?.1.value.as_object())
        .and_then(|servers| property(servers, NAME)?.1.value.as_object());
    let command = entry.and_then(|entry| Some(&property(entry, "command")?.1.value));
    let words = command.and_then(|command| command.as_array());
    let program = match words {
        Some(words) => words.elements.first(),
        None => command,
    };
    Ok(program.map(range))
}

fn with_entry(
    file: &HooksFormat,
    text: &str,
    name: &str,
    entry: &Value,
) -> Result<String, HooksFileError> {
    let Some(value) = file.parse(text)? else {
        return Ok(whole_file(text, &json!({name: {NAME: entry}})));
    };
    let root = object(text, &value, "the file")?;
    let Some((_, servers)) = property(root, name) else {
        let servers = json!({NAME: entry});
        return Ok(added(
            text,
            root,
            &list_of_object(root),
            Some(name),
            &servers,
        ));
    };
    let servers = object(text, &servers.value, name)?;
    let list = list_of_object(servers);
    Ok(added(text, root, &list, Some(NAME), entry))
}

/// The text without our entry, and without what was added for it alone.
fn without(file: &HooksFormat, text: &str, name: &str) -> Result<String, HooksFileError> {
    let Some(value) = file.parse(text)? else {
        return Ok(text.to_owned());
    };
    let root = object(text, &value, "the file")?;
    let Some((at_root, servers)) = property(root, name) else {
        return Ok(text.to_owned());
    };
    let servers = object(text, &servers.value, name)?;
    let Some((at, _)) = property(servers, NAME) else {
        return Ok(text.to_owned());
    };
    for (list, index) in [
        (list_of_object(servers), at),
        (list_of_object(root), at_root),
    ] {
        if !list.is_made_for(text, index, Comments::Slashes) {
            return Ok(list.remove(text, index, Comments::Slashes));
        }
    }
    Ok(spliced(text, &[(range(root), String::new())]))
}

fn toml(text: &str) -> Result<Document<&str>, HooksFileError> {
    Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        HooksFileError::at(text, at, error.message().replace('\n', "; "))
    })
}

/// The byte order mark, which Codex accepts, and the rest.
fn split_mark(text: &str) -> (&str, &str) {
    let length = if text.starts_with('\u{feff}') { 3 } else { 0 };
    text.split_at(length)
}

/// The table with our name, as JSON.
fn in_toml(text: &str) -> Result<Option<Value>, HooksFileError> {
    let document = toml(split_mark(text).1)?;
    let Some(entry) = entry_of(&document) else {
        return Ok(None);
    };
    let words = |item: &Item| -> Option<Vec<String>> {
        let words = item.as_array()?.iter();
        words.map(|word| Some(word.as_str()?.to_owned())).collect()
    };
    Ok(Some(json!({
        "command": entry.get("command").and_then(Item::as_str),
        "args": entry.get("args").and_then(words),
    })))
}

fn entry_of<'a>(document: &'a Document<&str>) -> Option<&'a Item> {
    document.get(TABLE)?.get(NAME)
}

/// Where the program of the entry is.
fn program_in_toml(text: &str) -> Result<Option<Range<usize>>, HooksFileError> {
    let document = toml(text)?;
    let command = entry_of(&document).and_then(|entry| entry.get("command"));
    Ok(command.and_then(Item::span))
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// The block for the end of a file.
fn block(text: &str, program: &str) -> String {
    let end = line_end(text);
    let variables = VARIABLES.map(quoted).join(", ");
    let program = quoted(program);
    format!(
        "{end}{COMMENT}{end}[{TABLE}.{NAME}]{end}command = {program}{end}args = [\"{VERB}\"]{end}\
         env_vars = [{variables}]{end}"
    )
}

/// The text without the table, and without the tables in it that the user or Codex added: what is left of them would be
/// a server without a command, for which Codex refuses the whole file.
fn without_table(text: &str) -> Result<String, HooksFileError> {
    let document = toml(text)?;
    let Some(entry) = entry_of(&document) else {
        return Ok(text.to_owned());
    };
    if !document.get(TABLE).is_some_and(Item::is_table) {
        // The other servers are on the same lines.
        let at = document.get(TABLE).and_then(Item::span);
        return Err(unusual(text, at.map_or(0, |at| at.start)));
    }
    let mut lines = Vec::new();
    collect_lines(text, entry, None, &mut lines);
    lines.sort_by_key(|range| range.start);
    let mut cuts: Vec<Range<usize>> = Vec::new();
    for range in lines {
        match cuts.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => cuts.push(range),
        }
    }
    let cuts: Vec<_> = cuts
        .into_iter()
        .map(|cut| {
            let (before, after) = (&text[..cut.start], &text[cut.end..]);
            let is_open = !before.is_empty() && !before.ends_with('\n');
            let glues = is_open && !after.is_empty() && !after.starts_with(['\r', '\n']);
            let kept = if glues { line_end(text) } else { "" };
            (cut, kept.to_owned())
        })
        .collect();
    let at = cuts.first().map_or(0, |(cut, _)| cut.start);
    let left = spliced(text, &cuts);
    match in_toml(&left) {
        Ok(None) => Ok(left),
        _ => Err(unusual(text, at)),
    }
}

/// Collects the lines of an entry: of a table from its header to its last value, otherwise of each value.
fn collect_lines(text: &str, item: &Item, key: Option<usize>, lines: &mut Vec<Range<usize>>) {
    match item {
        Item::None => {}
        Item::Value(value) => {
            if let Some(span) = value.span() {
                let start = key.map_or(span.start, |key| key.min(span.start));
                lines.push(line_start(text, start)..line_after(text, span.end));
            }
        }
        Item::Table(table) => collect_table(text, table, lines),
        Item::ArrayOfTables(tables) => {
            for table in tables {
                collect_table(text, table, lines);
            }
        }
    }
}

fn collect_table(text: &str, table: &Table, lines: &mut Vec<Range<usize>>) {
    let first = lines.len();
    let mut values = 0;
    for (name, item) in table {
        let key = table.get_key_value(name).and_then(|(key, _)| key.span());
        let is_inside = match item {
            Item::Value(_) => true,
            Item::Table(inner) => inner.is_dotted(),
            Item::None | Item::ArrayOfTables(_) => false,
        };
        let before = lines.len();
        collect_lines(text, item, key.map(|key| key.start), lines);
        if is_inside {
            let own = lines[before..].iter().map(|range| range.end).max();
            values = values.max(own.unwrap_or(0));
        }
    }
    if table.is_dotted() || table.is_implicit() {
        return;
    }
    if let Some(header) = table.span() {
        let end = values.max(line_after(text, header.end));
        lines.insert(first, block_start(text, header.start)..end);
    }
}

/// Where what belongs to a table begins: with our comment above its header and the line end before that, or with one
/// empty line.
fn block_start(text: &str, header: usize) -> usize {
    let start = line_start(text, header);
    let above = line_before(text, start);
    let line = text[above..start].trim_end();
    if line == COMMENT {
        let before = text[..above].strip_suffix('\n');
        let before = before.map(|before| before.strip_suffix('\r').unwrap_or(before));
        return before.map_or(above, str::len);
    }
    if line.is_empty() { above } else { start }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The start of the line before the line that starts here.
fn line_before(text: &str, start: usize) -> usize {
    line_start(text, start.saturating_sub(1))
}

/// The start of the line after the one that this is in.
fn line_after(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter;

    const OWN: &str = "/opt/tenure";

    fn servers(agent: &str) -> &'static McpServers {
        let settings = adapter(agent).and_then(|row| row.settings.as_ref());
        settings.and_then(|settings| settings.mcp.as_ref()).unwrap()
    }

    #[test]
    fn what_is_added_is_taken_out_without_a_trace() {
        let json = [
            "",
            "{}",
            "{\n}\n",
            "{\"a\": 1}",
            "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"b\": {\"command\": \"c\"}\n  }\n}\n",
            "{\r\n\t\"mcpServers\": {},\r\n\t\"a\": [1, 2]\r\n}\r\n",
        ];
        let toml = [
            "",
            "model = \"o3\"\n",
            "model = \"o3\"",
            "# mine\r\n[mcp_servers.b]\r\ncommand = \"c\"\r\n",
            "[tui]\nx = 1 # one\n\n\n",
        ];
        for (agent, texts) in [
            ("claude", &json[..]),
            ("gemini", &json[..]),
            ("qwen", &json[..]),
            ("opencode", &json[..]),
            ("codex", &toml[..]),
        ] {
            let servers = servers(agent);
            for before in texts {
                let with = servers.install(before, OWN).unwrap();
                assert_eq!(
                    servers.program(&with).unwrap().as_deref(),
                    Some(OWN),
                    "{with}"
                );
                assert_eq!(servers.install(&with, OWN).unwrap(), with, "again");
                let left = match servers.uninstall(&with).unwrap() {
                    Edited::Text(left) => left,
                    Edited::Nothing => String::new(),
                };
                let is_blank = |text: &str| text.trim().is_empty() || text.trim() == "{}";
                assert!(
                    left == *before
                        || is_blank(before) && is_blank(&left)
                        || before.trim() == "{\n}" && left.is_empty(),
                    "{agent}: {before:?} became {left:?}"
                );
                let moved = servers.install(&with, "/usr/bin/tenure").unwrap();
                let program = servers.program(&moved).unwrap();
                assert_eq!(program.as_deref(), Some("/usr/bin/tenure"), "{moved}");
            }
        }
    }

    #[test]
    fn another_server_of_that_name_is_refused_and_stays() {
        let json = r#"{"mcpServers": {"tenure": {"command": "other", "args": []}}}"#;
        let toml = "[mcp_servers.tenure]\ncommand = \"other\"\n";
        for (agent, text) in [("claude", json), ("codex", toml)] {
            let servers = servers(agent);
            assert_eq!(servers.program(text).unwrap(), None);
            assert!(servers.install(text, OWN).is_err(), "{agent}");
            let left = servers.uninstall(text).unwrap();
            assert_eq!(left, Edited::Text(text.to_owned()));
        }
    }

    #[test]
    fn what_is_no_settings_file_is_refused() {
        assert!(servers("claude").install("[1]", OWN).is_err());
        assert!(
            servers("gemini")
                .install("{\"mcpServers\": 7}", OWN)
                .is_err()
        );
        assert!(servers("codex").install("mcp_servers = {}\n", OWN).is_err());
        assert!(servers("codex").install("x = \n", OWN).is_err());
    }

    #[test]
    fn what_codex_and_the_user_added_to_the_entry_goes_with_it() {
        let tools = "\n[mcp_servers.tenure.tools.claim]\napproval_mode = \"approve\"\n";
        let after = "\n[projects.\"/w\"] # mine\ntrust_level = \"trusted\"\n";
        let servers = servers("codex");
        for before in [
            "model = \"o3\"\n",
            "model = \"o3\"",
            "\u{feff}# mine\n\n[tui]\nx = 1 # one\n",
        ] {
            let with = servers.install(before, OWN).unwrap();
            let timeouts = with.clone()
                + "startup_timeout_sec = 20 # slow\n[mcp_servers.tenure.env]\nA = \"b\"\n";
            for (with, after) in [
                (with.clone() + tools, ""),
                (timeouts.clone() + tools, ""),
                (with + tools + after, after),
                (timeouts + after + tools, after),
            ] {
                for end in ["\n", "\r\n"] {
                    let with = with.replace('\n', end);
                    let expected = format!("{before}{after}").replace('\n', end);
                    let left = servers.uninstall(&with).unwrap();
                    assert_eq!(left, Edited::Text(expected), "through\n{with}");
                }
            }
        }
        let touching = servers.install("a = 1", OWN).unwrap() + "[b]\n";
        let left = Edited::Text("a = 1\n[b]\n".to_owned());
        assert_eq!(servers.uninstall(&touching).unwrap(), left);
    }

    #[test]
    fn an_entry_that_the_user_wrote_goes_out_by_its_lines_or_is_refused() {
        let servers = servers("codex");
        for (with, left) in [
            (
                "a = 1\nmcp_servers.tenure.command = \"tenure\"\nmcp_servers.tenure.args = [\n\"mcp\"\n]\nb = 2\n",
                "a = 1\nb = 2\n",
            ),
            (
                "[mcp_servers]\n# one\ntenure = { command = \"tenure\", args = [\"mcp\"] }\n[mcp_servers.b]\ncommand = \"c\"\n",
                "[mcp_servers]\n# one\n[mcp_servers.b]\ncommand = \"c\"\n",
            ),
        ] {
            let found = servers.uninstall(with).unwrap();
            assert_eq!(found, Edited::Text(left.to_owned()));
        }
        let inline = "mcp_servers = { tenure = { command = \"tenure\", args = [\"mcp\"] }, b = {} }\nc = 1\n";
        let left = servers.uninstall(inline).unwrap_err();
        assert!(left.what.contains("cannot edit"), "{left}");
    }

    #[test]
    fn a_moved_tenure_changes_only_the_program_of_the_entry() {
        let json = "{\n  \"mcpServers\": {\n    \"tenure\": {\"timeout\": 9, \"command\": \"/opt/tenure\", \"args\": [\"mcp\"], \"trust\": true},\n    \"b\": {}\n  }\n}\n";
        let list = "{\"mcp\": {\"tenure\": {\"enabled\": false, \"command\": [\"/opt/tenure\", \"mcp\"]}}}";
        let toml = "\u{feff}# mine\r\n[mcp_servers.tenure]\r\nenabled = false # mine\r\ncommand = '/opt/tenure'\r\n\
                    args = [\"mcp\"]\r\n[mcp_servers.tenure.env]\r\nA = \"b\"\r\n";
        for (agent, text) in [
            ("claude", json),
            ("gemini", json),
            ("qwen", json),
            ("opencode", list),
            ("codex", toml),
        ] {
            let moved = servers(agent).install(text, "/usr/bin/tenure").unwrap();
            let quoted = ["\"/opt/tenure\"", "'/opt/tenure'"];
            let expected = quoted.iter().fold(text.to_owned(), |text, old| {
                text.replace(old, "\"/usr/bin/tenure\"")
            });
            assert_eq!(moved, expected, "{agent}");
        }
    }
}
