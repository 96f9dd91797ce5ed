//! What the algorithm asks of which weights, with an engine that counts.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;
use nlac::{
    algo::{
        Replayed,
        nlac::{Annotations, Setting, annotate},
    },
    domain::{
        annotation::{TargetStatus, Verdict},
        episode::{RewardStatus, Transition},
        generation::{FinishReason, Role, Weights},
        ids::{CheckpointId, EpisodeId, GenerationId, IterationId, JobId, TransitionId},
        message::Message,
        seed::SeedPath,
        spec::{NlacSpec, OnYes, RolloutSpec},
        training::{ExampleSource, Objective},
    },
    engine::{Adapter, Completion, Engine, EngineError, EngineInfo, Request},
    env::HelpDesk,
    prompt::{Encoder, PromptSet},
    rollout::{Cast, Published},
};

use crate::support::model_dir;

/// Answers by what it is asked, and remembers who was asked what.
struct Scripted {
    encoder: Encoder,
    says_yes: bool,
    asked: Mutex<Vec<(Option<String>, String)>>,
}

#[async_trait]
impl Engine for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn generate(&self, request: Request) -> Result<Completion, EngineError> {
        let prompt = self.encoder.decode(&request.prompt).unwrap();
        let text = if prompt.ends_with("predict the future") {
            "next ok then ok end lost card is missing"
        } else if prompt.ends_with("combine") && prompt.contains("predicted nothing") {
            "next refused card is missing then nothing end lost card is missing"
        } else if prompt.ends_with("combine") {
            "next here it is then ok end lost card is missing"
        } else if prompt.ends_with("is it optimal") {
            if self.says_yes {
                "yes because it ends solved"
            } else {
                "no because card is missing so ask the card"
            }
        } else if prompt.ends_with("improve") {
            "what is your card ?"
        } else {
            "please wait ."
        };
        let model = request.adapter.as_ref().map_or_else(|| "base".into(), |a| a.name.clone());
        let name = request.adapter.map(|a| a.name);
        self.asked.lock().unwrap().push((name, prompt));
        let mut token_ids = self.encoder.encode_text(text).unwrap();
        token_ids.push(2);
        let logprobs = request.logprobs.then(|| vec![-1.0; token_ids.len()]);
        Ok(Completion {
            engine: "scripted".into(),
            model,
            prompt_tokens: request.prompt.len() as u32,
            token_ids,
            logprobs,
            text: text.into(),
            finish_reason: FinishReason::Stop,
        })
    }

    async fn load(&self, _: &Adapter) -> Result<(), EngineError> {
        unreachable!("the algorithm loads nothing")
    }

    async fn unload(&self, _: &str) -> Result<(), EngineError> {
        unreachable!("the algorithm unloads nothing")
    }

    async fn check(&self) -> Result<EngineInfo, EngineError> {
        unreachable!("the algorithm checks nothing")
    }

    async fn tokenize_chat(&self, _: &[Message]) -> Result<Vec<u32>, EngineError> {
        unreachable!("the algorithm tokenises by itself")
    }
}

fn replayed(done: bool) -> Replayed {
    let (action, observation) = if done {
        ("do it now .", "refused card is missing")
    } else {
        ("what is your order ?", "here it is form order left 4")
    };
    Replayed {
        transition: Transition {
            id: TransitionId::new(),
            job_id: JobId::new(),
            iteration_id: IterationId::new(),
            episode_id: EpisodeId::new(),
            step: 0,
            state_len: 1,
            action: action.into(),
            env_action: Some(action.into()),
            observation: observation.into(),
            reward: Some(0.0),
            reward_status: RewardStatus::Observed,
            done,
            truncated: false,
            generation_id: Some(GenerationId::new()),
        },
        messages: vec![
            Message::user("i want a refund form empty left 5"),
            Message::assistant(action),
            Message::user(observation),
        ],
        action_tokens: vec![7, 8, 2],
        position: 0,
        episode_seed: 0,
        importance: 1.0,
    }
}

async fn run(
    spec: &NlacSpec,
    says_yes: bool,
    done: bool,
) -> (Annotations, Vec<(Option<String>, String)>) {
    let encoder = Encoder::load(&model_dir()).unwrap();
    let engine = Scripted { encoder: encoder.clone(), says_yes, asked: Mutex::default() };
    let prompts = PromptSet::load("desk").unwrap();
    let published = |name: &str| Published {
        checkpoint_id: CheckpointId::new(),
        adapter: Adapter { name: name.into(), path: "/nowhere".into() },
    };
    let cast = Cast {
        engine: &engine,
        prompts: &prompts,
        encoder: &encoder,
        online: published("online"),
        target: published("target"),
    };
    let seed = SeedPath::root(0);
    let rollout = RolloutSpec::default();
    let setting = Setting {
        cast: &cast,
        environment: &HelpDesk,
        rollout: &rollout,
        spec,
        iteration: 9,
        seed,
    };
    let annotations = annotate(&setting, &[replayed(done)]).await.unwrap();
    let asked = engine.asked.lock().unwrap().clone();
    (annotations, asked)
}

fn spec(futures: u32, rounds: u32) -> NlacSpec {
    NlacSpec { futures, rounds, warmup_iterations: 0, ..NlacSpec::default() }
}

fn by_role(annotations: &Annotations) -> BTreeMap<Role, usize> {
    let mut counts = BTreeMap::new();
    for generation in &annotations.generations {
        *counts.entry(generation.role).or_default() += 1;
    }
    counts
}

/// Calls per transition: critic 3 (terminal 1), actor m (k + 2).
#[tokio::test]
async fn calls_are_those_of_the_method() {
    for (k, m) in [(1, 1), (3, 1), (1, 2)] {
        for done in [false, true] {
            let (annotations, asked) = run(&spec(k, m), false, done).await;
            let critic = if done { 1 } else { 3 };
            assert_eq!(asked.len(), (critic + m * (k + 2)) as usize, "k {k} m {m} done {done}");
            let counts = by_role(&annotations);
            assert_eq!(counts.get(&Role::Policy).copied().unwrap_or(0), usize::from(!done));
            assert_eq!(counts[&Role::Refiner], m as usize);
            assert_eq!(annotations.generations.len(), asked.len());
        }
    }
}

#[tokio::test]
async fn an_ending_bootstraps_nothing_and_the_rest_bootstraps_once() {
    let (annotations, asked) = run(&spec(1, 1), false, true).await;
    assert!(annotations.targets[0].next_prediction_id.is_none());
    assert!(annotations.targets[0].next_action_generation_id.is_none());
    assert_eq!(annotations.targets[0].status, TargetStatus::Accepted);
    assert!(asked.iter().any(|(_, p)| p.contains("reward 0 predicted nothing combine")));

    let (annotations, asked) = run(&spec(1, 1), false, false).await;
    assert!(annotations.targets[0].next_prediction_id.is_some());
    let backup: Vec<_> = asked.iter().filter(|(_, p)| p.ends_with("combine")).collect();
    assert_eq!(backup.len(), 1);
    assert!(backup[0].1.contains("here it is form order left 4"));
    assert!(backup[0].1.contains("lost card is missing"));
}

/// By default everything that makes a target comes from the target weights.
#[tokio::test]
async fn targets_come_from_the_target_weights() {
    let (annotations, asked) = run(&spec(1, 1), false, false).await;
    assert!(asked.iter().all(|(name, _)| name.as_deref() == Some("target")), "{asked:?}");
    assert!(annotations.generations.iter().all(|g| g.weights == Weights::Target));
}

#[tokio::test]
async fn the_trained_prompts_hold_nothing_that_the_teacher_knew() {
    let encoder = Encoder::load(&model_dir()).unwrap();
    let (annotations, _) = run(&spec(2, 1), false, false).await;
    assert_eq!(annotations.examples.len(), 2);
    for example in &annotations.examples {
        let prompt: Vec<u32> = example.prompt_tokens.iter().map(|t| t.cast_unsigned()).collect();
        let prompt = encoder.decode(&prompt).unwrap();
        for known in ["here it is", "reward", "end lost", "critique", "forecast", "combine"] {
            assert!(!prompt.contains(known), "{:?}: {prompt}", example.objective);
        }
        match example.objective {
            Objective::Critic => assert!(prompt.contains("what is your order ?")),
            Objective::Policy => {
                assert!(!prompt.contains("order"), "the action judged is not shown: {prompt}");
                assert_eq!(example.source, ExampleSource::Refinement);
                let said: Vec<u32> =
                    example.completion_tokens.iter().map(|t| t.cast_unsigned()).collect();
                assert_eq!(encoder.decode(&said).unwrap(), "what is your card ?");
                assert_eq!(example.completion_tokens.last(), Some(&2), "it learns to stop");
            }
            Objective::Rehearsal => panic!("nothing was rehearsed"),
        }
    }
}

#[tokio::test]
async fn a_yes_stops_the_rounds_and_distils_what_the_spec_says() {
    let (annotations, asked) = run(&spec(1, 3), true, false).await;
    assert_eq!(asked.iter().filter(|(_, p)| p.ends_with("improve")).count(), 0);
    assert_eq!(annotations.critiques.len(), 1);
    assert_eq!(annotations.critiques[0].verdict, Verdict::Yes);
    let policy: Vec<_> =
        annotations.examples.iter().filter(|e| e.objective == Objective::Policy).collect();
    assert_eq!(policy.len(), 1);
    assert_eq!(policy[0].source, ExampleSource::Action);
    assert_eq!(policy[0].completion_tokens, [7, 8, 2], "the engine's own tokens");

    let skip = NlacSpec { on_yes: OnYes::Skip, ..spec(1, 3) };
    let (annotations, _) = run(&skip, true, false).await;
    assert!(annotations.examples.iter().all(|e| e.objective == Objective::Critic));
}

#[tokio::test]
async fn the_evaluator_reads_exactly_k_futures_of_the_present_action() {
    let (annotations, asked) = run(&spec(3, 2), false, false).await;
    let judged: Vec<_> = asked.iter().filter(|(_, p)| p.ends_with("is it optimal")).collect();
    assert_eq!(judged.len(), 2);
    for (_, prompt) in &judged {
        assert_eq!(prompt.matches("forecast").count(), 3, "{prompt}");
    }
    assert_eq!(annotations.critiques[1].action, "what is your card ?", "round 2 judges round 1's");
    assert_eq!(annotations.critiques[0].prediction_ids.len(), 3);
}
