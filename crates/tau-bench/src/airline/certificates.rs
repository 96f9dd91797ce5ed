//! The tool that compensates a user.

use crate::{
    database::Database,
    domain::Table,
    tools::Outcome,
    value::{Exception, Value},
};

/// The benchmark names three certificates and has no answer for a fourth one.
const IDS: [&str; 3] = ["certificate_3221322", "certificate_3221323", "certificate_3221324"];

pub(super) fn send(database: &mut Database, [user_id, amount]: [&Value; 2]) -> Outcome {
    let Some(user) = database.find(Table::Users, user_id)? else {
        return Err(Exception::new("user not found"));
    };
    let methods = user.at("payment_methods")?;
    for id in IDS {
        if methods.contains(&Value::from(id))? {
            continue;
        }
        let certificate = Value::object([
            ("source", Value::from("certificate")),
            ("amount", amount.clone()),
            ("id", Value::from(id)),
        ]);
        let user = database.get_mut(Table::Users, user_id)?;
        user.at_mut("payment_methods")?.set(id, certificate)?;
        return Ok(format!("Certificate {id} added to user {user_id} with amount {amount}."));
    }
    Err(Exception::new("the user already has three certificates"))
}
