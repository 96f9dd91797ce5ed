//! The threat model names a test for each attack.

use std::fs;

use regex::Regex;

use super::blocks::root;

/// Attacks that the page must list.
const LEAST: usize = 60;

#[test]
fn every_attack_of_the_threat_model_has_its_test() {
    let page = fs::read_to_string(root().join("docs/src/threat-model.md")).unwrap();
    let row = Regex::new(r"(?m)^\| .+ \| .+ \| `([a-z_:]+)` \|$").unwrap();
    let named: Vec<&str> =
        row.captures_iter(&page).map(|found| found.extract::<1>().1[0]).collect();
    assert!(named.len() >= LEAST, "{} attacks", named.len());
    for name in &named {
        let (file, test) = name.rsplit_once("::").unwrap();
        let file = root().join("tests/it").join(file.replace("::", "/"));
        let paths = [file.with_extension("rs"), file.join("mod.rs")];
        let source =
            paths.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        // A macro writes the tests of the parsers.
        let made = |line: &str| line.starts_with("fuzzed! {") && line.contains(test);
        let there = source.contains(&format!("fn {test}(")) || source.lines().any(made);
        assert!(there, "there is no test {name}");
    }
    // The tests of the suite are all in the list.
    let test = Regex::new(r"test[^\n]*\]\n(?:async )?fn ([a-z_]+)\(").unwrap();
    for entry in fs::read_dir(root().join("tests/it/attacks")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let source = fs::read_to_string(&path).unwrap();
        for found in test.captures_iter(&source) {
            let name = format!("attacks::{file}::{}", &found[1]);
            assert!(named.contains(&name.as_str()), "the threat model does not name {name}");
        }
    }
}
