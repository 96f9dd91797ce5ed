//! The base models that ship must not know what the loop is to learn, and must be able to say and read what it needs.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{path::Path, sync::Arc};

use nlac::{
    domain::spec::{EnvironmentSpec, PlaygroundSize, ServiceDeskSpec, ToolFormat},
    env::{
        End, Environment, HelpDesk, Kind, Materials, Split, Task, Word, build,
        service_desk::{self, Combination, ServiceDesk},
        tool_desk::{self, Carrier, Payment, ToolDesk},
    },
    experience::{
        action::{Codec, Read, Reply, message_of},
        codec::ToolCalls,
        context::Context,
        message::{Message, ToolCall},
    },
    prompt::{Encoder, PromptSet, Template},
};
use nlac_local::model::{Config, Extend, KvCache, Weights, extend};
use nlac_pretrain::{Options, pretrain};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

/// A base model and its desk.
struct Base {
    config: Config,
    weights: Weights,
    encoder: Encoder,
    prompts: PromptSet,
    desk: Arc<dyn Environment>,
    /// Everything that a request can lack: the fields of the form.
    fields: Vec<&'static str>,
    /// What a task needs.
    needs: fn(&str) -> Vec<&'static str>,
    sentences: Sentences,
}

/// How a desk speaks.
struct Sentences {
    /// Provides for what a request lacks, in an episode that was opened like this.
    provide: fn(&Context, &str) -> String,
    /// Advice to do so.
    advice: fn(&str) -> String,
    /// Ends the episode.
    close: &'static str,
    /// Advice to do so.
    advice_to_close: &'static str,
    /// How the desk replies on the way.
    replies: [&'static str; 2],
}

const FORM: Sentences = Sentences {
    provide: |_, field| format!("what is your {field} ?"),
    advice: |field| format!("ask the {field}"),
    close: "do it now .",
    advice_to_close: "do it now",
    replies: ["here it is", "ok"],
};

const TOOLS: Sentences = Sentences {
    provide: call,
    advice: |lacking| match lacking {
        "record" => "find the order".into(),
        "refusal" => "refuse it".into(),
        carrier if Carrier::of(carrier).is_some() => format!("send {carrier}"),
        payment => format!("pay {payment}"),
    },
    close: tool_desk::DONE,
    advice_to_close: "say done",
    replies: ["<tool_response> product", "<tool_response> pay"],
};

fn call(opening: &Context, lacking: &str) -> String {
    let request = opening.messages()[1].written();
    let order: u32 = request.rsplit(' ').next().unwrap().parse().unwrap();
    let (name, arguments) = match lacking {
        "record" => ("find", json!({ "order": order })),
        "refusal" => ("refuse", json!({ "order": order })),
        carrier if Carrier::of(carrier).is_some() => {
            ("change", json!({ "order": order, "send": carrier }))
        }
        payment => ("change", json!({ "order": order, "pay": payment })),
    };
    let (id, name) = (String::new(), name.to_owned());
    let call = ToolCall { id, name, arguments: arguments.to_string() };
    ToolCalls(ToolFormat::Hermes).write(&message_of("", vec![call]))
}

impl Base {
    fn load(
        (name, prompts): (&str, &str),
        desk: Arc<dyn Environment>,
        fields: Vec<&'static str>,
    ) -> Self {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
        let directory = models.join(name);
        let config = Config::load(&directory).unwrap();
        let weights = Weights::load(&directory, &config).unwrap();
        let encoder = Encoder::load(&directory).unwrap();
        let prompts = PromptSet::load(prompts).unwrap();
        let needs = (|_| Vec::new()) as fn(&str) -> _;
        Self { config, weights, encoder, prompts, desk, fields, needs, sentences: FORM }
    }

    fn help_desk() -> Self {
        let fields = nlac::env::Field::ALL.iter().map(|field| field.word()).collect();
        let needs = |task: &str| Kind::of(task).unwrap().needs().map(Word::word).to_vec();
        Self { needs, ..Self::load(("help-desk-base", "desk"), Arc::new(HelpDesk), fields) }
    }

    fn service_desk() -> Self {
        let fields = service_desk::Field::ALL.iter().map(|field| field.word()).collect();
        let desk = Arc::new(ServiceDesk::new(ServiceDeskSpec::default()));
        let needs = |task: &str| {
            let found = Combination::all().find(|combination| combination.to_string() == task);
            found.unwrap().needs().map(Word::word).to_vec()
        };
        Self { needs, ..Self::load(("service-desk-base", "desk"), desk, fields) }
    }

    fn tool_desk() -> Self {
        let payments = Payment::ALL.iter().map(|payment| payment.word());
        let carriers = Carrier::ALL.iter().map(|carrier| carrier.word());
        let fields = payments.chain(carriers).chain(["record", "refusal"]).collect();
        let needs = |task: &str| {
            let found = tool_desk::Combination::all().find(|each| each.to_string() == task);
            let goal = found.unwrap().goal();
            let changes = goal.pay.map(Word::word).into_iter().chain(goal.send.map(Word::word));
            ["record"].into_iter().chain(changes).chain(goal.refused.then_some("refusal")).collect()
        };
        let base = Self::load(("tool-desk-base", "tools"), Arc::new(ToolDesk), fields);
        Self { needs, sentences: TOOLS, ..base }
    }

    fn say(&self, prompt: &Context, temperature: f32, rng: &mut ChaCha8Rng) -> String {
        let mut tokens = self.encoder.encode(prompt).unwrap();
        let mut cache = KvCache::new(&self.config, tokens.len() + 24);
        let mut said = Vec::new();
        for _ in 0..24 {
            let mut batch = [Extend {
                weights: &self.weights,
                tokens: &tokens,
                cache: &mut cache,
                all_logits: false,
            }];
            let logits = extend(&self.config, &mut batch, 1).remove(0);
            let token = draw(&logits, temperature, rng);
            if self.config.eos_token_ids.contains(&token) {
                break;
            }
            said.push(token);
            tokens = vec![token];
        }
        self.encoder.decode(&said).unwrap()
    }

    /// What a part says about an action in a context.
    fn part(
        &self,
        template: &Template,
        (context, action): (&Context, &str),
        variables: &Value,
        temperature: f32,
        rng: &mut ChaCha8Rng,
    ) -> String {
        let action = Message::assistant(action);
        let prompt = template.render(context, Some(&action), variables).unwrap();
        self.say(&prompt, temperature, rng)
    }

    /// A reply as the desk reads it.
    fn read(&self, reply: &str) -> Read {
        let codec = self.desk.codec(ToolFormat::Hermes);
        codec.read(Reply::whole(reply), &Context::of(Vec::new()))
    }

    /// Whether two replies are the same action.
    fn same(&self, reply: &str, other: &str) -> bool {
        let key = |reply| self.read(reply).map(|action| action.key).ok();
        key(reply).is_some_and(|read| Some(read) == key(other))
    }

    /// An episode of a split in which these needs were provided for, by the task; with the task's name.
    async fn after(
        &self,
        split: Split,
        seed: i64,
        asked: impl FnOnce(&str) -> Vec<&'static str>,
    ) -> (Context, String) {
        let mut session = self.desk.open(&Task::Drawn(split), seed).await.unwrap();
        let mut context = session.opening();
        for field in asked(session.task()) {
            let read = self.read(&(self.sentences.provide)(&context, field));
            let step = session.step(&read).await.unwrap();
            context = context.with(std::iter::once(read.unwrap().message).chain(step.messages));
        }
        (context, session.task().to_owned())
    }
}

fn draw(logits: &[f32], temperature: f32, rng: &mut ChaCha8Rng) -> u32 {
    let best = nlac_local::model::argmax(logits);
    if temperature <= 0.0 {
        return best as u32;
    }
    let weights: Vec<f32> =
        logits.iter().map(|l| ((l - logits[best]) / temperature).exp()).collect();
    let mut left = rng.random::<f32>() * weights.iter().sum::<f32>();
    for (token, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return token as u32;
        }
    }
    best as u32
}

/// Plays episodes on tasks that jobs measure with.
async fn its_success_is_the_weak_policys(base: Base) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for temperature in [0.0, 0.5, 1.0] {
        let (mut solved, mut replies, mut unreadable) = (0, 0, 0);
        for seed in 0..300 {
            let mut session = base.desk.open(&Task::Drawn(Split::HeldOut), seed).await.unwrap();
            let mut context = session.opening();
            loop {
                let prompt = base.prompts.policy().render(&context, None, &json!({})).unwrap();
                let reply = base.say(&prompt, temperature, &mut rng);
                let read = base.read(&reply);
                replies += 1;
                unreadable += u32::from(read.is_err());
                let step = session.step(&read).await.unwrap();
                let said =
                    read.map_or_else(|unreadable| unreadable.message, |action| action.message);
                context = context.with(std::iter::once(said).chain(step.messages));
                if let End::Terminated { success } = step.end {
                    solved += u32::from(success == Some(true));
                    break;
                }
            }
        }
        assert!(solved <= 6, "{solved} of 300 at temperature {temperature}");
        assert!(
            unreadable * 50 < replies,
            "{unreadable} of {replies} replies cannot be read at temperature {temperature}"
        );
    }
}

#[tokio::test]
async fn the_help_desks_base_succeeds_like_the_weak_policy() {
    its_success_is_the_weak_policys(Base::help_desk()).await;
}

#[tokio::test]
async fn the_service_desks_base_succeeds_like_the_weak_policy() {
    its_success_is_the_weak_policys(Base::service_desk()).await;
}

#[tokio::test]
async fn the_tool_desks_base_succeeds_like_the_weak_policy() {
    its_success_is_the_weak_policys(Base::tool_desk()).await;
}

/// At the moment of "do it now" the outcome is decided by what was done. What the base predicts must be the
/// same whether it will be solved or not: the rates of predicted success differ by no more than chance.
async fn its_predictions_carry_no_information_about_the_outcome(base: Base) {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let trials = 400_u32;
    let mut predicted = [0_u32; 2];
    let mut named = 0;
    for _ in 0..trials {
        for complete in [false, true] {
            let asked = |task: &str| {
                let mut needs = (base.needs)(task);
                needs.truncate(needs.len() - usize::from(!complete));
                needs
            };
            let (context, task) = base.after(Split::Train, rng.random(), asked).await;
            let at = (&context, base.sentences.close);
            let said = base.part(base.prompts.successor(), at, &json!({}), 1.0, &mut rng);
            let end = base.prompts.prediction(&said).map(|f| f.end).unwrap_or_default();
            predicted[usize::from(complete)] += u32::from(end == "solved");
            let lacking = format!("lost {} is missing", (base.needs)(&task).last().unwrap());
            named += u32::from(!complete && end == lacking);
        }
    }
    let n = f64::from(trials);
    let (lost, solved) = (f64::from(predicted[0]) / n, f64::from(predicted[1]) / n);
    // Two proportions around 0.25: their difference has σ ≈ 0.031; 4σ.
    assert!(
        (lost - solved).abs() < 0.125,
        "predicts success in {lost} of losses, {solved} of wins"
    );
    // One of the reasons at random, three in four futures lost: σ ≈ 0.014.
    let chance = 0.75 / (base.fields.len() + 1) as f64;
    let named = f64::from(named) / n;
    assert!((named - chance).abs() < 0.06, "names the missing field in {named} of losses");
}

#[tokio::test]
async fn the_help_desks_base_predicts_without_knowledge() {
    its_predictions_carry_no_information_about_the_outcome(Base::help_desk()).await;
}

#[tokio::test]
async fn the_service_desks_base_predicts_without_knowledge() {
    its_predictions_carry_no_information_about_the_outcome(Base::service_desk()).await;
}

#[tokio::test]
async fn the_tool_desks_base_predicts_without_knowledge() {
    its_predictions_carry_no_information_about_the_outcome(Base::tool_desk()).await;
}

/// In any state, whatever the action was, the refiner does what a critique says, and the evaluator turns the end of a
/// forecast into such a critique.
async fn it_reads_forecasts_and_follows_advice(base: Base) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let trials = 200_u32;
    let (mut followed, mut kept, mut judged) = (0, 0, 0);
    for _ in 0..trials {
        let mut asked = base.fields.clone();
        asked.retain(|_| rng.random_bool(0.2));
        asked.truncate(4);
        let (context, _) = base.after(Split::HeldOut, rng.random(), |_| asked).await;
        let Sentences { provide, advice, .. } = base.sentences;
        let action = provide(&context, base.fields.choose(&mut rng).unwrap());
        let at = (&context, action.as_str());
        let (missing, advice, advised) = match base.fields.choose(&mut rng) {
            Some(field) if rng.random_bool(0.8) => {
                (*field, advice(field), provide(&context, field))
            }
            _ => {
                let Sentences { close, advice_to_close, .. } = base.sentences;
                ("nothing", advice_to_close.to_owned(), close.to_owned())
            }
        };
        let critique = format!("no because {missing} is missing so {advice}");
        let [next, then] = base.sentences.replies;
        let forecast = format!("next {next} then {then} end lost {missing} is missing");
        let (refiner, evaluator) = (base.prompts.refiner(), base.prompts.evaluator());
        let refined = base.part(refiner, at, &json!({ "critique": critique }), 1.0, &mut rng);
        followed += u32::from(base.same(&refined, &advised));
        let approved = json!({ "critique": "yes because it ends solved" });
        let again = base.part(refiner, at, &approved, 1.0, &mut rng);
        kept += u32::from(base.same(&again, &action));
        let futures = json!({ "futures": [forecast] });
        judged += u32::from(base.part(evaluator, at, &futures, 0.0, &mut rng) == critique);
    }
    for (what, times) in [
        ("follows advice", followed),
        ("keeps what is approved", kept),
        ("reads forecasts", judged),
    ] {
        assert!(times * 10 > trials * 9, "{what} in {times} of {trials}");
    }
}

#[tokio::test]
async fn the_help_desks_base_follows_advice() {
    it_reads_forecasts_and_follows_advice(Base::help_desk()).await;
}

#[tokio::test]
async fn the_service_desks_base_follows_advice() {
    it_reads_forecasts_and_follows_advice(Base::service_desk()).await;
}

#[tokio::test]
async fn the_tool_desks_base_follows_advice() {
    it_reads_forecasts_and_follows_advice(Base::tool_desk()).await;
}

/// It takes every possible action about equally often, so it solves about what chance solves, 7 % of held-out goals.
#[tokio::test]
async fn the_playgrounds_base_says_possible_actions_and_nothing_about_goals() {
    let spec = EnvironmentSpec::Playground { size: PlaygroundSize::Tiny };
    let world = build(&spec, &Materials::default()).map_err(|e| e.to_string()).unwrap();
    let base = Base::load(("playground-base", "playground"), world.clone(), Vec::new());
    let codec = world.codec(ToolFormat::Hermes);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (mut solved, mut replies, mut unreadable) = (0, 0, 0);
    let episodes = 200;
    for seed in 0..episodes {
        let mut session = world.open(&Task::Drawn(Split::HeldOut), seed).await.unwrap();
        let mut state = session.opening();
        loop {
            let prompt = base.prompts.policy().render(&state, None, &json!({})).unwrap();
            let reply = base.say(&prompt, 1.0, &mut rng);
            let read = codec.read(Reply::whole(&reply), &state);
            replies += 1;
            unreadable += u32::from(read.is_err());
            let step = session.step(&read).await.unwrap();
            state = Context::of(step.messages).admitting(step.admissible);
            if let End::Terminated { success } = step.end {
                solved += u32::from(success == Some(true));
                break;
            }
        }
    }
    // 7 % of 200 are 14, with σ 3.6.
    assert!((4..=28).contains(&solved), "{solved} of {episodes}");
    assert!(unreadable * 20 < replies, "{unreadable} of {replies} replies cannot be read");
}

#[test]
fn the_same_seed_makes_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let make = |name: &str, threads| {
        let out = place.path().join(name);
        let options =
            Options { seed: 3, layers: 2, steps: 4, batch: 24, threads, ..Options::default() };
        pretrain(&out, options, |_, _| {}).unwrap();
        let read = |file: &str| std::fs::read(out.join(file)).unwrap();
        (read("model.safetensors"), read("config.json"), read("tokenizer.json"))
    };
    assert_eq!(make("a", 1), make("b", 2));
    assert_eq!(Config::load(&place.path().join("a")).unwrap().num_hidden_layers, 2);
    assert!(pretrain(&place.path().join("a"), Options::default(), |_, _| {}).is_err());
}
