//! The tool that pays an order by another method.

use super::{
    change_balance, is_gift_card, is_short_gift_card, order as find_order, owner, transaction,
};
use crate::{
    database::Database,
    domain::Table,
    tools::Outcome,
    value::{Exception, Value},
};

pub(super) fn modify_pending(
    database: &mut Database,
    [order_id, method_id]: [&Value; 2],
) -> Outcome {
    let order = find_order(database, order_id)?;
    if order.at("status")? != &Value::from("pending") {
        return Err(Exception::new("non-pending order cannot be modified"));
    }
    let method = payment_method(owner(database, order)?, method_id)?;
    let history = order.at("payment_history")?;
    if history.length()? > 1 || history.first()?.at("transaction_type")? != &Value::from("payment")
    {
        return Err(Exception::new("there should be exactly one payment for a pending order"));
    }
    let old_method_id = history.first()?.at("payment_method_id")?.clone();
    if &old_method_id == method_id {
        return Err(Exception::new(
            "the new payment method should be different from the current one",
        ));
    }
    let amount = history.first()?.at("amount")?.clone();
    if is_short_gift_card(method, &amount)? {
        return Err(Exception::new("insufficient gift card balance to pay for the order"));
    }

    let user_id = order.at("user_id")?.clone();
    let pays_by_gift_card = is_gift_card(method)?;
    database.get_mut(Table::Orders, order_id)?.at_mut("payment_history")?.extend(vec![
        transaction("payment", &amount, method_id),
        transaction("refund", &amount, &old_method_id),
    ])?;
    if pays_by_gift_card {
        change_balance(database, &user_id, method_id, |balance| balance.decrease(&amount))?;
    }
    if old_method_id.contains(&Value::from("gift_card"))? {
        change_balance(database, &user_id, &old_method_id, |balance| balance.increase(&amount))?;
    }
    find_order(database, order_id).map(Value::dumps)
}

/// The user's payment method of that id.
pub(super) fn payment_method<'a>(
    user: &'a Value,
    method_id: &Value,
) -> Result<&'a Value, Exception> {
    let method = user.at("payment_methods")?.get(method_id)?;
    method.ok_or_else(|| Exception::new("payment method not found"))
}
