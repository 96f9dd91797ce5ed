//! PPO: what each token is credited with (invariant 23 of the algorithms sheet), and jobs that learn a critic beside the
//! policy.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use nlac::{
    algo::{
        Algorithm, Annotations, Replayed, Setting,
        ppo::{Tally, Valued, credit, explained_variance, gae, whiten},
    },
    domain::{
        ids::EpisodeId,
        seed::SeedPath,
        spec::{PpoSpec, RolloutSpec, ToolFormat},
        training::{Clip, Objective, PolicyGradient},
    },
    embedded::postgres::Postgres,
    env::{Environment, HelpDesk},
    prompt::PromptSet,
    store::Store,
};
use rand::Rng;
use serde_json::{Value, json};

use crate::{
    invariants::{about, replayed},
    support::{
        Place, Service,
        endpoint::Endpoint,
        stub::{Asked, Stub},
    },
};

fn close(found: &[f32], expected: &[f32]) {
    let same = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(found.len() == expected.len() && same, "{found:?}, not {expected:?}");
}

#[test]
fn advantages_are_those_computed_by_hand() {
    let (rewards, values) = ([0.0, 0.0, 1.0], [0.5, 0.2, 0.4]);
    let (advantages, returns) = gae(&rewards, &values, 1.0, 1.0);
    close(&advantages, &[0.5, 0.8, 0.6]);
    close(&returns, &[1.0; 3]);
    // From the end: 1 - .4 = .6; .9 * .4 - .2 + .45 * .6 = .43; .9 * .2 - .5 + .45 * .43 = -.1265.
    let (advantages, returns) = gae(&rewards, &values, 0.9, 0.5);
    close(&advantages, &[-0.1265, 0.43, 0.6]);
    close(&returns, &[0.3735, 0.63, 1.0]);
    assert_eq!(gae(&[], &[], 1.0, 1.0), (Vec::new(), Vec::new()));
}

#[test]
fn lambda_goes_from_one_steps_error_to_the_rewards_that_followed() {
    let mut rng = SeedPath::root(7).rng();
    for length in 1..40 {
        let mut draw = || (0..length).map(|_| rng.random::<f32>() - 0.5).collect::<Vec<_>>();
        let (rewards, values) = (draw(), draw());
        let (_, returns) = gae(&rewards, &values, 0.95, 1.0);
        let mut followed = vec![0.0; length];
        let mut sum = 0.0;
        for (to, reward) in followed.iter_mut().zip(&rewards).rev() {
            sum = reward + 0.95 * sum;
            *to = sum;
        }
        close(&returns, &followed);
        let (errors, _) = gae(&rewards, &values, 0.95, 0.0);
        let next = values[1..].iter().copied().chain([0.0]);
        let of_step = rewards.iter().zip(&values).zip(next);
        close(&errors, &of_step.map(|((r, v), next)| r + 0.95 * next - v).collect::<Vec<_>>());
        // Values that are right leave nothing to learn.
        let (advantages, _) = gae(&rewards, &followed, 0.95, 0.7);
        close(&advantages, &vec![0.0; length]);
    }
}

#[test]
fn whitening_is_over_all_tokens_and_survives_equal_ones() {
    let mut advantages = [vec![1.0, 2.0], vec![], vec![6.0]];
    whiten(&mut advantages);
    let deviation = 7.0_f32.sqrt();
    close(&advantages.concat(), &[-2.0 / deviation, -1.0 / deviation, 3.0 / deviation]);
    let mut level = [vec![0.5; 4]];
    whiten(&mut level);
    close(&level[0], &[0.0; 4]);
    whiten(&mut []);
}

fn valued(episode_id: EpisodeId, rewards: &[f32], values: &[f32]) -> Valued {
    let old_logprobs = vec![-0.5; rewards.len()];
    let (rewards, values) = (rewards.to_vec(), values.to_vec());
    Valued { episode_id, rewards, values, old_logprobs, base_logprobs: None }
}

#[test]
fn credit_runs_through_an_episodes_actions_and_not_into_another_episode() {
    let (one, other) = (EpisodeId::new(), EpisodeId::new());
    let spec = PpoSpec { whiten: false, ..PpoSpec::default() };
    let mut actions = vec![
        valued(one, &[0.0, 0.0], &[0.25, 0.5]),
        valued(one, &[1.0], &[0.75]),
        valued(other, &[0.0], &[0.5]),
    ];
    let plain = credit(&spec, &actions);
    let advantages = |all: &[nlac::algo::ppo::Credited]| {
        all.iter().flat_map(|action| action.advantages.clone()).collect::<Vec<_>>()
    };
    close(&advantages(&plain), &[0.75, 0.5, 0.25, -0.5]);
    close(&plain[0].returns, &[1.0, 1.0]);
    close(&plain[2].returns, &[0.0]);
    // The divergence from the base model is no part of what is whitened, nor of the returns.
    actions[1].base_logprobs = Some(vec![-1.5]);
    let held = credit(&PpoSpec { kl_weight: 0.1, ..spec }, &actions);
    let pull = 0.1 * (1.0 - (-1.0_f32).exp());
    close(&advantages(&held), &[0.75, 0.5, 0.25 - pull, -0.5]);
    assert_eq!(held[1].returns, plain[1].returns);
    let white = credit(&PpoSpec { whiten: true, ..PpoSpec::default() }, &actions[2..]);
    close(&advantages(&white), &[0.0]);
}

/// An episode of two steps that gains 1 at its end. What the environment answered to the first is the given text.
fn episode(answer: &str) -> Vec<Replayed> {
    let episode_id = EpisodeId::new();
    let state = "i want a refund form empty left 5";
    let steps = [
        about(&replayed(false), state, "what is your order ?", answer),
        about(&replayed(true), &format!("{state} {answer}"), "do it now .", "ok"),
    ];
    let number = |(number, mut step): (i32, Replayed)| {
        step.transition.episode_id = episode_id;
        step.transition.step = number;
        step.transition.reward = Some(f64::from(number));
        step.action_logprobs = Some(vec![-0.5; step.action_tokens.len()]);
        Replayed { episode_seed: Some(1), ..step }
    };
    (0..).zip(steps).map(number).collect()
}

async fn annotate(spec: &PpoSpec, batch: &[Replayed]) -> Annotations {
    let prompts = PromptSet::load("desk").unwrap();
    // The base model gives every token the log-probability -1.5.
    let engine = Stub::new(|_: Asked<'_>| String::new()).sure(|asked, _| {
        assert_eq!(asked.adapter, None, "only the base model is asked");
        -1.5
    });
    let sampler = engine.sampler(&prompts);
    let setting = Setting {
        sampler: &sampler,
        codec: &*HelpDesk.codec(ToolFormat::Hermes),
        environment: &HelpDesk,
        rollout: &RolloutSpec::default(),
        spec: &(),
        iteration: 1,
        seed: SeedPath::root(0),
    };
    spec.annotate(&setting, batch).await.unwrap()
}

#[tokio::test]
async fn invariant_23_observation_tokens_have_no_loss_and_move_no_advantage() {
    let spec = PpoSpec::default();
    let mut advantages = Vec::new();
    for answer in ["here it is form order left 4", "no"] {
        let batch = episode(answer);
        let made = annotate(&spec, &batch).await;
        assert_eq!(made.examples.len(), 2);
        let mut actions = Vec::new();
        for (example, step) in made.examples.iter().zip(&batch) {
            // What is learnt is the action and nothing else; what was observed is in the prompt.
            let action: Vec<_> = step.action_tokens.iter().map(|t| t.cast_signed()).collect();
            assert_eq!(
                (example.objective, &example.completion_tokens),
                (Objective::Policy, &action)
            );
            let credit = example.credit.as_ref().unwrap();
            let reward = step.transition.reward.unwrap() as f32;
            assert_eq!(credit.rewards, [0.0, 0.0, reward], "on the last token of the action");
            assert_eq!(credit.base_logprobs.as_deref(), Some(&[-1.5; 3][..]));
            let gradient = example.policy_gradient.as_ref().unwrap();
            assert_eq!(gradient.clip, Some(Clip { low: 0.8, high: 1.2, dual: Some(3.0) }));
            actions.push(Valued {
                episode_id: step.transition.episode_id,
                rewards: credit.rewards.clone(),
                values: vec![0.1, 0.2, 0.3],
                old_logprobs: gradient.old_logprobs.clone(),
                base_logprobs: credit.base_logprobs.clone(),
            });
        }
        let lengths: Vec<_> = made.examples.iter().map(|e| e.prompt_tokens.len()).collect();
        advantages.push((credit(&spec, &actions), lengths));
    }
    let [(one, long), (other, short)] = &advantages[..] else { panic!("two episodes") };
    assert_ne!(long, short, "the observations differ");
    assert_eq!(one, other);
}

#[tokio::test]
async fn an_episode_with_a_gap_teaches_nothing() {
    let spec = PpoSpec { kl_weight: 0.0, ..PpoSpec::default() };
    let whole = episode("no");
    let made = annotate(&spec, &whole).await;
    assert_eq!(made.examples.len(), 2);
    assert_eq!(made.examples[0].credit.as_ref().unwrap().base_logprobs, None);
    for change in [
        |batch: &mut Vec<Replayed>| drop(batch.remove(0)),
        |batch: &mut Vec<Replayed>| drop(batch.pop()),
        |batch: &mut Vec<Replayed>| batch[0].transition.reward = None,
    ] {
        let mut broken = episode("no");
        change(&mut broken);
        broken.extend(whole.clone());
        let made = annotate(&spec, &broken).await;
        let taught: Vec<_> = made.examples.iter().filter_map(|e| e.transition_id).collect();
        assert_eq!(taught, whole.iter().map(|r| r.transition.id).collect::<Vec<_>>());
    }
}

#[test]
fn the_clip_fraction_the_divergence_and_the_explained_variance_are_what_they_say() {
    let mut tally = Tally::default();
    assert!(tally.metrics().is_empty());
    let clip = Some(Clip { low: 0.8, high: 1.2, dual: None });
    // Ratios of e, e, 1/e and 1: the first and the third are held back.
    let advantages = vec![1.0, -1.0, -1.0, 1.0];
    let gradient = PolicyGradient { advantages, old_logprobs: vec![-2.0; 4], clip };
    tally.add_policy(&gradient, &[-1.0, -1.0, -3.0, -2.0]);
    assert_eq!(tally.add_values([(0.5, 3), (0.1, 1)].into_iter()), Some(0.4));
    let e = std::f64::consts::E;
    let divergence = (2.0 * (e - 2.0) + 1.0 / e) / 4.0;
    let expected =
        [("policy.clip_fraction", 0.5), ("policy.approximate_kl", divergence), ("value.loss", 0.4)];
    for ((name, value), (expected_name, expected)) in tally.metrics().into_iter().zip(expected) {
        assert_eq!(name, expected_name);
        assert!((value - expected).abs() < 1e-6, "{name}: {value}, not {expected}");
    }
    assert_eq!(explained_variance(&[0.0, 1.0], &[0.0, 1.0]), Some(1.0));
    assert_eq!(explained_variance(&[0.5, 0.5], &[0.0, 1.0]), Some(0.0));
    assert_eq!(explained_variance(&[1.0, 0.0], &[0.0, 1.0]), Some(-3.0));
    assert_eq!(explained_variance(&[0.3, 0.1], &[1.0, 1.0]), None);
}

fn job() -> Value {
    let text = include_str!("../../examples/ppo.yaml");
    let mut spec: Value = serde_yaml_ng::from_str(text).unwrap();
    spec["rollout"]["episodes"] = 256.into();
    spec["optimizer"]["epochs"] = 1.into();
    spec["budget"]["iterations"] = 2.into();
    spec["evaluation"] = json!({ "every": 100, "episodes": 4, "interim_episodes": 4, "temperature": 0.5, "also": [] });
    spec
}

/// Every metric that does not measure time.
fn metrics(page: &Value) -> Vec<Value> {
    let timed = |m: &&Value| {
        let name = m["name"].as_str().unwrap();
        !name.starts_with("time.") && !name.starts_with("busy.")
    };
    page["data"].as_array().unwrap().iter().filter(timed).cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_learns_a_critic_beside_the_policy_and_the_same_seed_learns_the_same() {
    let service = Service::start().await;
    let mut all = Vec::new();
    for _ in 0..2 {
        let (status, job) = service.post("/v1/jobs", &job()).await;
        assert_eq!(status, 201, "{job}");
        let id = job["id"].as_str().unwrap().to_owned();
        let job = service.finished(&id).await;
        assert_eq!(job["status"], "succeeded", "{job}");
        let (_, page) = service.get(&format!("/v1/jobs/{id}/metrics")).await;
        all.push(metrics(&page));
    }
    assert_eq!(all[0], all[1]);
    let of = |name: &str| -> Vec<f64> {
        let named = all[0].iter().filter(|m| m["name"] == name);
        named.map(|m| m["value"].as_f64().unwrap()).collect()
    };
    for name in ["policy.clip_fraction", "policy.approximate_kl", "value.loss"] {
        let values = of(name);
        assert!(values.len() == 2 && values.iter().all(|v| *v >= 0.0), "{name}: {values:?}");
    }
    // A fresh critic says 0, which explains nothing.
    assert_eq!(of("value.explained_variance").first(), Some(&0.0), "this seed has a success");

    let mut conn = service.app.store.acquire().await.unwrap();
    let (examples, lacking, fresh): (i64, i64, i64) = sqlx::query_as(
        "select count(*), count(*) filter (where x.returns is null or x.advantages is null),
             count(*) filter (where i.index = 1 and 0 = all(x.old_values))
         from training_examples x join iterations i on i.id = x.iteration_id",
    )
    .fetch_one(&mut *conn)
    .await
    .unwrap();
    assert!(examples > 0 && lacking == 0, "{examples} {lacking}");
    let first: i64 = sqlx::query_scalar(
        "select count(*) from training_examples x join iterations i on i.id = x.iteration_id where i.index = 1",
    )
    .fetch_one(&mut *conn)
    .await
    .unwrap();
    assert_eq!(fresh, first, "the first values are those of an untrained head");
    // The return of every token is what its episode still gained; here the reward comes at the end.
    let wrong: i64 = sqlx::query_scalar(
        "select count(*) from training_examples x join transitions t on t.id = x.transition_id
         cross join lateral (select sum(n.reward)::real as gained from transitions n
             where n.episode_id = t.episode_id and n.step >= t.step) n
         where abs(x.returns[1] - n.gained) > 1e-5",
    )
    .fetch_one(&mut *conn)
    .await
    .unwrap();
    assert_eq!(wrong, 0);
    let states: Vec<(i32, Option<String>, Option<String>)> = sqlx::query_as(
        "select version, trainer_state, critic_state from checkpoints where role = 'online' order by version",
    )
    .fetch_all(&mut *conn)
    .await
    .unwrap();
    assert_eq!(states.len(), 6);
    assert!(states.iter().all(|(_, policy, critic)| critic.is_some() && policy != critic));
    drop(conn);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_jobs_come_to_the_same_metrics() {
    let demo = |place: &Place, more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_nlac"))
            .args(["demo", "--exit", "--algorithm", "ppo", "--iterations", "2"])
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(place.path().join("data"))
            .args(more)
            .env_remove("DATABASE_URL")
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(place.path().join("stderr")).unwrap())
            .spawn()
            .unwrap()
    };
    let mut came_to = Vec::new();
    for kills in [0, 4] {
        let place = Place::new();
        let mut rng = rand::rng();
        for kill in 0..kills {
            let mut child = demo(&place, if kill == 0 { &[] } else { &["--resume"] });
            tokio::time::sleep(Duration::from_millis(rng.random_range(1500..5000))).await;
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut child = demo(&place, if kills == 0 { &[] } else { &["--resume"] });
        let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
        let status = tokio::time::timeout(Duration::from_secs(240), ended).await.unwrap().unwrap();
        let said = std::fs::read_to_string(place.path().join("stderr")).unwrap();
        assert!(status.success(), "{said}");
        let postgres = Postgres::start(&place.path().join("data/postgres"), true).await.unwrap();
        let store = Store::connect(postgres.options().clone()).await.unwrap();
        let mut conn = store.acquire().await.unwrap();
        let metrics: Vec<(String, i32, f32, f64)> = sqlx::query_as(
            "select name, iteration, temperature, value from metrics
             where name not like 'time.%' and name not like 'busy.%' order by 1, 2, 3",
        )
        .fetch_all(&mut *conn)
        .await
        .unwrap();
        // The trainer's own counter of the critic's steps agrees with the checkpoint.
        let (state, steps): (String, i32) = sqlx::query_as(
            "select critic_state, optimizer_steps from checkpoints where role = 'online' and version = 2",
        )
        .fetch_one(&mut *conn)
        .await
        .unwrap();
        let path = place.path().join("data/trainer").join(state.strip_prefix("tinker://").unwrap());
        let saved = std::fs::read_to_string(path.join("state.json")).unwrap();
        let saved: Value = serde_json::from_str(&saved).unwrap();
        assert_eq!((&saved["role"], &saved["steps"]), (&json!("critic"), &json!(steps)));
        came_to.push(metrics);
        drop(conn);
        store.close().await;
        postgres.stop().await.unwrap();
    }
    assert!(came_to[0].iter().any(|(name, ..)| name == "value.loss"));
    assert_eq!(came_to[0], came_to[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trainer_that_lacks_a_value_head_or_the_dual_clip_is_refused_by_name() {
    let service = Service::start().await;
    let told = |losses: Value| json!({ "supported_models": [{ "model_name": "help-desk-base" }], "supported_loss_fns": losses });
    for (losses, dual, words) in [
        (json!(["cross_entropy", "ppo"]), json!(null), "needs a value head, and trainer plain"),
        (json!(null), json!(null), "tells of no loss ppo_critic"),
        (
            json!(["ppo", "ppo_critic"]),
            json!(3.0),
            "needs the loss ppo_dual_clip, and trainer plain",
        ),
        (json!(["ppo", "ppo_critic"]), json!(null), ""),
    ] {
        let answer = told(losses);
        let trainer = Endpoint::start(Box::new(move |_| (200, answer.clone()))).await;
        let body = json!({ "kind": "tinker", "url": trainer.url, "base_model": "help-desk-base" });
        let put = service.http.put(format!("{}/v1/trainers/plain", service.url)).json(&body);
        assert!(put.send().await.unwrap().status().is_success());
        let mut spec = job();
        spec["model"]["trainer"] = "plain".into();
        spec["algorithm"]["dual_clip"] = dual;
        let (status, answer) = service.post("/v1/jobs", &spec).await;
        if words.is_empty() {
            assert_eq!(status, 201, "{answer}");
            continue;
        }
        assert_eq!(status, 422, "{answer}");
        let told = answer["errors"].to_string();
        assert!(told.contains("/model/trainer") && told.contains(words), "{answer}");
    }
    for (pointer, value) in [("dual_clip", json!(1.1)), ("lambda", json!(1.5))] {
        let mut spec = job();
        spec["algorithm"][pointer] = value;
        let (status, answer) = service.post("/v1/jobs", &spec).await;
        assert_eq!(status, 422, "{answer}");
        assert!(
            answer["errors"].to_string().contains(&format!("/algorithm/{pointer}")),
            "{answer}"
        );
    }
    service.stop().await;
}
