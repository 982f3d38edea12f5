//! Checks JSON against `schema.json`. Supports only the keywords of JSON Schema that this file
//! uses.

use serde_json::Value;

/// Parses JSON, and fails if it does not match the schema.
pub(crate) fn checked(json: &str) -> Value {
    let schema: Value = serde_json::from_str(include_str!("../../schema.json")).unwrap();
    let json = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    check(&schema, &schema, &json, "report");
    json
}

fn check(schema: &Value, all: &Value, value: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        return check(
            &all["$defs"][name.trim_start_matches("#/$defs/")],
            all,
            value,
            place,
        );
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types = schema["type"]
        .as_array()
        .cloned()
        .unwrap_or(vec![schema["type"].clone()]);
    let is_kind = |allowed: &Value| allowed == kind || (allowed == "number" && kind == "integer");
    assert!(types.iter().any(is_kind), "{place} is {kind}");
    assert!(
        schema["enum"]
            .as_array()
            .is_none_or(|known| known.contains(value)),
        "{place} is {value}"
    );
    for item in value.as_array().into_iter().flatten() {
        check(&schema["items"], all, item, &format!("{place}[]"));
    }
    let Some(object) = value.as_object() else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(
            object.contains_key(name.as_str().unwrap()),
            "{place} lacks {name}"
        );
    }
    for (name, value) in object {
        let schema = &schema["properties"][name];
        assert!(schema.is_object(), "{place}.{name} is not in the schema");
        check(schema, all, value, &format!("{place}.{name}"));
    }
}
