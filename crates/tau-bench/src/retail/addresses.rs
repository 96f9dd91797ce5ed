//! Tools that replace an address.

use super::order as find_order;
use crate::{
    database::Database,
    domain::Table,
    tools::Outcome,
    value::{Exception, Value},
};

pub(super) fn of_order(database: &mut Database, [order_id, lines @ ..]: [&Value; 7]) -> Outcome {
    let order = find_order(database, order_id)?;
    if order.at("status")? != &Value::from("pending") {
        return Err(Exception::new("non-pending order cannot be modified"));
    }
    replace_address(database.get_mut(Table::Orders, order_id)?, lines)
}

pub(super) fn of_user(database: &mut Database, [user_id, lines @ ..]: [&Value; 7]) -> Outcome {
    if database.find(Table::Users, user_id)?.is_none() {
        return Err(Exception::new("user not found"));
    }
    replace_address(database.get_mut(Table::Users, user_id)?, lines)
}

fn replace_address(record: &mut Value, lines: [&Value; 6]) -> Outcome {
    let names = ["address1", "address2", "city", "state", "country", "zip"];
    record.set("address", Value::object(names.into_iter().zip(lines)))?;
    Ok(record.dumps())
}
