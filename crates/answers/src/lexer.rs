//! Splits an answer into tokens.

mod number;

use crate::{
    limits::{Fault, MAX_TOKENS},
    token::{Bracket, Name, Sign, Token},
    units::is_unit,
    words::{Command, command, name},
};

/// Letters of the longest name that is written without a command.
const LONGEST_NAME: usize = 8;

/// Splits an answer into tokens.
///
/// # Errors
/// `Fault::Unreadable` for a character or command that no answer uses, `Fault::TooComplex` for too many
/// tokens.
pub fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer { rest: text, tokens: Vec::new(), brackets: 0 };
    while !lexer.rest.is_empty() {
        lexer.next()?;
        if lexer.tokens.len() > MAX_TOKENS {
            return Err(Fault::TooComplex);
        }
    }
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    /// Brackets that are open. Inside them a comma separates and never groups digits.
    brackets: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Result<(), Fault> {
        let Some(first) = self.rest.chars().next() else { return Ok(()) };
        match first {
            '0'..='9' => self.number(),
            '.' if self.rest[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number(),
            'a'..='z' | 'A'..='Z' => self.letters(),
            '\\' => return self.command(),
            '^' if self.degree() => {}
            _ => {
                self.rest = &self.rest[first.len_utf8()..];
                return self.character(first);
            }
        }
        Ok(())
    }

    fn character(&mut self, character: char) -> Result<(), Fault> {
        let token = match character {
            ' ' | '\t' | '\n' | '\r' | '~' => return Ok(()),
            // `sq. units`
            '.' if matches!(self.tokens.last(), Some(Token::Words(_))) => return Ok(()),
            '\'' => return self.prime(),
            '(' => Token::Open(Bracket::Round),
            ')' => Token::Close(Bracket::Round),
            '[' => Token::Open(Bracket::Square),
            ']' => Token::Close(Bracket::Square),
            '{' => Token::BeginGroup,
            '}' => Token::EndGroup,
            '|' => Token::Bar,
            '+' => Token::Plus,
            '-' => Token::Minus,
            '*' if self.take("*") => Token::Power,
            '*' => Token::Times,
            '/' => Token::Divide,
            '^' => Token::Power,
            '_' => Token::Subscript,
            '!' => Token::Factorial,
            ',' | ';' => Token::Comma,
            '=' => Token::Sign(Sign::Equal),
            '<' if self.take("=") => Token::Sign(Sign::LessOrEqual),
            '<' => Token::Sign(Sign::Less),
            '>' if self.take("=") => Token::Sign(Sign::GreaterOrEqual),
            '>' => Token::Sign(Sign::Greater),
            '%' => Token::Percent,
            '$' => Token::Dollar,
            '&' => Token::Column,
            _ => return Err(Fault::Unreadable),
        };
        self.push(token);
        Ok(())
    }

    /// A prime belongs to the name before it.
    fn prime(&mut self) -> Result<(), Fault> {
        match self.tokens.last_mut() {
            Some(Token::Symbol(name)) => name.push('\''),
            _ => return Err(Fault::Unreadable),
        }
        Ok(())
    }

    fn push(&mut self, token: Token) {
        match token {
            Token::Open(_) => self.brackets += 1,
            Token::Close(_) => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.tokens.push(token);
    }

    fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|next| !accept(next)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn digits(&mut self) -> &'a str {
        self.take_while(|next| next.is_ascii_digit())
    }

    /// `^\circ` and `^{\circ}`.
    fn degree(&mut self) -> bool {
        let spelled = ["^\\circ", "^{\\circ}", "^ \\circ", "^{\\circ }"];
        let found = spelled.into_iter().any(|degree| self.take(degree));
        if found {
            self.push(Token::Degree);
        }
        found
    }

    /// Names, single letters or words that are written without a command.
    fn letters(&mut self) {
        let run = self.take_while(|next| next.is_ascii_alphabetic());
        match run {
            "and" => return self.push(Token::Comma),
            "or" => return self.push(Token::Or),
            _ => {}
        }
        // A unit follows a number, and its second word follows the first: `miles per hour`.
        let unit = match self.tokens.last() {
            Some(Token::Words(_)) => true,
            last => last.is_some() && is_unit(run),
        };
        if run.len() >= 2 && unit && name(run).is_none() {
            return self.push(Token::Words(run.to_owned()));
        }
        let mut pieces = Vec::new();
        let mut rest = run;
        while !rest.is_empty() {
            let longest = (2..=rest.len().min(LONGEST_NAME))
                .rev()
                .find_map(|end| Some((name(&rest[..end])?, end)));
            let (piece, end) = match (longest, &rest[..1]) {
                (Some((found, end)), _) => (Token::Name(found), end),
                (None, "e") => (Token::Name(Name::Euler), 1),
                (None, "i") => (Token::Name(Name::Imaginary), 1),
                (None, letter) => (Token::Symbol(letter.to_owned()), 1),
            };
            pieces.push(piece);
            rest = &rest[end..];
        }
        // `sinx` is a formula, while `single` only contains the name of a function.
        let letters = pieces.iter().filter(|piece| matches!(piece, Token::Symbol(_))).count();
        let named = pieces.iter().any(|piece| matches!(piece, Token::Name(_)));
        if run.len() >= 4 && !(named && letters <= 1) {
            return self.push(Token::Words(run.to_owned()));
        }
        self.tokens.extend(pieces);
    }

    fn command(&mut self) -> Result<(), Fault> {
        self.rest = &self.rest[1..];
        let letters = self.take_while(|next| next.is_ascii_alphabetic());
        let written = if letters.is_empty() {
            let end = self.rest.chars().next().map_or(0, char::len_utf8);
            let (written, rest) = self.rest.split_at(end);
            self.rest = rest;
            written
        } else {
            letters
        };
        match command(written).ok_or(Fault::Unreadable)? {
            Command::Token(token) => self.push(token),
            Command::Ignored => {}
            Command::Delimiter => {
                self.take(".");
            }
            // The exact value counts.
            Command::Approximately => self.rest = "",
            Command::Words => self.words()?,
            Command::Begin | Command::End => {
                let (environment, rest) = self
                    .rest
                    .trim_start()
                    .strip_prefix('{')
                    .and_then(|rest| rest.split_once('}'))
                    .ok_or(Fault::Unreadable)?;
                self.rest = rest;
                if !["pmatrix", "bmatrix", "matrix", "Bmatrix", "array", "smallmatrix"]
                    .contains(&environment)
                {
                    return Err(Fault::Unreadable);
                }
                let begins = written == "begin";
                self.push(if begins { Token::BeginMatrix } else { Token::EndMatrix });
                if begins && environment == "array" {
                    let columns = self.rest.trim_start().strip_prefix('{');
                    self.rest =
                        columns.and_then(|rest| rest.split_once('}')).ok_or(Fault::Unreadable)?.1;
                }
            }
            Command::Blackboard => {
                let reals = ["{R}", " R", "R"].into_iter().any(|set| self.take(set));
                if !reals {
                    return Err(Fault::Unreadable);
                }
                self.push(Token::Name(Name::Reals));
            }
        }
        Ok(())
    }

    /// The argument of `\text`.
    fn words(&mut self) -> Result<(), Fault> {
        let inner = self.rest.trim_start().strip_prefix('{').ok_or(Fault::Unreadable)?;
        let end = inner.find(['{', '}']).filter(|end| inner[*end..].starts_with('}'));
        let end = end.ok_or(Fault::Unreadable)?;
        self.rest = &inner[end + 1..];
        let words = inner[..end].trim();
        match words {
            "" => {}
            "and" | "," | ", and" => self.push(Token::Comma),
            "or" => self.push(Token::Or),
            // `\text{5}` is a number all the same.
            _ if words.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
                let rest = std::mem::replace(&mut self.rest, words);
                while !self.rest.is_empty() {
                    self.next()?;
                }
                self.rest = rest;
            }
            _ => {
                for (at, words) in words.split(',').enumerate() {
                    if at > 0 {
                        self.push(Token::Comma);
                    }
                    self.push(Token::Words(words.trim().to_owned()));
                }
            }
        }
        Ok(())
    }
}
