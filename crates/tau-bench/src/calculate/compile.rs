//! Compiles an expression to postfix steps by Python's grammar:
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = factor (("*" | "/" | "//") factor)*
//! factor  = ("+" | "-")* primary ("**" factor)?
//! primary = atom ("(" sum? ")")*
//! atom    = number | "..." | "(" sum? ")"
//! ```

use super::{
    Operator, Step,
    arithmetic::Operand,
    tokens::{Token, Tokens, located, tokenize},
};

/// Where an expression leaves the grammar. The parser has not moved past that token.
struct Misfit;

pub(super) fn compile(expression: &str) -> Result<Vec<Step>, String> {
    let Tokens { tokens, unclosed } = tokenize(expression)?;
    if tokens.len() == 1 {
        return Err("invalid syntax (<string>, line 0)".to_owned());
    }
    let mut parser = Parser { tokens, at: 0, steps: Vec::new() };
    let parsed = parser.sum();
    if parsed.is_ok() && matches!(parser.peek(), Token::End) {
        return Ok(parser.steps);
    }
    Err(located(parser.problem(unclosed)))
}

/// Recursion is bounded: only parentheses recurse, and the tokenizer limits their depth.
struct Parser {
    tokens: Vec<Token>,
    at: usize,
    steps: Vec<Step>,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn operator(&mut self, accepted: &[Operator]) -> Option<Operator> {
        match self.peek() {
            Token::Operator(operator) if accepted.contains(operator) => {
                let operator = *operator;
                self.at += 1;
                Some(operator)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Result<(), Misfit> {
        self.product()?;
        while let Some(operator) = self.operator(&[Operator::Add, Operator::Subtract]) {
            self.product()?;
            self.steps.push(Step::Binary(operator));
        }
        Ok(())
    }

    fn product(&mut self) -> Result<(), Misfit> {
        const OPERATORS: [Operator; 3] =
            [Operator::Multiply, Operator::Divide, Operator::FloorDivide];
        self.factor()?;
        while let Some(operator) = self.operator(&OPERATORS) {
            self.factor()?;
            self.steps.push(Step::Binary(operator));
        }
        Ok(())
    }

    /// Signs and powers apply from right to left: `-2**-3` is `-(2**(-3))`.
    fn factor(&mut self) -> Result<(), Misfit> {
        let mut pending = Vec::new();
        loop {
            while let Some(sign) = self.operator(&[Operator::Add, Operator::Subtract]) {
                pending.push(if sign == Operator::Add { Step::Keep } else { Step::Negate });
            }
            self.primary()?;
            match self.operator(&[Operator::Power]) {
                Some(power) => pending.push(Step::Binary(power)),
                None => break,
            }
        }
        self.steps.extend(pending.into_iter().rev());
        Ok(())
    }

    fn primary(&mut self) -> Result<(), Misfit> {
        match self.peek().clone() {
            Token::Atom(operand) => {
                self.at += 1;
                self.steps.push(Step::Push(operand));
            }
            Token::Open => {
                if !self.parenthesised()? {
                    self.steps.push(Step::Push(Operand::Other("tuple")));
                }
            }
            _ => return Err(Misfit),
        }
        while matches!(self.peek(), Token::Open) {
            let with_argument = self.parenthesised()?;
            self.steps.push(Step::Call { with_argument });
        }
        Ok(())
    }

    /// Whether there is an expression between the parentheses.
    fn parenthesised(&mut self) -> Result<bool, Misfit> {
        self.at += 1;
        let filled = !matches!(self.peek(), Token::Close);
        if filled {
            self.sum()?;
        }
        if !matches!(self.peek(), Token::Close) {
            return Err(Misfit);
        }
        self.at += 1;
        Ok(filled)
    }

    /// Python looks on from the misfit. It suggests a comma for two expressions side by side within
    /// parentheses, unless it runs into the end of the text while it reads the second one.
    fn problem(&mut self, unclosed: bool) -> &'static str {
        let before = &self.tokens[..self.at];
        let count =
            |wanted: fn(&Token) -> bool| before.iter().filter(|token| wanted(token)).count();
        let is_inside = count(|token| matches!(token, Token::Open))
            > count(|token| matches!(token, Token::Close));
        let is_second_expression = matches!(before.last(), Some(Token::Atom(_) | Token::Close))
            && matches!(self.peek(), Token::Atom(_));
        if is_second_expression {
            // How the second expression ends is of no interest, only where.
            let _ = self.sum();
        }
        match self.peek() {
            Token::End if unclosed => "'(' was never closed",
            _ if is_second_expression && is_inside => "invalid syntax. Perhaps you forgot a comma?",
            _ => "invalid syntax",
        }
    }
}
