//! The tools and resources: what each is called, what a model is told about it, and what runs it.

mod act;
mod look;
mod mission;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use tenure_service::answer::{Class, Hint, Problem};

use super::call::ToolCall;
use super::reply::ToolResult;

/// What a call may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// It adds something, or moves what is the caller's own.
    Adds,
    /// It gives something up.
    GivesUp,
}

/// What a model is told about a tool.
#[derive(Debug)]
pub struct Spec {
    pub name: &'static str,
    /// What it does, as a sentence without its end.
    pub title: &'static str,
    /// What it is for, and when not to use it.
    pub description: &'static str,
    pub effect: Effect,
    /// Whether a second call with the same arguments changes nothing more.
    pub is_repeatable: bool,
}

/// The arguments of a tool, which run it.
trait Arguments: serde::de::DeserializeOwned + schemars::JsonSchema {
    const SPEC: Spec;

    fn run(self, call: &ToolCall) -> ToolResult;
}

/// A tool.
pub struct ToolRow {
    pub spec: Spec,
    schema: fn() -> JsonObject,
    run: fn(Map<String, Value>, &ToolCall) -> ToolResult,
}

pub const TOOLS: [ToolRow; 8] = [
    row::<look::Status>(),
    row::<look::Sessions>(),
    row::<act::Claim>(),
    row::<act::Release>(),
    row::<act::Handoff>(),
    row::<look::Why>(),
    row::<act::Tell>(),
    row::<mission::Mission>(),
];

/// A list that a client may show or attach.
pub struct Resource {
    pub uri: &'static str,
    name: &'static str,
    title: &'static str,
    pub read: fn(&ToolCall) -> ToolResult,
}

pub const RESOURCES: [Resource; 2] = [
    Resource {
        uri: "tenure://sessions",
        name: "sessions",
        title: "Sessions of coding agents, those that wait for a person first",
        read: look::sessions,
    },
    Resource {
        uri: "tenure://claims",
        name: "claims",
        title: "Claimed items and their holders",
        read: look::claims,
    },
];

impl Resource {
    pub fn shown(&self) -> rmcp::model::Resource {
        rmcp::model::Resource::new(self.uri, self.name)
            .with_title(self.title)
            .with_mime_type("application/json")
    }
}

/// The argument that every tool has.
const SESSION: &str = "session";

const fn row<T: Arguments>() -> ToolRow {
    ToolRow {
        spec: T::SPEC,
        schema: schema_of::<T>,
        run: run_of::<T>,
    }
}

impl ToolRow {
    pub fn shown(&self) -> Tool {
        let spec = &self.spec;
        let annotations = ToolAnnotations::from_raw(
            Some(spec.title.to_owned()),
            Some(spec.effect == Effect::Nothing),
            Some(spec.effect == Effect::GivesUp),
            Some(spec.is_repeatable),
            Some(false),
        );
        Tool::new(spec.name, spec.description, Arc::new((self.schema)()))
            .with_title(spec.title)
            .with_annotations(annotations)
    }

    /// Reads the arguments and runs it.
    pub fn run(&self, mut arguments: Map<String, Value>, mut call: ToolCall) -> ToolResult {
        call.session = match arguments.shift_remove(SESSION) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name),
            Some(_) => return Err(malformed(self.spec.name, "session is not a string")),
        };
        (self.run)(arguments, &call)
    }
}

fn run_of<T: Arguments>(arguments: Map<String, Value>, call: &ToolCall) -> ToolResult {
    let arguments = serde_json::from_value::<T>(Value::Object(arguments));
    arguments
        .map_err(|error| malformed(T::SPEC.name, &error.to_string()))?
        .run(call)
}

fn malformed(tool: &str, why: &str) -> Problem {
    let hint = Hint::step("the tool's input schema lists its arguments");
    let message = format!("arguments of {tool}: {why}");
    Problem::new(Class::Usage, "usage", message, hint)
}

fn schema_of<T: Arguments>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut object) = schema.to_value() else {
        return JsonObject::new();
    };
    object.shift_remove("title");
    object.shift_remove("description");
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    properties[SESSION] = json!({
        "type": "string",
        "description": "Only if this process hosts several sessions: the handle of the one that calls",
    });
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_short_and_says_when_not_to_use_the_tool() {
        for ToolRow { spec, .. } in &TOOLS {
            let (name, text) = (spec.name, spec.description);
            let length = text.chars().count();
            assert!(length < 300, "{name}: {length} characters");
            assert!(text.contains("not ") || text.contains("Not "), "{name}");
        }
    }

    #[test]
    fn every_argument_is_explained_and_no_other_is_accepted() {
        for row in &TOOLS {
            let schema = (row.schema)();
            let name = row.spec.name;
            assert_eq!(schema["additionalProperties"], json!(false), "{name}");
            for (argument, about) in schema["properties"].as_object().expect("an object") {
                assert!(about["description"].is_string(), "{name}: {argument}");
            }
        }
    }
}
