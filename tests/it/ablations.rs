//! Each ablation leaves out what it says it leaves out, and nothing else (algorithms sheet §1.9, §7.23).

use nlac::{
    algo::{Annotations, Replayed, scalar},
    domain::{
        annotation::Verdict,
        generation::{Role, Weights},
        seed::SeedPath,
        spec::{Ablation, NlacSpec, RolloutSpec, SamplingSpec, ScalarSpec},
        training::{ExampleSource, Objective},
    },
    env::{Environment, HelpDesk, Split},
    prompt::{Encoder, PromptSet},
};

use crate::{
    invariants::{by_role, replayed, run, run_on, spec},
    support::{
        model_dir,
        stub::{Asked, Stub},
    },
};

fn without(ablation: Ablation) -> NlacSpec {
    NlacSpec { ablation, ..spec(1, 1) }
}

fn examples(made: &Annotations, objective: Objective) -> usize {
    made.examples.iter().filter(|e| e.objective == objective).count()
}

#[tokio::test]
async fn an_untrained_critic_is_asked_but_never_taught() {
    let (made, _) = run(&without(Ablation::UntrainedCritic), false, false).await;
    assert_eq!((made.targets.len(), made.critiques.len()), (1, 1));
    assert_eq!((examples(&made, Objective::Critic), examples(&made, Objective::Policy)), (0, 1));
}

#[tokio::test]
async fn terminal_targets_bootstrap_nothing() {
    let batch = [replayed(false), replayed(true)];
    let (made, asked) = run_on(&without(Ablation::TerminalTargets), false, None, &batch).await;
    assert_eq!(made.targets.len(), 1);
    assert_eq!(made.targets[0].transition_id, batch[1].transition.id);
    assert!(asked.iter().all(|(_, p)| !p.ends_with("combine") || p.contains("predicted nothing")));
    assert_eq!(examples(&made, Objective::Policy), 2, "the actor is left as it is");
}

#[tokio::test]
async fn shuffled_critiques_go_to_another_transition() {
    let mut batch: Vec<Replayed> = (0..16).map(|_| replayed(false)).collect();
    for (position, replayed) in (0..).zip(&mut batch) {
        replayed.position = position;
    }
    let (made, _) = run_on(&without(Ablation::ShuffledCritiques), false, None, &batch).await;
    let own = |r: &nlac::domain::annotation::Refinement| {
        let critique = made.critiques.iter().find(|c| c.id == r.critique_id).unwrap();
        critique.transition_id == r.transition_id
    };
    assert_eq!(made.refinements.len(), 16);
    assert!(made.refinements.iter().filter(|r| own(r)).count() < 8);
    let (made, _) = run_on(&without(Ablation::None), false, None, &batch).await;
    for refinement in &made.refinements {
        let critique = made.critiques.iter().find(|c| c.id == refinement.critique_id).unwrap();
        assert_eq!(critique.transition_id, refinement.transition_id);
    }
}

/// NLQL: N actions are sampled, equal ones are judged once, the first good one is distilled, nothing is
/// refined.
#[tokio::test]
async fn the_best_of_several_actions_is_distilled_without_a_refiner() {
    let ablation = Ablation::BestOfActions { candidates: 4 };
    let good = NlacSpec { ablation, ..spec(2, 1) };
    let (made, asked) = run(&good, true, false).await;
    let counts = by_role(&made);
    assert!(!counts.contains_key(&Role::Refiner));
    // One a' for the target, four candidates; they are all "please wait .", which is judged once.
    assert_eq!(counts[&Role::Policy], 5);
    assert_eq!((made.critiques.len(), made.critiques[0].prediction_ids.len()), (1, 2));
    let policy = made.examples.iter().find(|e| e.objective == Objective::Policy).unwrap();
    assert_eq!(policy.source, ExampleSource::Candidate);
    let encoder = Encoder::load(&model_dir()).unwrap();
    let said: Vec<u32> = policy.completion_tokens.iter().map(|t| t.cast_unsigned()).collect();
    assert_eq!(encoder.decode(&said).unwrap(), "please wait .");
    let of_policy = |name: &str| {
        asked.iter().filter(|(n, p)| n.as_deref() == Some(name) && p.ends_with("left 5")).count()
    };
    assert_eq!(of_policy("online"), 4, "candidates are the present policy's");

    let (made, _) = run(&good, false, false).await;
    assert_eq!(made.critiques[0].verdict, Verdict::No);
    assert_eq!(examples(&made, Objective::Policy), 0, "no good action, nothing to distil");
}

/// Self-Distillation: the evaluator reads what really happened; the successor is neither asked nor
/// taught.
#[tokio::test]
async fn raw_rollouts_need_no_successor() {
    // A state that the desk really goes through.
    let mut step = replayed(false);
    let seed = (0..).find(|seed| opening(*seed) == "i want a refund form empty left 5").unwrap();
    step.episode_seed = seed;
    let spec = NlacSpec { futures: 2, ..without(Ablation::RawRollouts) };
    let (made, asked) = run_on(&spec, false, None, &[step]).await;
    assert!(asked.iter().all(|(_, prompt)| !prompt.ends_with("predict the future")));
    assert!(!by_role(&made).contains_key(&Role::Successor));
    assert_eq!((made.targets.len(), examples(&made, Objective::Critic)), (0, 0));
    assert_eq!(made.critiques[0].prediction_ids.len(), 2);
    // "please wait ." until the desk closes: the first action and four more, twice.
    assert_eq!(made.env_steps, 10);
    // Told from the ending back: one terminal telling per rollout, then the steps before it.
    let tellings: Vec<_> = asked.iter().filter(|(_, p)| p.ends_with("combine")).collect();
    assert_eq!(tellings.len(), 10);
    assert!(tellings[0].1.contains("closed") && tellings[0].1.contains("predicted nothing"));
    assert_eq!(tellings.iter().filter(|(_, p)| p.contains("predicted nothing")).count(), 2);
    assert_eq!(examples(&made, Objective::Policy), 1);
}

fn opening(seed: i64) -> String {
    let session = futures_util::FutureExt::now_or_never(HelpDesk.reset(Split::Train, seed));
    session.unwrap().unwrap().opening()[0].content.clone()
}

#[tokio::test]
async fn a_scalar_critic_bootstraps_numbers_and_weighs_actions_by_them() {
    let encoder = Encoder::load(&model_dir()).unwrap();
    // Waiting is worth 2 of 8, anything else 8; the policy waits by chance.
    let engine = Stub::new(|ask: Asked<'_>| {
        let text = match ask.prompt.strip_suffix(" predict the reward") {
            Some(state) if state.ends_with("please wait .") => "2",
            Some(_) => "8",
            None if ask.seed % 2 == 0 => "please wait .",
            None => "what is your card ?",
        };
        text.to_owned()
    });
    let prompts = PromptSet::load("desk").unwrap();
    let cast = engine.cast(&prompts);
    let spec = ScalarSpec {
        warmup_iterations: 0,
        candidates: 8,
        values: 1,
        temperature: 0.25,
        action: SamplingSpec { temperature: 1.0, max_tokens: 8 },
        ..ScalarSpec::default()
    };
    let setting = scalar::Setting {
        cast: &cast,
        environment: &HelpDesk,
        rollout: &RolloutSpec::default(),
        spec: &spec,
        iteration: 9,
        seed: SeedPath::root(0),
    };
    let mut ending = replayed(true);
    ending.position = 1;
    let made = scalar::annotate(&setting, &[replayed(false), ending]).await.unwrap();
    let roles = by_role(&made);
    assert!(roles.keys().all(|role| matches!(role, Role::Policy | Role::Value)), "{roles:?}");
    let critic: Vec<_> =
        made.examples.iter().filter(|e| e.objective == Objective::Critic).collect();
    let say = |tokens: &[i32]| {
        let tokens: Vec<u32> = tokens.iter().map(|t| t.cast_unsigned()).collect();
        encoder.decode(&tokens).unwrap()
    };
    // The step that goes on takes over the value of (s', a'); the ending has its own reward, 0.
    assert!(["2", "8"].contains(&say(&critic[0].completion_tokens).as_str()));
    assert_eq!(say(&critic[1].completion_tokens), "0");
    assert_eq!(critic[1].completion_tokens.last(), Some(&2), "it learns to stop");
    let bootstrap: Vec<_> =
        made.generations.iter().filter(|g| g.weights == Weights::Target).collect();
    assert_eq!(bootstrap.len(), 2, "one a' and its value");
    // exp(1 / .25) against exp(.25 / .25), shared among equal ones; the weights sum to 1 per state.
    for transition in made.examples.iter().map(|e| e.transition_id) {
        let of: Vec<_> = made
            .examples
            .iter()
            .filter(|e| e.objective == Objective::Policy && e.transition_id == transition)
            .collect();
        let total: f32 = of.iter().map(|e| e.weight).sum();
        assert!((total - 1.0).abs() < 1e-5, "{total}");
        let weight = |text: &str| of.iter().find(|e| say(&e.completion_tokens) == text);
        if let (Some(good), Some(bad)) = (weight("what is your card ?"), weight("please wait .")) {
            assert!((good.weight / bad.weight / 3.0_f32.exp() - 1.0).abs() < 1e-3);
        }
    }
}
