//! Names of things, each with its own type, so that a native id can never be passed for a session.
//!
//! Every type here validates when it is created; a value that exists is well formed. Text from agents, people
//! or files is refused here, before it can become a key or part of a path.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A value that does not have the form of what it names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {shown:?} is not valid: {why}", shown = clip(value))]
pub struct Malformed {
    /// What was being named, for people.
    pub what: &'static str,
    /// The text as given.
    pub value: String,
    /// The rule that it breaks.
    pub why: String,
}

impl Malformed {
    /// Describes `value` as a bad `what`.
    pub fn new(what: &'static str, value: &str, why: impl Into<String>) -> Self {
        Self {
            what,
            value: value.to_owned(),
            why: why.into(),
        }
    }
}

/// Long input is shortened, so that an error stays readable.
fn clip(text: &str) -> String {
    if text.chars().count() <= 80 {
        return text.to_owned();
    }
    let head: String = text.chars().take(77).collect();
    format!("{head}...")
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use text_id;

/// An enum with the names that the store and the JSON use. With a noun it is also read from them.
macro_rules! stored_enum {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        crate::id::stored_enum! { $(#[$doc])* $name { $($(#[$vdoc])* $variant = $text),* } }

        impl $name {
            pub fn parse(text: &str) -> Result<Self, crate::id::Malformed> {
                match text {
                    $($text => Ok($name::$variant),)*
                    _ => {
                        let why = format!("expected one of {}", Self::NAMES.join(", "));
                        Err(crate::id::Malformed::new($what, text, why))
                    }
                }
            }
        }
    };
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// All names, in order.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// The name that the store and the JSON use.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
    };
}
pub(crate) use stored_enum;

/// Identifies a session: a UUIDv7, never reused, never inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Uuid);

impl SessionId {
    /// Creates an id from the store's time and 10 random bytes.
    pub fn mint(wall_millis: i64, random: [u8; 10]) -> Self {
        let millis = u64::try_from(wall_millis).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let well_formed = text.len() == 36 && !text.bytes().any(|b| b.is_ascii_uppercase());
        match Uuid::try_parse(text) {
            Ok(uuid) if well_formed => Ok(Self(uuid)),
            _ => Err(Malformed::new(
                "session id",
                text,
                "expected a lower-case UUID",
            )),
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

text_id! {
    /// A kind of program: `claude`, `codex`, `human`, or any name of the same form.
    #[derive(Serialize, Deserialize)]
    AgentName
}

impl AgentName {
    /// Parses a name of the form `[a-z][a-z0-9_-]{0,31}`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut bytes = text.bytes();
        let first_ok = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
        let rest_ok =
            bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if first_ok && rest_ok && text.len() <= 32 {
            return Ok(Self(text.to_owned()));
        }
        Err(Malformed::new(
            "agent name",
            text,
            "expected a lower-case letter, then at most 31 of a-z, 0-9, _ and -",
        ))
    }

    /// A name from our own source, known to be well formed.
    pub fn known(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

text_id! {
    /// A label of a worker, such as `reviewer`: two roles of one agent have two conversations of one item. Empty by
    /// default.
    #[derive(Default)]
    WorkerRole
}

impl WorkerRole {
    /// Parses a role: none, or a name of the form of an agent's.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        match AgentName::parse(text) {
            Ok(AgentName(name)) => Ok(Self(name)),
            Err(fault) => Err(Malformed {
                what: "role",
                ..fault
            }),
        }
    }

    /// The label, if it is not empty.
    pub fn label(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.as_str())
    }
}

impl std::str::FromStr for WorkerRole {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse(text)
    }
}

/// An agent and its role as people read them: `claude`, or `claude as reviewer`.
pub fn worker_name(agent: &str, role: Option<&str>) -> String {
    match role {
        Some(role) => format!("{agent} as {role}"),
        None => agent.to_owned(),
    }
}

text_id! {
    /// A session's name for people: its agent and a short code, `claude-k7qd`.
    Handle
}

impl Handle {
    /// Letters and digits that are not confused with each other and spell no words.
    const ALPHABET: &'static [u8; 26] = b"23456789bcdfghjkmnpqrstvwz";

    /// Creates a handle with a code of `length` characters from random bytes.
    pub fn mint(agent: &AgentName, length: usize, random: &[u8]) -> Self {
        Self(format!("{agent}-{}", Self::code(length, random)))
    }

    fn code(length: usize, random: &[u8]) -> String {
        let letter = |b: &u8| char::from(Self::ALPHABET[usize::from(*b) % Self::ALPHABET.len()]);
        random.iter().take(length).map(letter).collect()
    }

    /// Parses a handle from a store.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (agent, code) = text
            .rsplit_once('-')
            .ok_or_else(|| Malformed::new("handle", text, "expected AGENT-CODE"))?;
        AgentName::parse(agent)?;
        if code.is_empty() || !code.bytes().all(|b| Self::ALPHABET.contains(&b)) {
            return Err(Malformed::new("handle", text, "expected AGENT-CODE"));
        }
        Ok(Self(text.to_owned()))
    }
}

text_id! {
    /// An agent's own id for one conversation. Never an identity.
    #[derive(Serialize, Deserialize)]
    NativeId
}

impl NativeId {
    /// An id of our choice, for a conversation that does not exist yet: a UUID of random bytes.
    pub fn random(bytes: [u8; 16]) -> Self {
        let uuid = uuid::Builder::from_random_bytes(bytes).into_uuid();
        Self(uuid.hyphenated().to_string())
    }

    /// Reads an id that could also safely be part of a file name.
    ///
    /// Placeholders that broken scripts send (`unknown`, `null`) are refused, because two conversations would
    /// share them.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = |why: &str| Err(Malformed::new("native id", text, why));
        if text.trim().is_empty() {
            return bad("it is blank");
        }
        if text.len() > 256 {
            return bad("it is longer than 256 bytes");
        }
        let plain = |b: u8| {
            b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'=' | b'+')
        };
        if !text.bytes().all(plain)
            || !text.as_bytes()[0].is_ascii_alphanumeric()
            || text.contains("..")
        {
            return bad(
                "expected letters, digits and . _ - : = +, beginning with a letter or digit",
            );
        }
        let placeholder = ["unknown", "null", "none", "undefined", "nil"];
        if placeholder.contains(&text.to_ascii_lowercase().as_str()) {
            return bad("it is a placeholder, not an id");
        }
        Ok(Self(text.to_owned()))
    }
}

/// An id of a letter and a code of ten characters, which is made out of random bytes.
macro_rules! coded_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $prefix:literal) => {
        text_id! {
            $(#[$doc])*
            $name
        }

        impl $name {
            /// Makes an id out of random bytes.
            pub fn mint(random: [u8; 16]) -> Self {
                let code = Handle::code(CODE_LENGTH, &random);
                Self(format!("{}{code}", $prefix))
            }

            pub fn parse(text: &str) -> Result<Self, Malformed> {
                let code = text.strip_prefix($prefix).unwrap_or_default();
                let is_code = |b: u8| Handle::ALPHABET.contains(&b);
                if code.len() == CODE_LENGTH && code.bytes().all(is_code) {
                    return Ok(Self(text.to_owned()));
                }
                let why = concat!(
                    "expected ", $prefix, " and 10 letters or digits, such as ", $prefix, "k7qd2m4zw9"
                );
                Err(Malformed::new($what, text, why))
            }
        }
    };
}

const CODE_LENGTH: usize = 10;

coded_id! {
    /// Identifies one run of an agent: `r-` and a code, `r-k7qd2m4zw9`.
    #[derive(Serialize)]
    RunId, "run id", "r-"
}

coded_id! {
    /// Identifies one question of a session to a person: `q-` and a code, `q-k7qd2m4zw9`.
    #[derive(Serialize)]
    QuestionId, "question id", "q-"
}

coded_id! {
    /// Identifies one job of the queue: `j-` and a code, `j-k7qd2m4zw9`.
    #[derive(Serialize)]
    JobId, "job id", "j-"
}

coded_id! {
    /// Identifies one life of a keeper: `k-` and a code, `k-k7qd2m4zw9`.
    #[derive(Serialize, Deserialize)]
    KeeperId, "keeper id", "k-"
}

text_id! {
    /// A caller's own id for one request, so that a retry gets the same answer.
    RequestId
}

impl RequestId {
    /// Parses 1 to 128 printable ASCII characters.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        if (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        Err(Malformed::new(
            "request id",
            text,
            "expected 1 to 128 printable ASCII characters without spaces",
        ))
    }
}

text_id! {
    /// Identifies a machine and the state directory's random part.
    #[derive(Serialize, Deserialize)]
    HostId
}

impl HostId {
    /// Wraps the value that the host layer derived.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A short name for it in the names of its directories: the beginnings of both its parts.
    pub fn label(&self) -> String {
        let beginning = |part: &str| -> String {
            let plain = part.chars().filter(char::is_ascii_alphanumeric);
            plain.take(LABEL_PART).collect()
        };
        let (machine, random) = self.0.rsplit_once('-').unwrap_or((&self.0, ""));
        beginning(machine) + &beginning(random)
    }
}

/// How many characters of each part of a host id its label has.
const LABEL_PART: usize = 8;

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_id! {
    /// The fencing number of a claim key: +1 on every grant, never reset.
    Epoch(u64)
}

impl Epoch {
    /// The epoch of a key that was never granted.
    pub const NONE: Epoch = Epoch(0);

    /// The epoch of the next grant.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

number_id! {
    /// Counts the processes that a session has had; only the newest counts as the session.
    Life(u32)
}

impl Life {
    /// The life of a session's first process.
    pub const FIRST: Life = Life(1);

    /// The life of the session's next process.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

number_id! {
    /// A position in the event log; grows, with gaps.
    Cursor(u64)
}

number_id! {
    /// A position in the lines of the keys that one waiter waits for; smaller came earlier.
    Ticket(u64)
}

/// The value of TENURE_SESSION: a session and the life in which it was given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionToken {
    pub id: SessionId,
    /// The life in which the variable was set; only the current one counts.
    pub life: Life,
}

impl SessionToken {
    /// Parses `ID.LIFE`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = || Malformed::new("TENURE_SESSION", text, "expected SESSION-ID.LIFE");
        let (id, life) = text.split_once('.').ok_or_else(bad)?;
        let id = SessionId::parse(id).map_err(|_| bad())?;
        let life = Life(life.parse().map_err(|_| bad())?);
        let token = Self { id, life };
        // One spelling only: `.+1` and `.01` are not what tenure gave out.
        (token.to_string() == text).then_some(token).ok_or_else(bad)
    }
}

impl fmt::Display for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.id, self.life)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_i15_native_ids_that_could_be_paths_or_placeholders_are_refused() {
        for bad in [
            "../../x", "/etc/x", "", "   ", "unknown", "NULL", "a\nb", "a\0b", "a..b", "-x", "a b",
            "é",
        ] {
            assert!(NativeId::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(NativeId::parse(&"x".repeat(257)).is_err());
        for good in [
            "b2d6a746-0000-4000-8000-000000000000",
            "ses_e233",
            "01a1dcbc-4a1e",
            "agent:main:1",
        ] {
            assert!(NativeId::parse(good).is_ok(), "{good:?} was refused");
        }
    }

    #[test]
    fn agent_names_have_the_documented_form() {
        for bad in ["", "Claude", "1x", "-x", "a b", &"a".repeat(33)] {
            assert!(AgentName::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(AgentName::parse("my_agent-2").is_ok());
    }

    #[test]
    fn a_token_names_session_and_life() {
        let id = SessionId::mint(1_700_000_000_000, [7; 10]);
        let token = SessionToken { id, life: Life(3) };
        assert_eq!(SessionToken::parse(&token.to_string()), Ok(token));
        for bad in [
            "",
            "x",
            &id.to_string(),
            &format!("{id}."),
            &format!("{id}.-1"),
            &format!("{id}.+1"),
            &format!("{id}.01"),
            &format!("{}.1", id.to_string().to_uppercase()),
            "..1",
        ] {
            assert!(SessionToken::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn run_ids_read_back() {
        let id = RunId::mint([7; 16]);
        assert_eq!(id.as_str(), "r-9999999999");
        assert_eq!(RunId::parse(id.as_str()), Ok(id));
        for bad in [
            "",
            "r-",
            "9999999999",
            "r-999999999",
            "r-99999999999",
            "r-999999999a",
            "../x",
        ] {
            assert!(RunId::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn the_ids_that_errors_give_as_examples_are_valid() {
        let example = |error: Malformed| {
            let example = error.why.rsplit(' ').next().map(str::to_owned);
            example.expect("an example")
        };
        let run = example(RunId::parse("x").expect_err("it is not an id"));
        assert!(RunId::parse(&run).is_ok(), "{run}");
        let job = example(JobId::parse("x").expect_err("it is not an id"));
        assert!(JobId::parse(&job).is_ok(), "{job}");
    }

    #[test]
    fn a_minted_handle_is_parsed_as_itself() {
        let agent = AgentName::known("my-agent");
        let handle = Handle::mint(&agent, 4, &[0, 1, 2, 3]);
        assert_eq!(handle.as_str(), "my-agent-2345");
        assert_eq!(Handle::parse(handle.as_str()), Ok(handle));
    }
}
