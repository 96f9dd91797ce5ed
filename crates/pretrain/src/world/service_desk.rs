//! The service desk's requests.

use nlac::{
    domain::spec::EnvironmentSpec,
    env::{
        Word,
        service_desk::{Combination, Desk, Field, Kind, Part, Product, Tier},
    },
};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::form::{Customer, FormDesk};

/// The service desk. Its base reads no request that a job may hold out.
pub struct ServiceDesk;

impl FormDesk for ServiceDesk {
    type Field = Field;

    const TURNS: u32 = EnvironmentSpec::SERVICE_DESK_TURNS;
    const FILLED: f64 = 0.35;

    fn request_words() -> Vec<&'static str> {
        let kinds = Kind::ALL.iter().map(|kind| kind.word());
        let products = Product::ALL.iter().map(|product| product.word());
        let tiers = Tier::ALL.iter().map(|tier| tier.word());
        kinds.chain(products).chain(tiers).collect()
    }

    fn open(rng: &mut ChaCha8Rng) -> (String, Customer) {
        let all: Vec<_> = Combination::all().filter(|c| c.part() == Part::Train).collect();
        let combination = all[rng.random_range(0..all.len())];
        let mut desk = Desk::new(combination, combination.needs());
        (desk.request(), Box::new(move |action| desk.turn(action)))
    }
}
