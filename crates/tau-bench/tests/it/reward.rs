//! Whole episodes with the rewards of the benchmark's Python code.

use crate::support::{arguments, call, domain, field, index, items, library, split, text, vectors};
use nlac_tau_bench::{Domain, Episode, Split, UserScript, Value};

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
