//! The levels of the house, as data: an import goes to a lower level of this table, or to one of the
//! exceptions that it names. No file grows past 500 lines.

use std::{collections::BTreeMap, fs, path::Path};

/// Module and what it may import.
const MAY_USE: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("experience", &["domain"]),
    ("prompt", &["domain", "experience"]),
    ("net", &["domain"]),
    ("telemetry", &["domain", "net"]),
    ("store", &["domain", "experience"]),
    ("queue", &["domain", "store", "telemetry"]),
    ("trainer", &["domain", "net", "telemetry"]),
    ("engine", &["domain", "experience", "net", "telemetry"]),
    ("env", &["domain", "experience", "net", "prompt", "engine"]),
    ("rollout", &["domain", "experience", "prompt", "engine", "env", "telemetry"]),
    ("algo", &["domain", "experience", "prompt", "engine", "trainer", "env", "rollout"]),
    ("library", &["domain", "experience", "prompt", "store", "env"]),
    (
        "work",
        &[
            "domain",
            "experience",
            "prompt",
            "library",
            "telemetry",
            "net",
            "store",
            "queue",
            "trainer",
            "engine",
            "env",
            "rollout",
            "algo",
        ],
    ),
    // The base model's curriculum is the built-in world seen through its own prompts.
    ("dev", &["domain", "experience", "net", "store", "env", "prompt"]),
    ("doctor", &["domain", "experience", "telemetry", "prompt", "trainer", "engine"]),
    ("scheduler", &["domain", "experience", "store", "queue", "telemetry"]),
    ("api", &["domain", "experience", "store", "queue", "telemetry"]),
    (
        "app",
        &[
            "domain",
            "experience",
            "prompt",
            "library",
            "telemetry",
            "net",
            "store",
            "queue",
            "trainer",
            "engine",
            "env",
            "rollout",
            "algo",
            "work",
            "dev",
            "scheduler",
            "api",
        ],
    ),
    (
        "cli",
        &[
            "domain",
            "experience",
            "prompt",
            "library",
            "telemetry",
            "net",
            "store",
            "queue",
            "trainer",
            "engine",
            "env",
            "rollout",
            "algo",
            "work",
            "dev",
            "scheduler",
            "api",
            "app",
            "doctor",
        ],
    ),
];

fn sources(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Everything but comments and the tests at a file's end.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]").next().unwrap_or_default();
    body.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Modules of this crate that a source names: `crate::x` and `crate::{x, y::z}`.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let word = |text: &str| -> String {
            text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut item = true;
            for (i, c) in list.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => item = true,
                    c if item && c.is_alphabetic() => {
                        found.push(word(&list[i..]));
                        item = false;
                    }
                    _ => {}
                }
            }
        } else {
            found.push(word(rest));
        }
    }
    found
}

#[test]
fn imports_go_down_and_files_stay_small() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let table: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 60, "only {} files were found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = code(&text);
        let lines = code.lines().count();
        let shown = file.strip_prefix(&root).unwrap().display().to_string();
        if lines > 500 {
            wrong.push(format!("{shown} has {lines} lines; split it"));
        }
        let module = shown.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let Some(allowed) = table.get(module.as_str()) else { continue };
        for import in imports(&code) {
            if import != module && !allowed.contains(&import.as_str()) && import != "cli" {
                wrong.push(format!("{shown} imports {import}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_scan_sees_what_it_should() {
    let code =
        "use crate::{\n    net::{Client, NetError},\n    store::Store,\n};\nuse crate::env::X;";
    assert_eq!(imports(code), ["net", "store", "env"]);
}
