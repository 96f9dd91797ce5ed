//! The final answer in a model's reply.

/// Commands that frame a final answer.
const FRAMES: [&str; 2] = ["\\boxed", "\\fbox"];

/// Phrases that introduce a final answer. All are lower case.
const PHRASES: [&str; 4] = ["final answer is", "answer is", "final answer:", "answer:"];

/// Finds the final answer in a reply.
///
/// The last complete `\boxed{…}` or `\fbox{…}` wins. Without one, it is the text after the last
/// "answer is" or "answer:", up to the end of that sentence. Without that, it is the line after the last
/// `####`. The result has no surrounding space and is never empty.
pub fn extract(text: &str) -> Option<&str> {
    framed(text).or_else(|| announced(text)).or_else(|| marked(text))
}

/// The line after the last `####`, as GSM8K writes its answers.
pub(crate) fn marked(text: &str) -> Option<&str> {
    let (_, rest) = text.rsplit_once("####")?;
    non_empty(rest.lines().next().unwrap_or_default())
}

/// The contents of the last complete frame.
pub(crate) fn framed(text: &str) -> Option<&str> {
    let closing = matching_braces(text);
    let mut starts: Vec<usize> = FRAMES
        .iter()
        .flat_map(|frame| text.match_indices(frame).map(|(at, frame)| at + frame.len()))
        .collect();
    starts.sort_unstable();
    starts.into_iter().rev().find_map(|start| {
        let rest = &text[start..];
        let content = rest.trim_start();
        if content.starts_with('{') {
            let open = start + (rest.len() - content.len());
            let found = closing.binary_search_by_key(&open, |pair| pair.0).ok()?;
            return non_empty(&text[open + 1..closing[found].1]);
        }
        // `\boxed 5` frames what stands before the next space or `$`; `\boxedfoo` is another command.
        if content.len() == rest.len() && content.starts_with(|next: char| next.is_alphabetic()) {
            return None;
        }
        let end = content.find([' ', '\n', '$']).unwrap_or(content.len());
        non_empty(content[..end].trim_end_matches(['.', ',']))
    })
}

/// Pairs of matching braces, sorted by the opening one. An escaped brace is a character, not a brace.
fn matching_braces(text: &str) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'{' => open.push(at),
            b'}' => pairs.extend(open.pop().map(|start| (start, at))),
            _ => {}
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The rest of the sentence after the last phrase that introduces an answer.
fn announced(text: &str) -> Option<&str> {
    // ASCII lower case keeps every byte where it is.
    let folded = text.to_ascii_lowercase();
    let start =
        PHRASES.iter().filter_map(|phrase| Some(folded.rfind(phrase)? + phrase.len())).max()?;
    let rest = text[start..].trim_start_matches([' ', ':', '*', '\n']);
    for (open, close) in [("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("$", "$")] {
        let inside = rest.strip_prefix(open).and_then(|rest| rest.split_once(close));
        // "$5 and not $6" has two prices and no formula.
        let prices = |inside: &str| open == "$" && inside.ends_with(' ');
        if let Some((inside, _)) = inside.filter(|(inside, _)| !prices(inside)) {
            return non_empty(inside);
        }
    }
    let line = rest.lines().next().unwrap_or_default();
    let sentence = line.find(". ").map_or(line, |end| &line[..end]);
    non_empty(sentence.trim_end_matches([' ', '.', '*']))
}

fn non_empty(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty()).then_some(text)
}
