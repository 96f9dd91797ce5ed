//! Models that think before they speak, in the formats of Qwen3, DeepSeek-R1 and gpt-oss.

use std::sync::Mutex;

use nlac::{
    domain::{
        annotation::{TargetStatus, Verdict},
        generation::{FinishReason, Role},
        prompt::PromptPart,
        reasoning::split,
        spec::{JobSpec, NlacSpec, SamplingSpec},
    },
    experience::{
        action::thought,
        context::{Context, Frame},
        message::Message,
    },
    prompt::{Encoder, Opening, PromptSet},
};
use serde_json::{Map, Value, json};

use crate::{
    invariants::{annotate_with, replayed},
    support::{
        Service, small_job,
        thinking::{Family, Thinker},
    },
};

/// What an evaluator wrote in each format.
const RECORDED: [(Family, &str); 3] = [
    (
        Family::Qwen3,
        "<think>\nOkay, the user asks if my last message is the best one. Optimal: Yes? The future ends in \
         failure, so no.\n</think>\n\nOptimal: No\n\nFuture 1 ends in failure. Ask for the card first.<|im_end|>",
    ),
    (
        Family::DeepSeekR1,
        "Okay, so I need to figure out whether it was best. Optimal: Yes would mean that nothing is better.\n\
         </think>\n\nOptimal: No\n\nFuture 1 ends in failure. Ask for the card first.<｜end▁of▁sentence｜>",
    ),
    (
        Family::GptOss,
        "<|channel|>analysis<|message|>We need to judge. Optimal: Yes? The future fails.<|end|><|start|>assistant\
         <|channel|>final<|message|>Optimal: No\n\nFuture 1 ends in failure. Ask for the card first.<|return|>",
    ),
];

const ANSWER: &str = "Optimal: No\n\nFuture 1 ends in failure. Ask for the card first.";

fn question(switches: Value) -> Context {
    let switches: Map<_, _> = switches.as_object().cloned().unwrap_or_default();
    let messages = vec![
        Message::system("You judge."),
        Message::user("Where is my order?"),
        thought(Some("An order has a number."), Message::assistant("What is its number?")),
        Message::user("Is your last message the best one?"),
    ];
    Context::new(messages, Frame { switches, ..Frame::default() }.into())
}

/// What the service keeps of tokens, with the text that an engine returns.
fn kept(encoder: &Encoder, prompt: &[u32], tokens: &[u32]) -> String {
    let text = encoder.decode(tokens).unwrap();
    encoder.written(encoder.opening(prompt).unwrap(), tokens, text).unwrap()
}

#[test]
fn recorded_replies_are_read_after_their_reasoning() {
    let prompts = PromptSet::load("standard").unwrap();
    for (family, recorded) in RECORDED {
        let encoder = family.encoder();
        let prompt = encoder.encode(&question(json!({}))).unwrap();
        let tokens = encoder.encode_text(recorded).unwrap();
        let text = kept(&encoder, &prompt, &tokens);
        let parts = split(&text);
        assert_eq!(parts.answer, Some(ANSWER), "{family:?}");
        assert!(parts.reasoning.is_some_and(|thought| thought.contains("Optimal: Yes")), "{text}");
        assert_eq!(prompts.verdict(&text), Verdict::No, "{family:?}");

        // No beginning of it says what the whole does not say, and none without its answer has one.
        let said: Vec<_> = (0..=tokens.len())
            .map(|end| split(&kept(&encoder, &prompt, &tokens[..end])).answer.map(str::to_owned))
            .collect();
        let answered = said.iter().rposition(Option::is_none).unwrap_or_default();
        assert!(said[answered + 1..].iter().flatten().all(|said| ANSWER.starts_with(said.trim())));
        assert!(tokens.len() - answered <= ANSWER.len() + 8, "{family:?}: {answered}");
    }
}

#[test]
fn a_reply_has_the_tokens_that_its_model_would_have_written() {
    for (family, recorded) in RECORDED {
        let encoder = family.encoder();
        let context = question(json!({}));
        let prompt = encoder.encode(&context).unwrap();
        let tokens = encoder.encode_text(recorded).unwrap();
        let text = kept(&encoder, &prompt, &tokens);
        let parts = split(&text);
        let reply = thought(parts.reasoning, Message::assistant(parts.answer.unwrap()));
        assert_eq!(encoder.completion(&context, &reply).unwrap(), tokens, "{family:?}");
        // Engines and agents see earlier replies without their reasoning.
        let seen = encoder.decode(&prompt).unwrap();
        assert!(seen.contains("What is its number?") && !seen.contains("An order has"), "{seen}");
    }
}

#[test]
fn the_prompt_tells_whether_a_model_thinks() {
    let opening = |family: Family, switches| {
        let encoder = family.encoder();
        encoder.opening(&encoder.encode(&question(switches)).unwrap()).unwrap()
    };
    assert_eq!(opening(Family::Qwen3, json!({})), Opening::Reasoning);
    assert_eq!(opening(Family::Qwen3, json!({ "enable_thinking": true })), Opening::Reasoning);
    assert_eq!(opening(Family::Qwen3, json!({ "enable_thinking": false })), Opening::Answer);
    assert_eq!(opening(Family::DeepSeekR1, json!({})), Opening::Inside);
    assert_eq!(opening(Family::GptOss, json!({ "reasoning_effort": "low" })), Opening::Reasoning);

    // After an empty reasoning a reply has none.
    let (encoder, context) =
        (Family::Qwen3.encoder(), question(json!({ "enable_thinking": false })));
    let reply = thought(Some("Hm."), Message::assistant("Yes."));
    let tokens = encoder.completion(&context, &reply).unwrap();
    assert_eq!(tokens, encoder.encode_text("Yes.<|im_end|>").unwrap());
}

/// Which part a prompt of the set `standard` asks, by a phrase of its own.
fn asked(prompt: &str) -> Role {
    let parts = [
        ("Judge your last message", Role::Evaluator),
        ("Predict, concisely", Role::Successor),
        ("this really happened", Role::Bellman),
        ("was criticised", Role::Refiner),
    ];
    let last = prompt.rfind("Step out of the conversation").map_or("", |at| &prompt[at..]);
    let part = parts.iter().find(|(phrase, _)| last.contains(phrase));
    part.map_or(Role::Policy, |(_, role)| *role)
}

/// What each part thinks and says. Every thought names its part.
fn part_of_a_job(prompt: &str) -> (String, &'static str) {
    let role = asked(prompt);
    let said = match role {
        Role::Evaluator => {
            "Optimal: No\n\nFuture 1 fails because the card is missing. Ask for the card."
        }
        Role::Successor => "They refuse.\n\nOutcome: failure; reward: 0",
        Role::Bellman => "They show the form, then they refuse.\n\nOutcome: failure; reward: 0",
        Role::Refiner => "what is your card ?",
        _ => "Please wait.",
    };
    (format!("The {role} thinks so."), said)
}

#[tokio::test]
async fn what_one_part_says_to_another_is_its_answer() {
    let prompts = PromptSet::load("standard").unwrap();
    for family in Family::ALL {
        let heard = Mutex::new(Vec::new());
        let say = |prompt: &str| {
            heard.lock().unwrap().push(prompt.to_owned());
            let (thought, said) = part_of_a_job(prompt);
            family.reply(&thought, said)
        };
        let engine = Thinker { encoder: family.encoder(), say };
        let spec = NlacSpec::default();
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
        let engine = Thinker { encoder: family.encoder(), say };
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

fn spec_with(model: Value) -> JobSpec {
    let mut spec = small_job();
    for (name, value) in model.as_object().unwrap() {
        spec["model"][name] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

#[test]
fn a_part_has_the_switches_of_the_job_of_its_file_and_of_its_role() {
    let mut files = PromptSet::shipped().remove("standard").unwrap();
    let refiner = files.get_mut(&PromptPart::Refiner).unwrap();
    *refiner =
        refiner.replacen("role: refiner", "role: refiner\nswitches: { b: file, c: file }", 1);
    let spec = spec_with(json!({
        "switches": { "a": "job", "b": "job", "c": "job" },
        "role_switches": { "refiner": { "c": "role" } },
    }));
    let prompts = PromptSet::parse("mine", &files).unwrap().switched(&spec);
    let (state, action) =
        (question(json!({ "a": "agent", "d": "agent" })), Message::assistant("Hm."));
    let context = prompts.refiner().render(&state, Some(&action), &json!({ "critique": "No." }));
    let expected = json!({ "a": "job", "b": "file", "c": "role", "d": "agent" });
    assert_eq!(json!(context.unwrap().frame().switches), expected);
    let general = prompts.general()[0].frame();
    assert_eq!(json!(general.switches), json!({ "a": "job", "b": "job", "c": "job" }));
}

#[tokio::test]
async fn the_trainer_sees_the_switches_of_the_engine() {
    let prompts = PromptSet::load("standard").unwrap().switched(&spec_with(json!({
        "role_switches": {
            "policy": { "enable_thinking": false }, "successor": { "enable_thinking": false },
            "evaluator": { "enable_thinking": false }, "refiner": { "enable_thinking": false },
            "bellman": { "enable_thinking": false },
        },
    })));
    let say = |prompt: &str| {
        assert!(prompt.ends_with("<think>\n\n</think>\n\n"), "{prompt}");
        format!("{}<|im_end|>", part_of_a_job(prompt).1)
    };
    let engine = Thinker { encoder: Family::Qwen3.encoder(), say };
    let made =
        annotate_with(&engine.sampler(&prompts), &NlacSpec::default(), &[replayed(false)]).await;
    assert_eq!(made.examples.len(), 2);
    for example in &made.examples {
        let [prompt, said] = [&example.prompt_tokens, &example.completion_tokens]
            .map(|ids| ids.iter().map(|id| id.cast_unsigned()).collect::<Vec<_>>());
        assert!(engine.encoder.decode(&prompt).unwrap().ends_with("<think>\n\n</think>\n\n"));
        assert!(!engine.encoder.decode(&said).unwrap().contains("think"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_the_chat_template_never_reads_is_rejected() {
    let service = Service::start().await;
    let directory = tempfile::tempdir().unwrap();
    Family::Qwen3.write(directory.path());
    let engine = json!({ "kind": "vllm", "urls": ["http://127.0.0.1:9"], "base_model": "help-desk-base",
        "model_dir": directory.path() });
    let (status, said) = service.put("/v1/engines/thinks", &engine).await;
    assert!(status < 300, "{said}");
    let mut spec = small_job();
    spec["model"]["engine"] = "thinks".into();
    spec["model"]["switches"] = json!({ "enable_thinkin": false });
    spec["model"]["role_switches"] =
        json!({ "evaluator": { "enable_thinking": false, "effort": 1 } });
    let (status, problem) = service.post("/v1/jobs", &spec).await;
    assert_eq!(status, 422, "{problem}");
    for (pointer, name) in
        [("/model/switches", "enable_thinkin"), ("/model/role_switches", "effort")]
    {
        let errors = problem["errors"].as_array().unwrap();
        let error = errors.iter().find(|error| error["pointer"] == pointer).unwrap();
        assert!(error["message"].as_str().unwrap().contains(name), "{error}");
        assert_eq!(error["remedy"], "use one that it reads: enable_thinking");
    }
    service.stop().await;
}

#[tokio::test]
async fn reasoning_and_answer_keep_to_their_budgets() {
    let prompts = PromptSet::load("standard").unwrap();
    let (reasoning, answer) = (64, 60);
    let sampling =
        SamplingSpec { reasoning_tokens: Some(reasoning), ..SamplingSpec::new(0.0, answer) };
    for family in Family::ALL {
        for (thought, said) in [
            ("Hm.", "Optimal: No. Ask."),
            (&*"It fails. ".repeat(30), "Optimal: No. Ask."),
            ("Hm.", &*"Optimal: No. Ask. ".repeat(9)),
            (&*"It fails. ".repeat(30), &*"Optimal: No. Ask. ".repeat(9)),
        ] {
            let say = |prompt: &str| match asked(prompt) {
                Role::Evaluator => family.reply(thought, said),
                _ => family.reply("Hm.", part_of_a_job(prompt).1),
            };
            let engine = Thinker { encoder: family.encoder(), say };
            let mut spec = NlacSpec { rounds: 1, ..NlacSpec::default() };
            spec.sampling.evaluator = sampling;
            let sampler = engine.sampler(&prompts);
            let made = annotate_with(&sampler, &spec, &[replayed(false)]).await;
            let judged = made.generations.iter().find(|g| g.role == Role::Evaluator).unwrap();
            let tokens: Vec<_> = judged.token_ids.iter().map(|id| id.cast_unsigned()).collect();
            let opening = match family {
                Family::DeepSeekR1 => Opening::Inside,
                _ => Opening::Reasoning,
            };
            let closing = engine.encoder.closing().unwrap().len();
            let start = engine.encoder.answer_start(opening, &tokens).unwrap().unwrap();
            assert!(start <= reasoning as usize + closing, "{family:?}: {start}");
            assert!(tokens.len() - start <= answer as usize + 2, "{family:?}: {}", tokens.len());
            assert_eq!(judged.reasoning_tokens, Some(reasoning));
            // Nobody sampled the tokens that close a reasoning.
            assert_eq!(judged.logprobs.is_none(), thought.len() > 100, "{family:?}");
            let cut = said.len() > 100;
            assert_eq!(judged.finish_reason == FinishReason::Length, cut, "{family:?}");
            let verdict = if cut { Verdict::Unparseable } else { Verdict::No };
            assert_eq!(made.critiques[0].verdict, verdict, "{family:?}: {}", judged.text);
            assert!(said.starts_with(made.critiques[0].text.trim()), "{}", made.critiques[0].text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_gradient_allows_no_tokens_that_nobody_sampled() {
    let service = Service::start().await;
    let mut spec = small_job();
    spec["algorithm"] = json!({ "kind": "grpo" });
    spec["rollout"]["group"] = 2.into();
    spec["rollout"]["reasoning_tokens"] = 512.into();
    let (status, problem) = service.post("/v1/jobs", &spec).await;
    assert_eq!(status, 422, "{problem}");
    let errors = problem["errors"].as_array().unwrap();
    assert!(
        errors.iter().any(|error| error["pointer"] == "/rollout/reasoning_tokens"),
        "{problem}"
    );
    service.stop().await;
}
