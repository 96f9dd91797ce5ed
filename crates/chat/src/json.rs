//! JSON as published chat templates expect it.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use minijinja::{Error, ErrorKind, Value, value::Kwargs};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{
    Serializer as Writer, Value as Json,
    ser::{Formatter, PrettyFormatter},
};

/// Keys of tools and JSON schemas, in the order in which models were shown them. Neither a request nor the database
/// keeps the order of keys; all other keys follow by name.
const ORDER: [&str; 9] = [
    "type",
    "function",
    "name",
    "enum",
    "items",
    "description",
    "parameters",
    "properties",
    "required",
];

/// What transformers gives to templates as `tojson`: Python's `json.dumps`, which leaves `'`, `<` and `&` as they are.
pub(super) fn tojson(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let invalid = |e: serde_json::Error| {
        Error::new(ErrorKind::InvalidOperation, "cannot be written as JSON").with_source(e)
    };
    let json = serde_json::to_value(value).map_err(invalid)?;
    let sorted = options.get::<Option<bool>>("sort_keys")?.unwrap_or_default();
    let indent = options.get::<Option<usize>>("indent")?.map(|width| " ".repeat(width));
    let separators = options.get::<Option<Vec<String>>>("separators")?.unwrap_or_default();
    let ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or_default();
    options.assert_all_used()?;
    let mut written = Vec::new();
    let json = Ordered { json: &json, sorted };
    match indent {
        Some(indent) => {
            let pretty = PrettyFormatter::with_indent(indent.as_bytes());
            json.serialize(&mut Writer::with_formatter(&mut written, pretty)).map_err(invalid)?;
        }
        None => {
            let [comma, colon] = match separators.as_slice() {
                [comma, colon] => [comma.as_str(), colon.as_str()],
                _ => [", ", ": "],
            };
            let line = Line { comma, colon };
            json.serialize(&mut Writer::with_formatter(&mut written, line)).map_err(invalid)?;
        }
    }
    let written = String::from_utf8(written).map_err(|e| {
        Error::new(ErrorKind::InvalidOperation, "cannot be written as JSON").with_source(e)
    })?;
    Ok(Value::from_safe_string(if ascii { escaped(&written) } else { written }))
}

/// A value whose keys are in order.
struct Ordered<'a> {
    json: &'a Json,
    /// By name alone.
    sorted: bool,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sorted = self.sorted;
        match self.json {
            Json::Object(object) => {
                let mut entries: Vec<_> = object.iter().collect();
                let place = |key: &str| {
                    let known = ORDER.iter().position(|known| *known == key);
                    known.filter(|_| !sorted).unwrap_or(ORDER.len())
                };
                // A map has its keys by name.
                entries.sort_by_key(|(key, _)| place(key));
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, json) in entries {
                    map.serialize_entry(key, &Ordered { json, sorted })?;
                }
                map.end()
            }
            Json::Array(array) => {
                serializer.collect_seq(array.iter().map(|json| Ordered { json, sorted }))
            }
            json => json.serialize(serializer),
        }
    }
}

/// All on one line.
struct Line<'a> {
    comma: &'a str,
    colon: &'a str,
}

impl Line<'_> {
    fn separate<W: ?Sized + Write>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(self.comma.as_bytes()) }
    }
}

impl Formatter for Line<'_> {
    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.colon.as_bytes())
    }
}

/// JSON in which every letter beyond ASCII is an escape.
fn escaped(json: &str) -> String {
    let mut units = [0; 2];
    let mut ascii = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            ascii.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut units) {
            let _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use minijinja::{context, value::Serde};
    use serde_json::{Value as Json, json};

    use crate::template::environment;

    fn written(call: &str, value: &Json) -> String {
        let templates = environment(format!("{{{{ value | {call} }}}}"));
        let rendered = templates.and_then(|templates| {
            templates.get_template("chat")?.render(context! { value => Serde(value) })
        });
        rendered.unwrap_or_else(|e| panic!("{e:#}"))
    }

    /// The expected texts are those of transformers.
    #[test]
    fn json_is_written_as_transformers_writes_it() {
        let tool = json!({ "type": "function", "function": {
            "name": "find", "description": "Reads the user's order, if <id> is known & paid.",
            "parameters": { "type": "object", "properties": { "order": { "type": "integer" }, "at": { "type": "string",
                "enum": ["a", "ü"], "description": "Where." } }, "required": ["order"] },
        } });
        assert_eq!(
            written("tojson", &tool),
            "{\"type\": \"function\", \"function\": {\"name\": \"find\", \"description\": \"Reads the user's order, if \
             <id> is known & paid.\", \"parameters\": {\"type\": \"object\", \"properties\": {\"at\": {\"type\": \
             \"string\", \"enum\": [\"a\", \"ü\"], \"description\": \"Where.\"}, \"order\": {\"type\": \"integer\"}}, \
             \"required\": [\"order\"]}}}"
        );
        let small = json!({ "type": [1, 2.5], "b": {}, "a": "ü😀\n\"" });
        for (call, expected) in [
            ("tojson", "{\"type\": [1, 2.5], \"a\": \"ü😀\\n\\\"\", \"b\": {}}"),
            (
                "tojson(ensure_ascii=true)",
                "{\"type\": [1, 2.5], \"a\": \"\\u00fc\\ud83d\\ude00\\n\\\"\", \"b\": {}}",
            ),
            ("tojson(separators=(',', ':'))", "{\"type\":[1,2.5],\"a\":\"ü😀\\n\\\"\",\"b\":{}}"),
            ("tojson(sort_keys=true)", "{\"a\": \"ü😀\\n\\\"\", \"b\": {}, \"type\": [1, 2.5]}"),
            (
                "tojson(indent=2)",
                "{\n  \"type\": [\n    1,\n    2.5\n  ],\n  \"a\": \"ü😀\\n\\\"\",\n  \"b\": {}\n}",
            ),
        ] {
            assert_eq!(written(call, &small), expected, "{call}");
        }
    }
}
