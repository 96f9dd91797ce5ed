//! Tools that read users, orders and products.

use std::collections::BTreeMap;

use super::order as find_order;
use crate::{
    database::Database,
    domain::Table,
    tools::Outcome,
    value::{Exception, Value},
};

fn user_not_found() -> Exception {
    Exception::new("user not found")
}

pub(super) fn user_by_email(database: &mut Database, [email]: [&Value; 1]) -> Outcome {
    let email = email.lower()?;
    for (user_id, user) in database.records(Table::Users) {
        if user.at("email")?.lower()? == email {
            return Ok(user_id.to_owned());
        }
    }
    Err(user_not_found())
}

pub(super) fn user_by_name(
    database: &mut Database,
    [first_name, last_name, zip]: [&Value; 3],
) -> Outcome {
    let first_name = first_name.lower()?;
    for (user_id, user) in database.records(Table::Users) {
        let name = user.at("name")?;
        // Python looks at the last name only where the first name fits.
        if name.at("first_name")?.lower()? == first_name
            && name.at("last_name")?.lower()? == last_name.lower()?
            && user.at("address")?.at("zip")? == zip
        {
            return Ok(user_id.to_owned());
        }
    }
    Err(user_not_found())
}

pub(super) fn user(database: &mut Database, [user_id]: [&Value; 1]) -> Outcome {
    database.find(Table::Users, user_id)?.map(Value::dumps).ok_or_else(user_not_found)
}

pub(super) fn order(database: &mut Database, [order_id]: [&Value; 1]) -> Outcome {
    find_order(database, order_id).map(Value::dumps)
}

pub(super) fn product(database: &mut Database, [product_id]: [&Value; 1]) -> Outcome {
    let product = database.find(Table::Products, product_id)?;
    product.map(Value::dumps).ok_or_else(|| Exception::new("product not found"))
}

pub(super) fn product_types(database: &mut Database, []: [&Value; 0]) -> Outcome {
    let mut ids = BTreeMap::new();
    for (_, product) in database.records(Table::Products) {
        ids.insert(product.at("name")?.to_string(), product.at("product_id")?);
    }
    Ok(Value::object(ids).dumps())
}
