//! The OpenAPI document as it is served and kept: what the derive macros cannot say is put right here.

use serde_yaml_ng::{Mapping, Value, from_str, to_string, to_value};

/// The document as YAML.
///
/// # Errors
/// A document that cannot be written as YAML.
pub fn openapi_yaml() -> Result<String, serde_yaml_ng::Error> {
    let mut document = to_value(super::document())?;
    let schemas = document["components"]["schemas"].clone();
    mend(&mut document, &schemas);
    let text = to_string(&document)?;
    // Readers of YAML 1.1 take these two words for booleans.
    let text = text.replace("- yes\n", "- 'yes'\n").replace("- no\n", "- 'no'\n");
    debug_assert_eq!(from_str::<Value>(&text).ok(), Some(document), "the same document");
    Ok(text)
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
