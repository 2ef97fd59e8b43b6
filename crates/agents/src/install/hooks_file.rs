//! A settings file with a `hooks` object, for agents whose hooks have the format of Claude Code's.
//!
//! ```json
//! {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "…", "timeout": 5}]}]}}
//! ```
//!
//! One change at a time: find our entries, make the next necessary change as a splice of the text, parse again.
//! Everything else keeps every byte. Our entries are always the last of their list: Codex stores the user's
//! trust by position, and an entry before theirs would remove it.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::json;
use tenure_core::json_fault::fault;

use super::OffSwitch;
use super::command::HookLine;
use super::splice::{Comments, Layout, List, indent_of_line, line_and_column, line_end, spliced};
use crate::event::{EventSpec, Note, Waits};

/// How long the agent lets a hook wait for messages, in seconds. After that, the next turn starts another.
const WAITS_FOR: u32 = 86_400;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct HooksFileError {
    /// Counted from one.
    pub line: usize,
    /// Counted from one.
    pub column: usize,
    pub what: String,
}

impl HooksFileError {
    pub(super) fn at(text: &str, at: usize, what: impl Into<String>) -> Self {
        let (line, column) = line_and_column(text, at);
        Self {
            line,
            column,
            what: what.into(),
        }
    }
}

/// The setting of a hook that the agent goes on without.
const ASYNC: &str = "asyncRewake";
/// How long our hook may wait for an answer from elsewhere, in seconds. The agent's own limit is 600.
const ANSWER_LIMIT: u32 = 580;

/// What an agent calls its hooks for, and the format of its file.
#[derive(Debug)]
pub struct HooksFormat {
    /// The agent's name, the word after `tenure hook`.
    pub agent: &'static str,
    /// Its events, of which some are asked for.
    pub events: &'static [EventSpec],
    /// Whether the file may contain comments.
    pub comments: bool,
    /// Whether the file may begin with a byte order mark.
    pub byte_order_mark: bool,
    /// Whether an entry has a name that the agent shows instead of the command.
    pub named: bool,
    /// Whether the file may name a status line command.
    pub status_line: bool,
}

/// One of our entries in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEntry {
    pub event: String,
    /// The index of the event's group and of the hook in the group, from zero.
    pub place: (usize, usize),
    pub line: HookLine,
    /// Whether it waits for messages instead of reporting the event.
    pub waits: bool,
    /// Whether the agent goes on without it.
    is_async: bool,
    /// The command as written there.
    pub command: String,
    /// What the group is limited to.
    pub matcher: Option<String>,
    /// Its time limit, in the agent's own unit.
    pub timeout: Option<u32>,
    at: Spot,
}

/// Where an entry is: indexes into the document, and the range of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spot {
    root: usize,
    event: usize,
    group: usize,
    hook: usize,
    command: Range<usize>,
}

/// A file's text after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edited {
    Text(String),
    /// Nothing is left in it.
    Nothing,
}

impl HooksFormat {
    /// The text with our entries and no other byte changed. A second call changes nothing.
    pub fn install(&self, text: &str, line: &HookLine) -> Result<String, HooksFileError> {
        self.install_all(text, line, false)
    }

    /// The same, with the hooks that wait for messages if that is wanted, and without them if not.
    pub fn install_all(
        &self,
        text: &str,
        line: &HookLine,
        waits: bool,
    ) -> Result<String, HooksFileError> {
        let (mark, mut body) = self.split_mark(text);
        while let Some(next) = self.next_change(&body, line, waits)? {
            body = next;
        }
        Ok(format!("{mark}{body}"))
    }

    /// The text without our entries, as it was before.
    pub fn uninstall(&self, text: &str) -> Result<Edited, HooksFileError> {
        let (mark, body) = self.split_mark(text);
        // In reverse order of insertion.
        let mut body = self.without_status_line(&body)?;
        if body.trim().is_empty() && !text.trim().is_empty() {
            return Ok(Edited::Nothing);
        }
        while let Some(last) = self.entries_in(&body)?.pop() {
            body = self.without(&body, &last)?;
            if body.trim().is_empty() {
                return Ok(Edited::Nothing);
            }
        }
        Ok(Edited::Text(format!("{mark}{body}")))
    }

    /// Our entries that report events, in file order.
    pub fn entries(&self, text: &str) -> Result<Vec<HookEntry>, HooksFileError> {
        let mut entries = self.entries_in(&self.split_mark(text).1)?;
        entries.retain(|entry| !entry.waits);
        Ok(entries)
    }

    /// Whether one of our entries waits for messages; none if the agent has no such hook.
    pub fn has_waiting(&self, text: &str) -> Result<Option<bool>, HooksFileError> {
        if self.waiting().next().is_none() {
            return Ok(None);
        }
        let entries = self.entries_in(&self.split_mark(text).1)?;
        Ok(Some(entries.iter().any(|entry| entry.waits)))
    }

    /// The events after which a hook may wait for messages.
    fn waiting(&self) -> impl Iterator<Item = &'static str> {
        let waiting = self.events.iter().filter(|event| event.is(Waits));
        waiting.map(|event| event.name)
    }

    /// Whether a person elsewhere may answer what this event asks.
    fn is_answerable(&self, event: &str) -> bool {
        let mut known = self.events.iter().filter(|known| known.name == event);
        known.any(|known| known.limit.is_some() && known.is(Note::Answerable))
    }

    /// The command of our entry for an event, and its time limit.
    fn entry_for(&self, event: &str, timeout: u32, line: &HookLine) -> (String, u32) {
        let answers = line.answers && self.is_answerable(event);
        let command = HookLine {
            answers,
            ..line.clone()
        };
        let timeout = if answers { ANSWER_LIMIT } else { timeout };
        (command.text(self.agent), timeout)
    }

    /// The events that are asked for, each with its time limit in the agent's own unit.
    pub fn asked(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let asked = |event: &EventSpec| Some((event.name, event.limit?));
        self.events.iter().filter_map(asked)
    }

    /// Whether this switch in the file disables the hooks.
    pub fn is_off(&self, text: &str, switch: &OffSwitch) -> bool {
        self.switch(text, switch.path) == Some(switch.value)
    }

    /// Whether the setting at this path is `true`.
    pub fn is_on(&self, text: &str, path: &[&str]) -> bool {
        self.switch(text, path) == Some(true)
    }

    fn switch(&self, text: &str, path: &[&str]) -> Option<bool> {
        let body = self.split_mark(text).1;
        let value = self.parse(&body).ok()??;
        let mut value = &value;
        for name in path {
            value = &property(value.as_object()?, name)?.1.value;
        }
        value.as_boolean_lit().map(|found| found.value)
    }

    /// Events without an entry of ours.
    pub fn missing(&self, entries: &[HookEntry]) -> Vec<&'static str> {
        let names = self.asked().map(|(name, _)| name);
        names
            .filter(|name| {
                let mut all = entries.iter();
                !all.any(|entry| entry.event == *name && !entry.waits)
            })
            .collect()
    }

    pub(super) fn split_mark(&self, text: &str) -> (&'static str, String) {
        match text.strip_prefix('\u{feff}') {
            Some(rest) if self.byte_order_mark => ("\u{feff}", rest.to_owned()),
            _ => ("", text.to_owned()),
        }
    }

    fn next_change(
        &self,
        text: &str,
        line: &HookLine,
        waits: bool,
    ) -> Result<Option<String>, HooksFileError> {
        let entries = self.entries_in(text)?;
        let waits_as_long = |entry: &HookEntry| {
            let limit = self.asked().find(|(name, _)| *name == entry.event);
            let wanted = limit.map(|(name, limit)| self.entry_for(name, limit, line).1);
            // Any other limit that a user set stays.
            entry.waits
                || !self.is_answerable(&entry.event)
                || entry.line.answers == line.answers && (!line.answers || entry.timeout == wanted)
        };
        let is_unwanted = |entry: &HookEntry| {
            (entry.waits && !waits) || self.is_wrong(entry, &entries) || !waits_as_long(entry)
        };
        if let Some(wrong) = entries.iter().rposition(is_unwanted) {
            return self.without(text, &entries[wrong]).map(Some);
        }
        let wanted = |entry: &HookEntry| {
            if entry.waits {
                line.waiting(self.agent)
            } else {
                self.entry_for(&entry.event, 0, line).0
            }
        };
        if let Some(old) = entries.iter().find(|entry| entry.command != wanted(entry)) {
            let new = json!(wanted(old)).to_string();
            return Ok(Some(spliced(text, &[(old.at.command.clone(), new)])));
        }
        let missing = self.missing(&entries);
        if let Some((event, timeout)) = self.asked().find(|(name, _)| missing.contains(name)) {
            let (command, timeout) = self.entry_for(event, timeout, line);
            let hook = json!({"type": "command", "command": command, "timeout": timeout});
            return self.with(text, event, hook).map(Some);
        }
        let is_there = |event| {
            let mut all = entries.iter();
            all.any(|entry| entry.waits && entry.event == event)
        };
        match self.waiting().find(|event| waits && !is_there(*event)) {
            Some(event) => {
                let hook = json!({
                    "type": "command", "command": line.waiting(self.agent), "timeout": WAITS_FOR, ASYNC: true,
                });
                self.with(text, event, hook).map(Some)
            }
            None => Ok(None),
        }
    }

    /// A misplaced entry: for another event, a duplicate, one that the agent would wait for, or one whose matcher excludes
    /// some occasions of the event (a start hook that skips resumes leaves sessions unknown).
    fn is_wrong(&self, entry: &HookEntry, all: &[HookEntry]) -> bool {
        let same = |other: &&HookEntry| other.event == entry.event && other.waits == entry.waits;
        let first = all.iter().find(same);
        let is_limited = entry
            .matcher
            .as_ref()
            .is_some_and(|matcher| !matcher.is_empty() && matcher != "*");
        is_limited
            || first.is_some_and(|first| first.at != entry.at)
            || if entry.waits {
                !entry.is_async || !self.waiting().any(|name| name == entry.event)
            } else {
                !self.asked().any(|(name, _)| name == entry.event)
            }
    }

    pub(super) fn parse<'a>(&self, text: &'a str) -> Result<Option<Value<'a>>, HooksFileError> {
        if !self.comments && !text.trim().is_empty() {
            serde_json::from_str::<serde_json::Value>(text).map_err(|error| HooksFileError {
                line: error.line(),
                column: error.column(),
                what: fault(&error),
            })?;
        }
        let options = ParseOptions {
            allow_comments: self.comments,
            allow_loose_object_property_names: false,
            allow_trailing_commas: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
            let what = error.kind().to_string();
            HooksFileError::at(text, error.range().start, uncapitalised(&what))
        })?;
        Ok(parsed.value)
    }

    fn entries_in(&self, text: &str) -> Result<Vec<HookEntry>, HooksFileError> {
        let Some(value) = self.parse(text)? else {
            return Ok(Vec::new());
        };
        let root = object(text, &value, "the file")?;
        let mut entries = Vec::new();
        let Some((at, hooks)) = property(root, "hooks") else {
            return Ok(entries);
        };
        let events = object(text, &hooks.value, "hooks")?;
        for (event_at, event) in events.properties.iter().enumerate() {
            let name = event.name.as_str();
            let is_known = self.asked().any(|(known, _)| known == name);
            let groups = match event.value.as_array() {
                Some(groups) => groups,
                None if is_known => {
                    return Err(HooksFileError::at(
                        text,
                        event.value.start(),
                        format!("hooks.{name} is not a list"),
                    ));
                }
                None => continue,
            };
            for (group_at, group) in groups.elements.iter().enumerate() {
                for (hook_at, hook) in hooks_of(group).into_iter().enumerate() {
                    let spot = |command| Spot {
                        root: at,
                        event: event_at,
                        group: group_at,
                        hook: hook_at,
                        command,
                    };
                    entries.extend(self.entry(name, group, hook, spot));
                }
            }
        }
        Ok(entries)
    }

    fn entry(
        &self,
        event: &str,
        group: &Value<'_>,
        hook: &Value<'_>,
        spot: impl FnOnce(Range<usize>) -> Spot,
    ) -> Option<HookEntry> {
        let hook = hook.as_object()?;
        let command = property(hook, "command")?.1.value.as_string_lit()?;
        let line = HookLine::read(&command.value, self.agent)?;
        let matcher = property(group.as_object()?, "matcher");
        let timeout = property(hook, "timeout")
            .and_then(|(_, timeout)| timeout.value.as_number_lit()?.value.parse().ok());
        let at = spot(range(command));
        Some(HookEntry {
            event: event.to_owned(),
            place: (at.group, at.hook),
            line,
            waits: HookLine::waits(&command.value),
            is_async: property(hook, ASYNC)
                .is_some_and(|(_, found)| found.value.as_boolean_lit().is_some_and(|it| it.value)),
            command: command.value.to_string(),
            matcher: matcher
                .and_then(|(_, found)| Some(found.value.as_string_lit()?.value.to_string())),
            timeout,
            at,
        })
    }

    /// The text with one more entry.
    fn with(
        &self,
        text: &str,
        event: &str,
        mut hook: serde_json::Value,
    ) -> Result<String, HooksFileError> {
        if self.named
            && let Some(fields) = hook.as_object_mut()
        {
            fields.shift_insert(0, "name".to_owned(), json!("tenure"));
        }
        let group = json!({"hooks": [hook]});
        let Some(value) = self.parse(text)? else {
            return Ok(whole_file(text, &json!({"hooks": {event: [group]}})));
        };
        let root = object(text, &value, "the file")?;
        let add = |list: &List, name: Option<&str>, value: &serde_json::Value| {
            added(text, root, list, name, value)
        };
        let Some((_, hooks)) = property(root, "hooks") else {
            return Ok(add(
                &list_of_object(root),
                Some("hooks"),
                &json!({event: [group]}),
            ));
        };
        let events = object(text, &hooks.value, "hooks")?;
        let Some((_, found)) = property(events, event) else {
            return Ok(add(&list_of_object(events), Some(event), &json!([group])));
        };
        let groups = found.value.as_array().ok_or_else(|| {
            HooksFileError::at(
                text,
                found.value.start(),
                format!("hooks.{event} is not a list"),
            )
        })?;
        Ok(add(&list_of_array(groups), None, &group))
    }

    /// The text without this entry, and without what was added for it alone.
    fn without(&self, text: &str, entry: &HookEntry) -> Result<String, HooksFileError> {
        let gone = || HooksFileError::at(text, entry.at.command.start, "the entry is not there");
        let value = self.parse(text)?.ok_or_else(gone)?;
        let root = object(text, &value, "the file")?;
        let events_prop = root.properties.get(entry.at.root).ok_or_else(gone)?;
        let events = object(text, &events_prop.value, "hooks")?;
        let event = events.properties.get(entry.at.event).ok_or_else(gone)?;
        let groups = event.value.as_array().ok_or_else(gone)?;
        let group = groups.elements.get(entry.at.group).ok_or_else(gone)?;
        let hooks = group
            .as_object()
            .and_then(|group| property(group, "hooks")?.1.value.as_array())
            .ok_or_else(gone)?;
        let all = Comments::Slashes;
        if hooks.elements.len() > 1 {
            return Ok(list_of_array(hooks).remove(text, entry.at.hook, all));
        }
        // From the inside out: a list that was added only for this entry is removed with it.
        let lists = [
            (list_of_array(groups), entry.at.group),
            (list_of_object(events), entry.at.event),
            (list_of_object(root), entry.at.root),
        ];
        for (list, index) in &lists {
            if !list.is_made_for(text, *index, all) {
                return Ok(list.remove(text, *index, all));
            }
        }
        Ok(spliced(text, &[(range(root), String::new())]))
    }
}

/// A file with only this value, after existing comments.
pub(super) fn whole_file(text: &str, value: &serde_json::Value) -> String {
    let layout = Layout::Lines {
        indent: String::new(),
    };
    let whole = rendered(value, &layout, "  ", "\n");
    let above = text.trim();
    let gap = if above.is_empty() { "" } else { "\n" };
    format!("{above}{gap}{whole}\n")
}

/// The text with one more element in a list, formatted like its neighbours.
pub(super) fn added(
    text: &str,
    root: &Object<'_>,
    list: &List,
    name: Option<&str>,
    value: &serde_json::Value,
) -> String {
    let layout = if list.items.is_empty() && is_one_line(text) {
        Layout::OneLine
    } else {
        list.layout(text)
    };
    let value = rendered(value, &layout, &indent_unit(text, root), line_end(text));
    let item = match name {
        Some(name) => format!("{}: {value}", json!(name)),
        None => value,
    };
    list.insert(text, &item, Comments::Slashes)
}

/// Error messages begin with a lower-case letter here.
fn uncapitalised(what: &str) -> String {
    let mut letters = what.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

pub(super) fn range(node: &impl Ranged) -> Range<usize> {
    node.start()..node.end()
}

pub(super) fn object<'a, 'b>(
    text: &str,
    value: &'b Value<'a>,
    name: &str,
) -> Result<&'b Object<'a>, HooksFileError> {
    value
        .as_object()
        .ok_or_else(|| HooksFileError::at(text, value.start(), format!("{name} is not an object")))
}

/// The property with this name that counts: the last.
pub(super) fn property<'a, 'b>(
    object: &'b Object<'a>,
    name: &str,
) -> Option<(usize, &'b ObjectProp<'a>)> {
    let mut named = object.properties.iter().enumerate();
    named.rfind(|(_, property)| property.name.as_str() == name)
}

/// The hooks of a group; none if it is not a group.
fn hooks_of<'a, 'b>(group: &'b Value<'a>) -> Vec<&'b Value<'a>> {
    let hooks = group
        .as_object()
        .and_then(|group| property(group, "hooks")?.1.value.as_array());
    hooks.map_or_else(Vec::new, |hooks| hooks.elements.iter().collect())
}

pub(super) fn list_of_object(object: &Object<'_>) -> List {
    List {
        open: object.start() + 1,
        close: object.end() - 1,
        items: object.properties.iter().map(range).collect(),
    }
}

fn list_of_array(array: &Array<'_>) -> List {
    List {
        open: array.start() + 1,
        close: array.end() - 1,
        items: array.elements.iter().map(range).collect(),
    }
}

/// The indentation of this file.
fn indent_unit(text: &str, root: &Object<'_>) -> String {
    match root.properties.first() {
        Some(first) if text[..first.start()].contains('\n') => {
            indent_of_line(text, first.start()).to_owned()
        }
        _ => "  ".to_owned(),
    }
}

/// Whether the whole document is on one line, and is more than a pair of brackets.
fn is_one_line(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.len() > 2
}

/// A value as text. A blank follows each opening bracket, which marks it as ours.
fn rendered(value: &serde_json::Value, layout: &Layout, unit: &str, end: &str) -> String {
    let (open, close, items): (_, _, Vec<(String, &serde_json::Value)>) = match value {
        serde_json::Value::Object(map) => {
            let named = map
                .iter()
                .map(|(name, value)| (format!("{}: ", json!(name)), value));
            ('{', '}', named.collect())
        }
        serde_json::Value::Array(list) => {
            let plain = list.iter().map(|value| (String::new(), value));
            ('[', ']', plain.collect())
        }
        plain => return plain.to_string(),
    };
    let (inner, before, after) = match layout {
        Layout::OneLine => (Layout::OneLine, " ".to_owned(), " ".to_owned()),
        Layout::Lines { indent } => {
            let deeper = format!("{indent}{unit}");
            (
                Layout::Lines {
                    indent: deeper.clone(),
                },
                format!("{end}{deeper}"),
                format!("{end}{indent}"),
            )
        }
    };
    let parts: Vec<String> = items
        .iter()
        .map(|(name, value)| format!("{before}{name}{}", rendered(value, &inner, unit, end)))
        .collect();
    format!("{open}{}{after}{close}", parts.join(","))
}
