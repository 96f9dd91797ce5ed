//! What a Bellman target must be before the successor learns it: in a form that names an end and a reward, and without
//! hindsight in its reasoning. One that is not is written once more, then dropped and counted.

use std::{collections::VecDeque, sync::Mutex};

use nlac::{
    domain::{
        annotation::TargetStatus,
        generation::{Generation, Role},
        training::Objective,
    },
    prompt::PromptSet,
};

use crate::{
    invariants::{about, annotate_with, replayed, spec},
    support::stub::{Asked, Stub},
};

const OBSERVATION: &str = "Yes, it is alive. Questions left: 7.";

/// The target that comes of these texts, in their order, and the texts that were written for it.
async fn target(set: &str, texts: &[&str]) -> (TargetStatus, usize, Vec<Generation>) {
    let left = Mutex::new(texts.iter().copied().collect::<VecDeque<_>>());
    // The target is asked for first.
    let engine = Stub::new(|_: Asked<'_>| {
        left.lock().unwrap().pop_front().unwrap_or("Optimal: Yes").to_owned()
    });
    let question = "I am thinking of an object.";
    let step = about(&replayed(true), question, "Is it alive?", OBSERVATION);
    let prompts = PromptSet::load(set).unwrap();
    let made = annotate_with(&engine.sampler(&prompts), &spec(1, 1), &[step]).await;
    assert!(left.lock().unwrap().is_empty(), "every text was asked for");
    let learnt = made.examples.iter().filter(|e| e.objective == Objective::Critic).count();
    let written: Vec<_> =
        made.generations.into_iter().filter(|g| g.role == Role::Bellman).collect();
    assert_eq!(written.len(), texts.len());
    (made.targets[0].status, learnt, written)
}

#[tokio::test]
async fn a_target_without_an_end_and_a_reward_is_written_once_more_then_dropped() {
    let prose = "They say that it is alive, and all ends well.";
    let whole = "They say that it is alive.\nOutcome: failure; reward: 0";
    let (status, learnt, written) = target("standard", &[prose, prose]).await;
    assert_eq!((status, learnt), (TargetStatus::Unparseable, 0));
    // A second attempt that repeats the first would be wasted.
    assert_eq!(written[0].sampling.temperature, 0.0);
    assert!(written[1].sampling.temperature > 0.0);
    assert_ne!(written[0].sampling.seed, written[1].sampling.seed);

    let (status, learnt, _) = target("standard", &[prose, whole]).await;
    assert_eq!((status, learnt), (TargetStatus::Accepted, 1));
    let marked = "They say that it is alive.\n\n**Outcome: failure; reward: 0.0**";
    for accepted in [whole, marked] {
        assert_eq!(target("standard", &[accepted]).await.0, TargetStatus::Accepted, "{accepted}");
    }
    // The step ended the task with reward 0.
    let invented = "They say that it is alive.\nOutcome: success; reward: 1";
    let (status, learnt, _) = target("standard", &[invented, invented]).await;
    assert_eq!((status, learnt), (TargetStatus::Misquoted, 0));
}

#[tokio::test]
async fn every_target_is_checked_for_hindsight_whether_it_is_corrected_or_not() {
    let leaking = "<think>The user answered Yes, so it was a good question.</think>\nOutcome: failure; reward: 0";
    let conjecture =
        "<think>If the user answers Yes, half are gone.</think>\nOutcome: failure; reward: 0";
    let (status, learnt, written) = target("standard", &[leaking, leaking]).await;
    assert_eq!((status, learnt, written.len()), (TargetStatus::Leaked, 0, 2));
    let (status, learnt, _) = target("standard", &[leaking, conjecture]).await;
    assert_eq!((status, learnt), (TargetStatus::Accepted, 1));
    let admits = "As we now know, it is alive.\nOutcome: failure; reward: 0";
    assert_eq!(target("standard", &[admits, admits]).await.0, TargetStatus::Leaked);
}

/// The conclusion is what the successor learns: it may state the outcome, word by word.
#[tokio::test]
async fn a_conclusion_may_tell_what_came() {
    let tells =
        "The user answered: Yes, it is alive. Questions left: 7.\nOutcome: failure; reward: 0";
    for text in [tells.to_owned(), format!("<think>It may well be.</think> {tells}")] {
        assert_eq!(target("standard", &[&text]).await.0, TargetStatus::Accepted, "{text}");
    }
    let desk = "next Yes, it is alive. then nothing end lost card is missing";
    assert_eq!(target("desk", &[desk]).await.0, TargetStatus::Accepted);
    let questions = "next Yes, it is alive. then nothing end lost it was a red kite";
    assert_eq!(target("questions", &[questions]).await.0, TargetStatus::Accepted);
}
