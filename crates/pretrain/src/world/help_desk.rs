//! The help desk's requests.

use nlac::{
    domain::spec::EnvironmentSpec,
    env::{Desk, Field, Kind, Word},
};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::form::{Customer, FormDesk};

/// The help desk.
pub struct HelpDesk;

impl FormDesk for HelpDesk {
    type Field = Field;

    const TURNS: u32 = EnvironmentSpec::HELP_DESK_TURNS;
    const FILLED: f64 = 0.4;

    fn request_words() -> Vec<&'static str> {
        Kind::ALL.iter().map(|kind| kind.word()).collect()
    }

    fn open(rng: &mut ChaCha8Rng) -> (String, Customer) {
        let kind = Kind::ALL[rng.random_range(0..Kind::ALL.len())];
        let mut desk = Desk::new(kind);
        (desk.request(), Box::new(move |action| desk.turn(action)))
    }
}
