//! The tool that books a reservation.

use super::seats::{fare, reserve};
use crate::{
    database::Database,
    domain::Table,
    tools::Outcome,
    value::{Exception, Value},
};

pub(super) fn reservation(
    database: &mut Database,
    [
        user_id,
        origin,
        destination,
        flight_type,
        cabin,
        flights,
        passengers,
        payments,
        total_baggages,
        nonfree_baggages,
        insurance,
    ]: [&Value; 11],
) -> Outcome {
    let Some(user) = database.find(Table::Users, user_id)? else {
        return Err(Exception::new("user not found"));
    };
    let reservation_id = free_id(database);

    let mut total = Value::Int(0);
    let mut booked = Vec::new();
    for flight in flights.iterate()? {
        let mut flight = flight.into_owned();
        reserve(database, &mut flight, cabin, passengers)?;
        total.increase(&fare(&flight, passengers)?)?;
        booked.push(flight);
    }
    if insurance == &Value::from("yes") {
        total.increase(&Value::Int(30).times(passengers.length()?)?)?;
    }
    total.increase(&nonfree_baggages.scaled(50)?)?;
    check_payments(user, payments, &total)?;

    pay(database.get_mut(Table::Users, user_id)?, payments)?;
    let reservation = Value::object([
        ("reservation_id", Value::from(reservation_id)),
        ("user_id", user_id.clone()),
        ("origin", origin.clone()),
        ("destination", destination.clone()),
        ("flight_type", flight_type.clone()),
        ("cabin", cabin.clone()),
        ("flights", Value::List(booked)),
        ("passengers", passengers.clone()),
        ("payment_history", payments.clone()),
        ("created_at", Value::from("2024-05-15T15:00:00")),
        ("total_baggages", total_baggages.clone()),
        ("nonfree_baggages", nonfree_baggages.clone()),
        ("insurance", insurance.clone()),
    ]);
    let observation = reservation.dumps();
    database.insert(Table::Reservations, reservation_id, reservation);
    let user = database.get_mut(Table::Users, user_id)?;
    user.at_mut("reservations")?.append(Value::from(reservation_id))?;
    Ok(observation)
}

/// The benchmark expects at most three bookings: a fourth one overwrites the third.
fn free_id(database: &Database) -> &'static str {
    let is_free = |id: &&str| database.record(Table::Reservations, id).is_none();
    ["HATHAT", "HATHAU"].into_iter().find(is_free).unwrap_or("HATHAV")
}

fn check_payments(user: &Value, payments: &Value, total: &Value) -> Result<(), Exception> {
    for payment in payments.iterate()? {
        let (method_id, amount) = (payment.at("payment_id")?, payment.at("amount")?);
        let method = user.at("payment_methods")?.get(method_id)?;
        let Some(method) = method else {
            return Err(Exception::new(format!("payment method {method_id} not found")));
        };
        let has_balance =
            ["gift_card", "certificate"].map(Value::from).contains(method.at("source")?);
        if has_balance && method.at("amount")?.less_than(amount)? {
            return Err(Exception::new(format!(
                "not enough balance in payment method {method_id}"
            )));
        }
    }
    let mut paid = Value::Int(0);
    for payment in payments.iterate()? {
        paid = paid.add(payment.at("amount")?)?;
    }
    if &paid != total {
        return Err(Exception::new(format!(
            "payment amount does not add up, total price is {total}, but paid {paid}"
        )));
    }
    Ok(())
}

/// Takes the amounts from gift cards, and certificates as a whole.
fn pay(user: &mut Value, payments: &Value) -> Result<(), Exception> {
    for payment in payments.iterate()? {
        let method_id = payment.at("payment_id")?;
        let methods = user.at_mut("payment_methods")?;
        let method = methods.lookup_mut(method_id)?;
        if method.at("source")? == &Value::from("gift_card") {
            method.at_mut("amount")?.decrease(payment.at("amount")?)?;
        } else if method.at("source")? == &Value::from("certificate") {
            methods.remove(method_id)?;
        }
    }
    Ok(())
}
