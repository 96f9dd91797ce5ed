//! Numbers: groups of thousands, repeating decimals and powers of ten.

use super::Lexer;
use crate::token::Token;

/// Groups of digits that plain commas may join.
const MAX_GROUPS: usize = 8;

impl Lexer<'_> {
    /// Reads digits with all that belongs to them.
    pub(super) fn number(&mut self) {
        let mut whole = self.digits().to_owned();
        if (1..=3).contains(&whole.len()) && self.brackets == 0 {
            for _ in 0..comma_groups(self.rest) {
                self.take(",");
                whole += self.digits();
            }
        }
        while let Some(joint) = thousands_joint(self.rest) {
            self.rest = &self.rest[joint..];
            whole += self.digits();
        }
        let (mut fraction, mut period) = (String::new(), String::new());
        if self.take(".") {
            fraction += self.digits();
            for bar in ["\\overline{", "\\bar{"] {
                let repeated = self.rest.strip_prefix(bar).and_then(|rest| rest.split_once('}'));
                if let Some((digits, rest)) = repeated.filter(|(digits, _)| all_digits(digits)) {
                    period += digits;
                    self.rest = rest;
                }
            }
        }
        self.push(Token::Number { whole, fraction, period });
        self.exponent();
    }

    /// `e3` right after a number.
    fn exponent(&mut self) {
        let Some(rest) = self.rest.strip_prefix(['e', 'E']) else { return };
        let digits = rest.trim_start_matches(['+', '-']);
        let sign = rest.len() - digits.len();
        let end = digits.find(|next: char| !next.is_ascii_digit()).unwrap_or(digits.len());
        if let (0 | 1, Ok(exponent)) = (sign, rest[..sign + end].parse()) {
            self.push(Token::TenToThe(exponent));
            self.rest = &digits[end..];
        }
    }
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Groups of three digits that plain commas join: two in `,000,000`, none in `,200,30`.
fn comma_groups(mut rest: &str) -> usize {
    for count in 0..=MAX_GROUPS {
        let digits = rest.strip_prefix(',').unwrap_or_default();
        match digits.bytes().take_while(u8::is_ascii_digit).count() {
            0 => return count,
            3 => rest = &digits[3..],
            _ => break,
        }
    }
    0
}

/// Length of a mark that joins digits, where exactly three digits follow: `,\!`, `{,}`, `\,`, `\!`.
fn thousands_joint(rest: &str) -> Option<usize> {
    let mark =
        [",\\!", "{,}", ",\\,", "\\,", "\\!"].into_iter().find(|mark| rest.starts_with(mark))?;
    let digits = rest[mark.len()..].trim_start_matches(' ');
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    (count == 3).then_some(rest.len() - digits.len())
}
