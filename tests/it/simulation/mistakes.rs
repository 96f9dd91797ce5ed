//! The simulation finds mistakes: statements of the store are changed on their way to Postgres, and some schedule must
//! break a promise.

use std::collections::BTreeMap;

use super::{
    play, scenario, scenario::Scenario, schedule::Plan, simulate, undisturbed, variable,
    wire::Mistake, world::World,
};

const MISTAKES: &[Mistake] = &[
    Mistake {
        what: "a holder that lost its lease may write",
        statement: "leases::hold",
        right: "lease_token = $2",
        wrong: "$2::uuid is not null",
    },
    Mistake {
        what: "a holder that lost its lease may end the unit",
        statement: "leases::end",
        right: "where id = $1 and lease_token = $2 and state = 'leased'",
        wrong: "where id = $1 and $2::uuid is not null and state = 'leased'",
    },
    Mistake {
        what: "two claim one unit",
        statement: "leases::claim",
        right: "for update skip locked",
        wrong: "",
    },
    Mistake {
        what: "two plan one job",
        statement: "jobs::lock",
        right: "for no key update",
        wrong: "",
    },
    Mistake {
        what: "an outage uses an attempt",
        statement: "leases::wait",
        right: "attempt = attempt - 1",
        wrong: "attempt = attempt",
    },
    Mistake {
        what: "a unit whose lease lapsed is not taken over",
        statement: "leases::claim",
        right: "w.lease_expires_at < now()",
        wrong: "false",
    },
    Mistake {
        what: "an optimizer step is counted twice",
        statement: "spending::add",
        right: "optimizer_steps = s.optimizer_steps + $5",
        wrong: "optimizer_steps = s.optimizer_steps + 2 * $5",
    },
];

#[test]
#[ignore = "takes minutes: cargo test --test it simulation -- --ignored"]
fn every_mistake_is_found() {
    let most = variable("NLAC_SIM_SCHEDULES", 300);
    let mut unfound = Vec::new();
    for mistake in MISTAKES {
        let found = simulate(async {
            let mut expected = BTreeMap::new();
            let mut world = World::new().await;
            for scenario in Scenario::ALL {
                expected.insert(scenario, undisturbed(&mut world, scenario).await);
            }
            let mut world = World::with(Some(*mistake)).await;
            for seed in 0..most {
                let scenario = scenario(seed);
                let expected = Some(expected[&scenario].as_slice());
                if let Err(error) = play(&mut world, scenario, Plan::Seed(seed), expected).await {
                    return Some((seed + 1, error.lines().next().unwrap_or_default().to_owned()));
                }
            }
            None
        });
        match found {
            Some((schedules, how)) => {
                eprintln!("{}: found after {schedules} schedules: {how}", mistake.what);
            }
            None => unfound.push(mistake.what),
        }
    }
    assert!(unfound.is_empty(), "nothing broke in {most} schedules: {unfound:?}");
}
