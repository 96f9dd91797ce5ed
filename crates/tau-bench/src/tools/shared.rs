//! The tools that both domains have.

use crate::{
    calculate,
    database::Database,
    tools::Outcome,
    value::{Exception, Value},
};

/// The tool whose call ends the episode.
pub(crate) const TRANSFER: &str = "transfer_to_human_agents";

pub(crate) fn transfer_to_human_agents(_: &mut Database, [_summary]: [&Value; 1]) -> Outcome {
    Ok("Transfer successful".to_owned())
}

pub(crate) fn think(_: &mut Database, [_thought]: [&Value; 1]) -> Outcome {
    Ok(String::new())
}

pub(crate) fn calculate(_: &mut Database, [expression]: [&Value; 1]) -> Outcome {
    let accepted = Value::from(calculate::ALPHABET);
    for character in expression.iterate()? {
        if !accepted.contains(&character)? {
            return Err(Exception::new("invalid characters in expression"));
        }
    }
    let Some(expression) = expression.as_str() else {
        return Err(Exception::new("eval() arg 1 must be a string, bytes or code object"));
    };
    calculate::calculate(expression).map_err(Exception::new)
}
