//! What the seats of new flights cost, and who can pay by what.

use super::search::{day, is_available};
use crate::{
    database::Database,
    domain::Table,
    value::{Exception, Value},
};

/// Fills in price, origin and destination of a flight that an agent chose by number and date.
/// Fails unless the cabin has a seat for each passenger.
pub(super) fn reserve(
    database: &Database,
    flight: &mut Value,
    cabin: &Value,
    passengers: &Value,
) -> Result<(), Exception> {
    let number = flight.at("flight_number")?;
    let Some(record) = database.find(Table::Flights, number)? else {
        return Err(Exception::new(format!("flight {number} not found")));
    };
    let date = flight.at("date")?;
    let Some(day) = day(record, date)? else {
        return Err(Exception::new(format!("flight {number} not found on date {date}")));
    };
    if !is_available(day)? {
        return Err(Exception::new(format!("flight {number} not available on date {date}")));
    }
    let seats = day.at("available_seats")?.lookup(cabin)?;
    if seats.less_than(&Value::Int(passengers.length()?))? {
        return Err(Exception::new(format!("not enough seats on flight {number}")));
    }
    fill_in(flight, day.at("prices")?.lookup(cabin)?, record)
}

/// Sets the three fields that an agent does not choose.
pub(super) fn fill_in(flight: &mut Value, price: &Value, route: &Value) -> Result<(), Exception> {
    flight.set("price", price)?;
    flight.set("origin", route.at("origin")?)?;
    flight.set("destination", route.at("destination")?)
}

/// The price of a flight for all passengers.
pub(super) fn fare(flight: &Value, passengers: &Value) -> Result<Value, Exception> {
    flight.at("price")?.times(passengers.length()?)
}
