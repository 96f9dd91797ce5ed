//! The tool that cancels a reservation.

use crate::{
    database::Database,
    domain::Table,
    tools::Outcome,
    value::{Exception, Value},
};

/// Refunds every entry of the payment history, so a second call doubles the history.
pub(super) fn reservation(database: &mut Database, [reservation_id]: [&Value; 1]) -> Outcome {
    let Some(reservation) = database.find(Table::Reservations, reservation_id)? else {
        return Err(Exception::new("reservation not found"));
    };
    let mut refunds = Vec::new();
    for payment in reservation.at("payment_history")?.iterate()? {
        refunds.push(Value::object([
            ("payment_id", payment.at("payment_id")?.clone()),
            ("amount", payment.at("amount")?.negate()?),
        ]));
    }
    let reservation = database.get_mut(Table::Reservations, reservation_id)?;
    reservation.at_mut("payment_history")?.extend(refunds)?;
    reservation.set("status", "cancelled")?;
    Ok(reservation.dumps())
}
