//! Templates of mirrors: text with `{name}` or `{name:8}`, the first characters of a value.

use std::path::Path;

use tenure_service::mirror::content::SessionContext;

/// The placeholders.
const PLACES: &[&str] = &["session", "handle", "native_id", "agent", "repo", "project"];

/// A placeholder as it was written, and what it means.
struct Placeholder<'a> {
    name: &'a str,
    /// How many characters of the value count.
    first: Option<usize>,
}

/// A part of a template.
enum TemplatePart<'a> {
    Text(&'a str),
    Place(Placeholder<'a>),
}

/// Checks a template; says what is wrong with it.
pub fn check(text: &str) -> Result<(), String> {
    parts(text).map(drop)
}

/// Fills a template in; none if the session lacks a value that the template names.
///
/// `written` turns a value into what stands in the text.
pub fn fill(
    text: &str,
    context: &SessionContext,
    written: impl Fn(&str) -> String,
) -> Option<String> {
    let mut filled = String::new();
    for part in parts(text).ok()? {
        match part {
            TemplatePart::Text(text) => filled.push_str(text),
            TemplatePart::Place(place) => {
                let value = value_of(place.name, context)?;
                let first = place.first.unwrap_or(usize::MAX);
                let value: String = value.chars().take(first).collect();
                filled.push_str(&written(&value));
            }
        }
    }
    Some(filled)
}

fn value_of<'a>(name: &str, context: &'a SessionContext) -> Option<&'a str> {
    let session = &context.session;
    match name {
        "session" => Some(&session.id),
        "handle" => Some(&session.handle),
        "native_id" => session.native_id.as_deref(),
        "agent" => Some(&session.agent),
        "repo" => session.repo.as_deref(),
        "project" => Path::new(&session.dir).file_name()?.to_str(),
        _ => None,
    }
}

fn parts(text: &str) -> Result<Vec<TemplatePart<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((place, left)) = after.split_once('}') else {
            return Err("has a brace that is not closed".into());
        };
        parts.push(TemplatePart::Text(before));
        parts.push(TemplatePart::Place(read(place)?));
        rest = left;
    }
    parts.push(TemplatePart::Text(rest));
    Ok(parts)
}

fn read(place: &str) -> Result<Placeholder<'_>, String> {
    let (name, first) = match place.split_once(':') {
        None => (place, None),
        Some((name, digits)) => match digits.parse::<usize>() {
            Ok(first) if first > 0 => (name, Some(first)),
            _ => {
                return Err(format!(
                    "has {{{place}}}; expected a number of characters after the colon, as in {{native_id:8}}"
                ));
            }
        },
    };
    if !PLACES.contains(&name) {
        let known = PLACES.join("}, {");
        return Err(format!(
            "has the unknown {{{name}}}; expected one of {{{known}}}"
        ));
    }
    Ok(Placeholder { name, first })
}
