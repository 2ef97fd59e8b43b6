//! `[[notify]]`: the user's channels for notifications. A project's file may not set them, because a channel names a
//! command or an address.

use std::path::PathBuf;

use tenure_core::notification::Reason;

/// Where notifications go.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NotifyChannel {
    /// Its name; by default its kind.
    pub name: String,
    #[serde(flatten)]
    pub kind: ChannelKind,
    /// The reasons that it reports.
    #[serde(serialize_with = "names")]
    pub on: Vec<Reason>,
    /// Whether it may show titles, questions and reasons in words.
    pub titles: bool,
    /// The settings file that defines it.
    pub origin: String,
}

impl NotifyChannel {
    /// Whether it reports only to the terminal of a process that stays.
    pub fn needs_terminal(&self) -> bool {
        matches!(self.kind, ChannelKind::Terminal { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "channel", rename_all = "lowercase")]
pub enum ChannelKind {
    /// A shell command that gets the event as JSON on stdin.
    Command { command: String },
    /// `notify-send`.
    Desktop,
    /// The terminal of `tenure watch --notify`.
    Terminal { form: TerminalForm },
    /// An HTTP address.
    Webhook {
        url: String,
        format: WebhookFormat,
        /// The file with the secret of the signature.
        secret_file: Option<PathBuf>,
    },
}

impl ChannelKind {
    pub fn as_str(&self) -> &'static str {
        match self {
            ChannelKind::Command { .. } => "command",
            ChannelKind::Desktop => "desktop",
            ChannelKind::Terminal { .. } => "terminal",
            ChannelKind::Webhook { .. } => "webhook",
        }
    }
}

/// How a terminal is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TerminalForm {
    /// As its variables say.
    Auto,
    Osc9,
    Osc99,
    Osc777,
    Bell,
}

/// The body of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookFormat {
    /// The event as JSON.
    Plain,
    Ntfy,
    Slack,
}

fn names<S: serde::Serializer>(on: &[Reason], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(on.iter().map(|reason| reason.as_str()))
}

/// What is wrong with one that is no array.
pub const BRACKETS: &str = "expected [[notify]], with two brackets on each side";

/// Parses the value of `notify`, which must be an array of tables.
pub fn parse(
    value: &toml::Value,
    origin: &str,
    known: &[NotifyChannel],
) -> Result<Vec<NotifyChannel>, String> {
    let tables = value.as_array();
    let tables = tables.ok_or(BRACKETS)?;
    let mut found: Vec<NotifyChannel> = Vec::new();
    for table in tables {
        let table = table
            .as_table()
            .ok_or("expected [[notify]] with channel and on")?;
        let channel = one(table, origin)?;
        let mut others = known.iter().chain(&found);
        if others.any(|other| other.name == channel.name) {
            let name = &channel.name;
            return Err(format!(
                "two channels are named {name:?}; give one another `name`"
            ));
        }
        found.push(channel);
    }
    Ok(found)
}

fn one(table: &toml::Table, origin: &str) -> Result<NotifyChannel, String> {
    let text = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(format!("{key}: expected a string in quotes")),
        },
    };
    let needed = |key: &str| text(key)?.ok_or_else(|| format!("{key} is missing"));
    let kind = needed("channel")?;
    let (kind, own): (ChannelKind, &[&str]) = match kind.as_str() {
        "command" => {
            let command = needed("command")?;
            (ChannelKind::Command { command }, &["command"])
        }
        "desktop" => (ChannelKind::Desktop, &[]),
        "terminal" => {
            let form = text("form")?.map_or(Ok(TerminalForm::Auto), |form| {
                named(&form, "form", "auto, osc9, osc99, osc777 or bell")
            })?;
            (ChannelKind::Terminal { form }, &["form"])
        }
        "webhook" => {
            let url = needed("url")?;
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err(format!("url {url:?} must begin with https:// or http://"));
            }
            let format = text("format")?.map_or(Ok(WebhookFormat::Plain), |format| {
                named(&format, "format", "plain, ntfy or slack")
            })?;
            let secret_file = text("secret_file")?.map(PathBuf::from);
            if secret_file.as_ref().is_some_and(|file| !file.is_absolute()) {
                return Err("secret_file must be an absolute path".to_owned());
            }
            let kind = ChannelKind::Webhook {
                url,
                format,
                secret_file,
            };
            (kind, &["url", "format", "secret_file"])
        }
        other => {
            return Err(format!(
                "channel {other:?}: expected command, desktop, terminal or webhook"
            ));
        }
    };
    let common = ["channel", "name", "on", "titles"];
    for key in table.keys() {
        if !common.contains(&key.as_str()) && !own.contains(&key.as_str()) {
            let kind = kind.as_str();
            return Err(format!("{key} is not a setting of the channel {kind}"));
        }
    }
    let name = text("name")?.unwrap_or_else(|| kind.as_str().to_owned());
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("name {name:?}: expected letters, digits, - and _"));
    }
    let titles = match table.get("titles") {
        None => false,
        Some(value) => value.as_bool().ok_or("titles: expected true or false")?,
    };
    let on = match table.get("on") {
        None => Reason::FOR_A_PERSON.to_vec(),
        Some(value) => reasons(value)?,
    };
    Ok(NotifyChannel {
        name,
        kind,
        on,
        titles,
        origin: origin.to_owned(),
    })
}

fn reasons(value: &toml::Value) -> Result<Vec<Reason>, String> {
    let expected = || format!("on: expected a list of {}", Reason::NAMES.join(", "));
    let all = value.as_array().ok_or_else(expected)?;
    let reason = |one: &toml::Value| Reason::parse(one.as_str()?).ok();
    let found: Option<Vec<Reason>> = all.iter().map(reason).collect();
    found.filter(|found| !found.is_empty()).ok_or_else(expected)
}

/// A value by its name, as it is written in JSON.
fn named<T: serde::de::DeserializeOwned>(text: &str, key: &str, all: &str) -> Result<T, String> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value).map_err(|_| format!("{key} {text:?}: expected {all}"))
}
