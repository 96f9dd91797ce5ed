//! Texts for people use the words of the glossary: its last table lists discouraged words and better ones.

use std::fs;

use regex::Regex;

use super::blocks::{pages, root};

/// Texts beside the pages, where they exist.
const ALSO: &[&str] = &["CONTRIBUTING.md", "clients/python/README.md"];
/// The most words of the README.
const README: usize = 900;

/// A discouraged word or phrase.
struct Discouraged {
    pattern: Regex,
    better: String,
}

fn discouraged() -> Vec<Discouraged> {
    let glossary = fs::read_to_string(root().join("docs/src/glossary.md")).unwrap();
    let (_, table) = glossary.split_once("| write | instead of |").unwrap();
    let quoted = Regex::new("`([^`]+)`").unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (better, words) = (cells[1].to_owned(), cells[2].to_owned());
        let words = quoted.captures_iter(&words).map(|found| found[1].to_owned());
        words.map(|word| (word, better.clone())).collect::<Vec<_>>()
    };
    let rows = table.lines().filter(|line| line.contains('`')).flat_map(row);
    let found = rows.map(|(word, better)| {
        let word = regex::escape(&word).replace(' ', r"\s+");
        Discouraged { pattern: Regex::new(&format!(r"(?i)\b{word}\b")).unwrap(), better }
    });
    found.collect()
}

/// The text without fenced blocks and code spans, on the same lines.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut kept = String::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        if !fence && !fenced {
            kept.push_str(line);
        }
        fenced ^= fence;
        kept.push('\n');
    }
    let span = Regex::new("`[^`]*`").unwrap();
    let blank =
        |found: &regex::Captures<'_>| format!("`{}", "\n".repeat(found[0].matches('\n').count()));
    span.replace_all(&kept, blank).into_owned()
}

/// Each discouraged word of a text, with its line and the better word.
fn objections(path: &str, text: &str, words: &[Discouraged]) -> Vec<String> {
    let text = prose(text);
    let of = |word: &Discouraged| {
        let hits = word.pattern.find_iter(&text).map(|hit| {
            let line = text[..hit.start()].matches('\n').count() + 1;
            format!("{path}:{line}: write \"{}\" instead of {:?}", word.better, hit.as_str())
        });
        hits.collect::<Vec<_>>()
    };
    words.iter().flat_map(of).collect()
}

#[test]
fn texts_for_people_avoid_discouraged_words() {
    let words = discouraged();
    assert!(words.len() >= 30, "{}", words.len());
    let mut texts: Vec<_> = pages().into_iter().map(|page| (page.path, page.text)).collect();
    for path in ALSO {
        if let Ok(text) = fs::read_to_string(root().join(path)) {
            texts.push(((*path).to_owned(), text));
        }
    }
    let found: Vec<_> =
        texts.iter().flat_map(|(path, text)| objections(path, text, &words)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_discouraged_word_is_named_with_its_line_and_a_better_word() {
    let words = discouraged();
    let text = "# A page\n\n```text\nforeseen\n```\n\nIt is `foreseen`.\nWhat is Foreseen\nhere goes\non.\n";
    let found = objections("page.md", text, &words);
    assert_eq!(
        found,
        [
            "page.md:8: write \"predict, predicted\" instead of \"Foreseen\"",
            "page.md:9: write \"continue\" instead of \"goes\\non\"",
        ]
    );
}

#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let words = text.split_whitespace().count();
    assert!(words <= README, "{words} words");
}
