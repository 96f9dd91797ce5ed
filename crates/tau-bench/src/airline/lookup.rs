//! Tools that read users, reservations and airports.

use crate::{
    database::Database,
    domain::Table,
    tools::Outcome,
    value::{Exception, Value},
};

pub(super) fn user(database: &mut Database, [user_id]: [&Value; 1]) -> Outcome {
    let user = database.find(Table::Users, user_id)?;
    user.map(Value::dumps).ok_or_else(|| Exception::new("user not found"))
}

/// The text of the failed check names the user, as in the benchmark.
pub(super) fn reservation(database: &mut Database, [reservation_id]: [&Value; 1]) -> Outcome {
    let reservation = database.find(Table::Reservations, reservation_id)?;
    reservation.map(Value::dumps).ok_or_else(|| Exception::new("user not found"))
}

pub(super) fn airports(_: &mut Database, []: [&Value; 0]) -> Outcome {
    Ok(Value::object(AIRPORTS).dumps())
}

const AIRPORTS: [(&str, &str); 20] = [
    ("SFO", "San Francisco"),
    ("JFK", "New York"),
    ("LAX", "Los Angeles"),
    ("ORD", "Chicago"),
    ("DFW", "Dallas"),
    ("DEN", "Denver"),
    ("SEA", "Seattle"),
    ("ATL", "Atlanta"),
    ("MIA", "Miami"),
    ("BOS", "Boston"),
    ("PHX", "Phoenix"),
    ("IAH", "Houston"),
    ("LAS", "Las Vegas"),
    ("MCO", "Orlando"),
    ("EWR", "Newark"),
    ("CLT", "Charlotte"),
    ("MSP", "Minneapolis"),
    ("DTW", "Detroit"),
    ("PHL", "Philadelphia"),
    ("LGA", "LaGuardia"),
];
