//! What parts that reason see of each other.

use std::sync::Mutex;

use nlac::{
    domain::{
        annotation::{TargetStatus, Verdict},
        generation::{FinishReason, Role},
        spec::NlacSpec,
    },
    prompt::PromptSet,
};

use super::{asked, part_of_a_job};
use crate::{
    invariants::{annotate_with, replayed},
    support::thinking::Family,
};

#[tokio::test]
async fn parts_see_the_answers_of_other_parts_and_not_their_reasoning() {
    let prompts = PromptSet::load("standard").unwrap();
    for family in Family::ALL {
        let heard = Mutex::new(Vec::new());
        let say = |prompt: &str| {
            heard.lock().unwrap().push(prompt.to_owned());
            let (thought, said) = part_of_a_job(prompt);
            family.reply(&thought, said)
        };
        let engine = family.engine(say);
        let spec = NlacSpec { correct_reasoning: Some(false), ..NlacSpec::default() };
        let made = annotate_with(&engine.sampler(&prompts), &spec, &[replayed(false)]).await;
        let heard = heard.lock().unwrap();
        let leaked = heard.iter().find(|prompt| prompt.contains("thinks so"));
        assert_eq!(leaked, None, "{family:?}");
        assert!(made.critiques.iter().all(|critique| critique.verdict == Verdict::No));
        assert!(made.refinements.iter().all(|refinement| refinement.valid));
        assert_eq!(made.targets[0].status, TargetStatus::Accepted);
        for generation in &made.generations {
            let thought = format!("<think>\nThe {} thinks so.\n</think>\n\n", generation.role);
            assert!(generation.text.starts_with(&thought), "{}", generation.text);
            assert_eq!(generation.answer().map(str::is_empty), Some(false));
        }
    }
}

#[tokio::test]
async fn reasoning_that_never_ends_is_no_answer() {
    let prompts = PromptSet::load("standard").unwrap();
    for family in Family::ALL {
        // The evaluator is cut, the Bellman backup stops by itself; both name a verdict and an outcome first.
        let say = |prompt: &str| {
            let (_, said) = part_of_a_job(prompt);
            match asked(prompt) {
                Role::Evaluator => family.endless(&"Optimal: Yes.\n".repeat(40)),
                Role::Bellman => family.endless(said),
                _ => family.reply("Hm.", said),
            }
        };
        let engine = family.engine(say);
        let made =
            annotate_with(&engine.sampler(&prompts), &NlacSpec::default(), &[replayed(false)])
                .await;
        let ends = |role| {
            let of_role = made.generations.iter().filter(move |g| g.role == role);
            of_role.map(|generation| generation.finish_reason).collect::<Vec<_>>()
        };
        assert_eq!(ends(Role::Evaluator), [FinishReason::Length], "{family:?}");
        assert_eq!(ends(Role::Bellman), [FinishReason::Unanswered; 2], "{family:?}");
        assert_eq!(made.critiques[0].verdict, Verdict::Unparseable);
        assert_eq!(made.targets[0].status, TargetStatus::Unparseable);
        assert!(made.examples.is_empty(), "{:?}", made.examples);
    }
}
