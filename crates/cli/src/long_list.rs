//! Answers with a list that may be very long: written page by page, so that neither memory nor a transaction grows with
//! the list.
//!
//! Programs still get exactly one JSON object. Its list comes first, what belongs to the whole list follows, notices come
//! last. If a page cannot be read, the list ends there and `error` says why; the exit code is that of the error. So an
//! object without `error` has the whole list.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tenure_core::notice::{Channel, Pending};
use tenure_core::store::StoreError;
use tenure_service::Answer;
use tenure_service::answer::{VERSION, body};

use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// A list that is being written.
pub struct LongList<'a> {
    app: &'a App,
    notices: Pending,
    damaged: Vec<StoreError>,
    /// Whether the list has entries.
    has_items: bool,
    reader_left: bool,
}

impl<'a> LongList<'a> {
    /// Begins a list after its first question was answered; what fails before that is an error without a list.
    pub fn begin<T>(
        app: &'a App,
        name: &'static str,
        answer: &Answer<T>,
    ) -> Result<Self, CliError> {
        let mut list = Self {
            app,
            notices: answer.notices.clone(),
            damaged: answer.damaged.clone().into_iter().collect(),
            has_items: false,
            reader_left: false,
        };
        if app.style.json {
            list.put(&format!("{{\"v\":{VERSION},\"{name}\":["))?;
        } else {
            let channel = app.style.tell(&list.notices);
            app.delivered(&list.notices, channel);
        }
        Ok(list)
    }

    /// Writes a page; false if the reader has left.
    pub fn page<T: Serialize, A>(
        &mut self,
        items: &[T],
        answer: &Answer<A>,
        text: impl FnOnce(&[T]) -> Lines,
    ) -> Result<bool, CliError> {
        self.damaged.extend(answer.damaged.clone());
        if self.app.style.json {
            return self.write(items);
        }
        self.say(&text(items))?;
        Ok(!self.reader_left)
    }

    /// Writes a page for programs; false if the reader has left.
    pub fn write<T: Serialize>(&mut self, items: &[T]) -> Result<bool, CliError> {
        let mut page = String::new();
        for item in items {
            if self.has_items {
                page.push(',');
            }
            self.has_items = true;
            page.push_str(&json!(item).to_string());
        }
        self.put(&page)?;
        Ok(!self.reader_left)
    }

    /// Writes lines for people.
    pub fn say(&mut self, text: &Lines) -> Result<(), CliError> {
        if self.app.style.json || self.app.style.quiet || text.is_empty() {
            return Ok(());
        }
        self.put(&format!("{}\n", text.as_str()))
    }

    /// Ends the list with what belongs to the whole of it, or with why it is not whole.
    pub fn end(mut self, ended: Result<(), CliError>, parts: Map<String, Value>) -> Outcome {
        let damaged = std::mem::take(&mut self.damaged);
        let failure = match ended {
            Err(failure) => Some(failure),
            Ok(()) => joined(damaged).map(CliError::from),
        };
        if !self.app.style.json {
            return failure.map_or_else(|| Ok(Output::silent(Exit::DONE)), Err);
        }
        let mut parts = parts;
        if let Some(failure) = &failure {
            parts.insert("error".into(), Value::Object(failure.problem.error()));
        }
        // The object goes on where its list ends; its version is written.
        let rest = body(parts, &self.notices).to_string();
        let begun = format!("{{\"v\":{VERSION},");
        let rest = rest.strip_prefix(&begun).unwrap_or(&rest);
        self.put(&format!("],{rest}\n"))?;
        let channel = if self.reader_left {
            Channel::Nowhere
        } else {
            self.app.style.json_channel()
        };
        self.app.delivered(&self.notices, channel);
        Ok(Output::silent(
            failure.map_or(Exit::DONE, |failure| failure.exit),
        ))
    }

    fn put(&mut self, text: &str) -> Result<(), CliError> {
        if !self.reader_left && !text.is_empty() {
            self.reader_left = !crate::output::put_part(text)?;
        }
        Ok(())
    }
}

/// What all pages found damaged, as one.
fn joined(damaged: Vec<StoreError>) -> Option<StoreError> {
    damaged
        .into_iter()
        .reduce(|first, next| match (first, next) {
            (StoreError::Damaged { store, why }, StoreError::Damaged { why: next, .. }) => {
                StoreError::Damaged {
                    store,
                    why: format!("{why}; {next}"),
                }
            }
            (first, _) => first,
        })
}
