//! A delivery that a person names: by a file, or by its number in the store.
//!
//! A file contains the body of a delivery, as forges show it in their list of recent deliveries, or
//! its headers, an empty line and the body. Its signature is not checked: anyone who can run this
//! command can read the secret. Headers of stored deliveries are not kept; their kind is known, and
//! the body is parsed as that kind.

use tenure_core::forge::ForgeEvent;
use tenure_forges::{Headers, Unreadable};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::DeliveryView;

use super::config::Config;
use super::forge_config::ForgeConfig;
use tenure_app::open::Context;

/// A delivery from a file.
#[derive(Debug, Clone)]
pub struct CapturedDelivery {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl CapturedDelivery {
    pub fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[') | None) {
            return Self {
                headers: Vec::new(),
                body: bytes.to_vec(),
            };
        }
        let mut headers = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (line, after) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, &rest[rest.len()..]),
            };
            rest = after;
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        Self {
            headers,
            body: rest.to_vec(),
        }
    }

    /// Adds a header: `NAME: VALUE`, or a value for the forge's own event header.
    fn add_event(&mut self, forge: &ForgeConfig, typed: &str) {
        let own = forge.row.event_headers.first().copied().unwrap_or_default();
        let (name, value) = typed.split_once(':').unwrap_or((own, typed));
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers
            .push((name.trim().to_owned(), value.trim().to_owned()));
    }
}

/// A delivery that was read.
#[derive(Debug, Clone)]
pub struct ReadDelivery {
    /// The name of its forge.
    pub forge: String,
    pub(super) delivery_id: Option<String>,
    /// None if it can have no effect.
    pub event: Option<ForgeEvent>,
    pub(super) body: Vec<u8>,
    /// Its outcome, if it is stored.
    pub stored: Option<DeliveryView>,
}

impl ReadDelivery {
    /// Reads a delivery from a file; `forge` and `event` supply what the file lacks.
    pub fn of_file(
        config: &Config,
        mut captured: CapturedDelivery,
        forge: Option<&str>,
        event: Option<&str>,
    ) -> Result<Self, Problem> {
        let forge = which(config, forge)?;
        if let Some(typed) = event {
            captured.add_event(forge, typed);
        }
        let sent = captured.headers.iter();
        let headers: Headers = sent.clone().map(|(name, value)| (name, value)).collect();
        let names_forge = sent.clone().any(|(name, _)| is_event_header(name));
        if names_forge && !forge.row.agrees(&headers) {
            let message = format!(
                "the headers are not those of forge {}, which is {}",
                forge.name, forge.row.kind
            );
            let hint = Hint::step("name the forge that sent it with --forge");
            return Err(Problem::new(Class::Invalid, "other_forge", message, hint));
        }
        let read = forge.row.read(&headers, &captured.body);
        Ok(Self {
            forge: forge.name.clone(),
            delivery_id: forge.row.delivery_id(&headers),
            event: read.map_err(|why| unreadable(forge, &why))?,
            body: captured.body,
            stored: None,
        })
    }

    /// Reads a delivery from the store again.
    pub fn of_stored(context: &mut Context, config: &Config, id: i64) -> Result<Self, Problem> {
        let (stored, body) = context.service().delivery(id)?.value;
        let refused = |kind: &str, message: String, hint: &str| {
            Problem::new(Class::Refused, kind, message, Hint::step(hint))
        };
        let Some(forge) = config.forge(&stored.endpoint) else {
            let message = format!(
                "delivery {id} is of forge {}, which is not in {}",
                stored.endpoint,
                config.file.display()
            );
            let hint = "name the file that has this forge with --config";
            return Err(refused("forge_of_delivery", message, hint));
        };
        let Some(body) = body else {
            let message = format!("the body of delivery {id} is no longer kept");
            let hint = "copy it from the forge into a file, and pass that";
            return Err(refused("body_forgotten", message, hint));
        };
        let Some(event) = forge.row.read_again(&stored.event, &body) else {
            let message = format!(
                "delivery {id} ({}) is not a delivery of {}, the kind of forge {}",
                stored.event, forge.row.kind, forge.name
            );
            let hint = "check the kind of the forge in dispatch.toml";
            return Err(refused("unreadable_delivery", message, hint));
        };
        Ok(Self {
            forge: forge.name.clone(),
            delivery_id: stored.delivery_id.clone(),
            event: Some(event),
            body,
            stored: Some(stored),
        })
    }
}

fn is_event_header(name: &str) -> bool {
    let mut all = tenure_forges::FORGES
        .iter()
        .flat_map(|forge| forge.event_headers);
    all.any(|header| header.eq_ignore_ascii_case(name))
}

/// The named forge, or else the only one.
pub(super) fn which<'c>(
    config: &'c Config,
    name: Option<&str>,
) -> Result<&'c ForgeConfig, Problem> {
    let names: Vec<&str> = config
        .forges
        .iter()
        .map(|forge| forge.name.as_str())
        .collect();
    let names = names.join(", ");
    match (name, config.forges.as_slice()) {
        (Some(name), _) => config.forge(name).ok_or_else(|| {
            let message = format!(
                "there is no forge {name} in {}; it has {names}",
                config.file.display()
            );
            let hint = Hint::step("pass one of these names");
            Problem::new(Class::NotFound, "unknown_forge", message, hint)
        }),
        (None, [only]) => Ok(only),
        (None, _) => {
            let message = format!("{} has several forges: {names}", config.file.display());
            let hint = Hint::step("pass the name of the one that you mean");
            Err(Problem::new(Class::Usage, "usage", message, hint))
        }
    }
}

fn unreadable(forge: &ForgeConfig, why: &Unreadable) -> Problem {
    let message = format!("the delivery cannot be read: {why}");
    let hint = match why {
        Unreadable::NoHeader(_) => Hint::step(format!(
            "pass the name of the event that {} sent, such as --event issues",
            forge.row.kind
        )),
        _ => Hint::step("pass a file with the JSON body of a delivery, as the forge shows it"),
    };
    Problem::new(Class::Invalid, "unreadable_delivery", message, hint)
}
