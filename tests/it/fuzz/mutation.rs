//! Inputs that are nearly right: a good one, changed a few times. The same number makes the same input.

use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

/// Longest input in bytes.
const LONGEST: usize = 16 << 10;

/// Pieces that parsers have stumbled over.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    "\\",
    "\n",
    "\r\n",
    "\0",
    ":",
    ",",
    "- ",
    "---\n",
    "? ",
    "&a ",
    "*a",
    "!!x ",
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "Action:",
    "[TOOL_CALLS]",
    "\\frac{",
    "\\sqrt[",
    "\\begin{pmatrix}",
    "^",
    "_",
    "!",
    "\\boxed{",
    "1e999",
    "-0",
    "9999999999999999999999",
    "NaN",
    "null",
    "true",
    "\u{feff}",
    "\u{202e}",
    "\u{1F600}",
    "e\u{301}",
    "\u{fffd}",
    "data:",
    "#### ",
    "(?i)",
    "{1000}",
    "\\p{L}",
    "yes",
    "no",
];

/// The input of a number, made of good ones.
pub fn input(parser: &str, number: u64, good: &[Vec<u8>]) -> Vec<u8> {
    let salt =
        parser.bytes().fold(0_u64, |salt, byte| salt.wrapping_mul(31).wrapping_add(byte.into()));
    let mut rng = ChaCha8Rng::seed_from_u64(salt ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bytes = good.choose(&mut rng).unwrap().clone();
    for _ in 0..rng.random_range(1..=8) {
        change(&mut bytes, good, &mut rng);
        bytes.truncate(LONGEST);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, good: &[Vec<u8>], rng: &mut ChaCha8Rng) {
    let at = rng.random_range(0..=bytes.len());
    let end = (at + rng.random_range(0..64)).min(bytes.len());
    match rng.random_range(0..10) {
        // Of one byte: another one, none, or one more.
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
        1 => drop(bytes.drain(at..end)),
        2 => bytes.insert(at, rng.random()),
        3 | 4 => drop(bytes.splice(at..at, PIECES.choose(rng).unwrap().bytes())),
        5 => {
            // Nesting: the same piece again and again.
            let piece = PIECES.choose(rng).unwrap().repeat(rng.random_range(1..400));
            drop(bytes.splice(at..at, piece.into_bytes()));
        }
        6 => {
            let again = bytes[at..end].repeat(rng.random_range(1..40));
            drop(bytes.splice(at..at, again));
        }
        7 => {
            // The rest of another good one.
            let other = good.choose(rng).unwrap();
            let from = rng.random_range(0..=other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        8 => bytes.truncate(at),
        _ => number(bytes, at, rng),
    }
}

/// Another number in place of the next one.
fn number(bytes: &mut Vec<u8>, at: usize, rng: &mut ChaCha8Rng) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|found| at + found)
    else {
        return;
    };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let numbers = [
        "0",
        "-1",
        "1e308",
        "4294967296",
        "18446744073709551616",
        "0.1",
        "1/0",
        "00",
        "-9223372036854775808",
    ];
    drop(bytes.splice(start..start + digits, numbers.choose(rng).unwrap().bytes()));
}

#[test]
fn an_input_is_made_again_by_its_number() {
    let good = vec![b"{\"a\": 12}".to_vec(), b"yes".to_vec()];
    let of = |number| input("spec", number, &good);
    assert_eq!(of(7), of(7));
    let all: std::collections::HashSet<_> = (0..200).map(of).collect();
    assert!(all.len() > 150, "{}", all.len());
    assert!(all.iter().all(|bytes| bytes.len() <= LONGEST));
}
