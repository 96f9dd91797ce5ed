//! Whole episodes with the rewards of the benchmark's Python code, and pass^k.

use crate::support::{arguments, call, domain, field, index, items, library, split, text, vectors};
use nlac_tau_bench::{Domain, Episode, Split, Trials, UserScript, Value, pass_hat_k};

/// The vectors cut long observations to 200 characters and an ellipsis.
fn shortened(observation: &str) -> String {
    if observation.chars().count() <= 200 {
        return observation.to_owned();
    }
    observation.chars().take(200).chain(['…']).collect()
}

#[test]
fn episodes_earn_what_the_benchmark_pays() {
    for vector in vectors("reward_vectors.jsonl") {
        let id = field(&vector, "id");
        let library = library(domain(text(&vector, "domain"))).expect("data");
        let mut episode =
            Episode::new(library, split(text(&vector, "split")), index(&vector)).expect("a task");
        let script = items(&vector, "user_script").iter().map(ToString::to_string);
        let mut user = UserScript::new(script);
        for step in items(&vector, "steps") {
            let action = field(step, "action");
            let observation = if text(action, "name") == "respond" {
                episode.respond(arguments(action)["content"].as_str().expect("a message"));
                let reply = user.reply();
                episode.heard(&reply);
                reply
            } else {
                episode.call(&call(action))
            };
            assert_eq!(shortened(&observation), text(step, "observation"), "vector {id}");
            assert_eq!(&Value::Float(episode.reward()), field(step, "reward"), "vector {id}");
            assert_eq!(&Value::Bool(episode.ended()), field(step, "done"), "vector {id}");
        }
        assert_eq!(&Value::Float(episode.reward()), field(&vector, "final_reward"), "vector {id}");
    }
}

#[test]
fn an_episode_that_nobody_ended_earns_nothing() {
    let Some(library) = library(Domain::Airline) else { return };
    // Doing nothing fulfils this task.
    let unchanged = (0..50)
        .find(|index| {
            let mut episode = Episode::new(library.clone(), Split::Test, *index).expect("a task");
            episode.heard("###STOP###");
            episode.reward() > 0.0
        })
        .expect("some tasks want no change");
    let mut episode = Episode::new(library, Split::Test, unchanged).expect("a task");
    assert!(!episode.ended());
    assert_eq!(episode.reward(), 0.0);
    episode.heard("Bye. ###STOP###");
    assert_eq!(episode.reward(), 1.0);
}

#[test]
fn pass_hat_k_is_the_chance_that_k_episodes_succeed() {
    let trials = |successes, episodes| Trials { successes, episodes };
    assert_eq!(pass_hat_k(&[trials(2, 4)], 1), Some(0.5));
    // C(2, 2) / C(4, 2) = 1 / 6
    assert!((pass_hat_k(&[trials(2, 4)], 2).expect("enough episodes") - 1.0 / 6.0).abs() < 1e-12);
    assert_eq!(pass_hat_k(&[trials(2, 4), trials(4, 4)], 3), Some(0.5));
    assert_eq!(pass_hat_k(&[trials(4, 4)], 5), None);
    assert_eq!(pass_hat_k(&[], 1), None);
}
