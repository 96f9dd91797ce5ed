//! The OpenAPI document as it is served and kept: what the derive macros cannot say is put right here.

use std::collections::BTreeSet;

use serde_yaml_ng::{Mapping, Value, from_str, to_string, to_value};

/// The document as YAML.
///
/// # Errors
/// A document that cannot be written as YAML.
pub fn openapi_yaml() -> Result<String, serde_yaml_ng::Error> {
    let mut document = to_value(super::document())?;
    let schemas = document["components"]["schemas"].clone();
    mend(&mut document, &schemas);
    require_what_is_always_there(&mut document);
    tell_of_fields_and_validators(&mut document)?;
    let text = to_string(&document)?;
    // Readers of YAML 1.1 take these two words for booleans.
    let text = text.replace("- yes\n", "- 'yes'\n").replace("- no\n", "- 'no'\n");
    debug_assert_eq!(from_str::<Value>(&text).ok(), Some(document), "the same document");
    Ok(text)
}

/// What is only ever answered is whole: a field without a value is null, not absent. Problems alone leave out
/// what does not apply.
fn require_what_is_always_there(document: &mut Value) {
    let asked = reachable(document, &|operation| vec![&operation["requestBody"]]);
    let answered = reachable(document, &|operation| vec![&operation["responses"]]);
    let Some(schemas) = document["components"]["schemas"].as_mapping_mut() else { return };
    for (name, schema) in schemas {
        let name = name.as_str().unwrap_or_default();
        if !answered.contains(name)
            || asked.contains(name)
            || ["Problem", "FieldError"].contains(&name)
        {
            continue;
        }
        require_properties(schema);
    }
}

fn require_properties(schema: &mut Value) {
    if let Some(properties) = schema["properties"].as_mapping() {
        let names: Vec<Value> = properties.keys().cloned().collect();
        schema["required"] = names.into();
    }
    for key in ["allOf", "oneOf"] {
        let parts = schema.get_mut(key).and_then(Value::as_sequence_mut);
        parts.into_iter().flatten().for_each(require_properties);
    }
}

/// Names of the schemas that a part of each operation leads to.
fn reachable(document: &Value, part: &dyn Fn(&Value) -> Vec<&Value>) -> BTreeSet<String> {
    let operations = document["paths"].as_mapping().into_iter().flatten();
    let operations = operations.flat_map(|(_, path)| path.as_mapping().into_iter().flatten());
    let mut open: Vec<&Value> = operations.flat_map(|(_, operation)| part(operation)).collect();
    let mut found = BTreeSet::new();
    while let Some(value) = open.pop() {
        match value {
            Value::Mapping(map) => {
                let name =
                    map.get("$ref").and_then(Value::as_str).and_then(|r| r.rsplit('/').next());
                if let Some(name) = name
                    && found.insert(name.to_owned())
                {
                    open.push(&document["components"]["schemas"][name]);
                }
                open.extend(map.values());
            }
            Value::Sequence(all) => open.extend(all),
            _ => {}
        }
    }
    found
}

/// Says of each route that reads JSON what [`super::fields`] and [`super::conditional`] do for all of them.
fn tell_of_fields_and_validators(document: &mut Value) -> Result<(), serde_yaml_ng::Error> {
    let fields = from_str::<Value>(
        "{name: fields, in: query, required: false, schema: {type: string, minLength: 1},
          description: 'Only these fields, as in `id,status,spec.name`; the answer then has a media type of its own'}",
    )?;
    let known = from_str::<Value>(
        "{name: If-None-Match, in: header, required: false, schema: {type: string},
          description: 'The ETag of an earlier answer; where nothing changed, the answer is 304'}",
    )?;
    let etag = from_str::<Value>(
        "{ETag: {description: Changes with the content, schema: {type: string}}}",
    )?;
    let chosen = from_str::<Value>("{schema: {type: object}}")?;
    let unchanged = from_str::<Value>("{description: What If-None-Match names is still so}")?;
    let paths = document["paths"].as_mapping_mut().into_iter().flatten();
    for (_, path) in paths.filter(|(name, _)| name.as_str().is_some_and(|n| n.starts_with("/v1/")))
    {
        let Some(get) = path.get_mut("get") else { continue };
        let responses = &mut get["responses"];
        if responses["200"]["content"].get("application/json").is_none() {
            continue;
        }
        responses["200"]["content"][super::fields::KIND] = chosen.clone();
        responses["200"]["headers"] = etag.clone();
        responses["304"] = unchanged.clone();
        if get.get("parameters").is_none() {
            get["parameters"] = Value::Sequence(Vec::new());
        }
        let parameters = get["parameters"].as_sequence_mut();
        parameters.into_iter().for_each(|all| all.extend([fields.clone(), known.clone()]));
    }
    Ok(())
}

/// Makes one schema of each `allOf` whose parts exclude each other.
fn mend(value: &mut Value, schemas: &Value) {
    match value {
        Value::Mapping(map) => {
            if let Some(Value::Sequence(parts)) = map.get("allOf") {
                let whole = tagged(parts, schemas).or_else(|| described(parts));
                if let Some(whole) = whole {
                    map.remove("allOf");
                    map.extend(whole);
                }
            }
            map.values_mut().for_each(|inner| mend(inner, schemas));
        }
        Value::Sequence(all) => all.iter_mut().for_each(|inner| mend(inner, schemas)),
        _ => {}
    }
}

/// A variant that is a closed object and its tag: the object with one more property.
fn tagged(parts: &[Value], schemas: &Value) -> Option<Mapping> {
    let [named, tag] = parts else { return None };
    let name = named["$ref"].as_str()?.strip_prefix("#/components/schemas/")?;
    let mut whole = schemas[name].as_mapping()?.clone();
    whole.remove("description");
    let (tags, required) = (tag["properties"].as_mapping()?, tag["required"].as_sequence()?);
    for (key, value) in
        [("properties", Value::Mapping(tags.clone())), ("required", required.clone().into())]
    {
        match (whole.get_mut(key), value) {
            (Some(Value::Mapping(into)), Value::Mapping(more)) => into.extend(more),
            (Some(Value::Sequence(into)), Value::Sequence(more)) => into.extend(more),
            (_, value) => {
                whole.insert(key.into(), value);
            }
        }
    }
    Some(whole)
}

/// A schema and an object that only describes it.
fn described(parts: &[Value]) -> Option<Mapping> {
    let [schema, about] = parts else { return None };
    let about = about.as_mapping()?;
    let only_describes =
        about.keys().all(|key| matches!(key.as_str(), Some("type" | "description")));
    let mut whole = schema.as_mapping()?.clone();
    if !only_describes || whole.contains_key("$ref") {
        return None;
    }
    whole.extend(
        about
            .iter()
            .filter(|(key, _)| key.as_str() != Some("type"))
            .map(|(k, v)| (k.clone(), v.clone())),
    );
    Some(whole)
}
