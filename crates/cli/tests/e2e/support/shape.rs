//! Checks a JSON value against the part of JSON Schema that tenure's own schema uses. A keyword that it does not
//! know fails, so that nothing is believed to be checked that is not.
//!
//! It is stricter than the standard: where an object's properties are listed and nothing else is said, others
//! are refused. So an answer cannot have a part that the schema does not name.

use serde_json::Value;

/// Keywords that say nothing about a value.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "format",
    "answers",
    "exit_codes",
];

/// Asserts that a value fits `#/$defs/NAME`.
#[track_caller]
pub fn assert_fits(schema: &Value, name: &str, value: &Value) {
    let shape = &schema["$defs"][name];
    assert!(shape.is_object(), "the schema has no {name}");
    let mut wrong = Vec::new();
    check(schema, shape, value, "", &mut wrong);
    assert!(wrong.is_empty(), "{name}: {wrong:#?}\n{value:#}");
}

/// Asserts that every shape can be used: each keyword is known, and each reference leads somewhere.
#[track_caller]
pub fn assert_sound(schema: &Value) {
    let defs = schema["$defs"].as_object().expect("definitions");
    for (name, shape) in defs.iter().chain([(&"whole".to_owned(), schema)]) {
        // Whatever the value, each branch is walked and each keyword is met.
        walk(schema, shape, name);
    }
}

fn walk(schema: &Value, shape: &Value, at: &str) {
    let Some(object) = shape.as_object() else {
        assert!(shape.is_boolean(), "{at} is no schema: {shape}");
        return;
    };
    for (keyword, said) in object {
        let at = format!("{at}/{keyword}");
        match keyword.as_str() {
            "$ref" => assert!(target(schema, said).is_object(), "{at}: {said}"),
            "properties" => {
                for (name, part) in said.as_object().expect(&at) {
                    walk(schema, part, &format!("{at}/{name}"));
                }
            }
            "items" | "additionalProperties" => walk(schema, said, &at),
            "anyOf" | "oneOf" | "allOf" => {
                let all = said.as_array().expect(&at);
                assert!(!all.is_empty(), "{at}");
                all.iter().for_each(|one| walk(schema, one, &at));
            }
            "required" | "enum" => assert!(said.is_array(), "{at}"),
            "type" | "const" | "minimum" | "maximum" => {}
            other => assert!(ANNOTATIONS.contains(&other), "{at}: unknown keyword"),
        }
    }
}

fn target<'a>(schema: &'a Value, reference: &Value) -> &'a Value {
    let path = reference.as_str().and_then(|text| text.strip_prefix('#'));
    path.and_then(|path| schema.pointer(path))
        .unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

fn check(schema: &Value, shape: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    let Some(object) = shape.as_object() else {
        if shape == &Value::Bool(false) {
            wrong.push(format!("{at}: nothing may be here"));
        }
        return;
    };
    for (keyword, said) in object {
        match keyword.as_str() {
            "$ref" => check(schema, target(schema, said), value, at, wrong),
            "type" => {
                let types = said.as_array().cloned().unwrap_or(vec![said.clone()]);
                if !types.iter().any(|one| is_of(value, one)) {
                    wrong.push(format!("{at}: {value} is not {said}"));
                }
            }
            "const" if said != value => wrong.push(format!("{at}: {value} is not {said}")),
            "enum" if !said.as_array().is_some_and(|all| all.contains(value)) => {
                wrong.push(format!("{at}: {value} is none of {said}"));
            }
            "minimum" | "maximum" => {
                let (found, limit) = (value.as_f64(), said.as_f64());
                let beyond = match keyword.as_str() {
                    "minimum" => found < limit,
                    _ => found > limit,
                };
                if found.is_some() && beyond {
                    wrong.push(format!("{at}: {value} is beyond {keyword} {said}"));
                }
            }
            "required" => {
                for name in said.as_array().into_iter().flatten() {
                    let name = name.as_str().expect("a name");
                    if value.is_object() && value.get(name).is_none() {
                        wrong.push(format!("{at}: {name} is missing"));
                    }
                }
            }
            "properties" => properties(schema, object, value, at, wrong),
            "additionalProperties" if !object.contains_key("properties") => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    check(schema, said, part, &format!("{at}/{name}"), wrong);
                }
            }
            "items" => {
                for (place, one) in value.as_array().into_iter().flatten().enumerate() {
                    check(schema, said, one, &format!("{at}/{place}"), wrong);
                }
            }
            "allOf" => {
                for one in said.as_array().into_iter().flatten() {
                    check(schema, one, value, at, wrong);
                }
            }
            "anyOf" | "oneOf" => {
                let all = said.as_array().into_iter().flatten();
                let tried: Vec<Vec<String>> = all
                    .map(|one| {
                        let mut wrong = Vec::new();
                        check(schema, one, value, at, &mut wrong);
                        wrong
                    })
                    .collect();
                let fitting = tried.iter().filter(|wrong| wrong.is_empty()).count();
                if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                    wrong.push(format!("{at}: {fitting} of {keyword} fit: {tried:?}"));
                }
            }
            "const" | "enum" | "additionalProperties" => {}
            other if ANNOTATIONS.contains(&other) => {}
            other => wrong.push(format!("{at}: the checker does not know {other}")),
        }
    }
}

fn properties(
    schema: &Value,
    shape: &serde_json::Map<String, Value>,
    value: &Value,
    at: &str,
    wrong: &mut Vec<String>,
) {
    let known = shape["properties"].as_object().expect("properties");
    let others = shape.get("additionalProperties");
    for (name, part) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{name}");
        match (known.get(name), others) {
            (Some(shape), _) | (None, Some(shape)) => check(schema, shape, part, &at, wrong),
            (None, None) => wrong.push(format!("{at}: the schema does not name it")),
        }
    }
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str().expect("a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("there is no type {other}"),
    }
}
