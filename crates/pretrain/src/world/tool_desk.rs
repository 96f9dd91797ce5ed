//! The calls of the tool desk.

use std::borrow::Cow;

use nlac::{
    domain::spec::{EnvironmentSpec, ToolFormat},
    env::{
        End, Split, Word,
        tool_desk::{Carrier, Changes, Combination, DONE, Desk, ORDERS, Payment, Product, Wish},
    },
    experience::{
        action::{Codec, Reply, message_of},
        codec::ToolCalls,
        context::Context,
        message::{Message, ToolCall, ToolResult},
    },
};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::{Speech, Taught, World};

const CODEC: ToolCalls = ToolCalls(ToolFormat::Hermes);
/// Numbers of orders as they are written.
const NUMBERS: [&str; 20] = [
    "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35",
    "36", "37", "38", "39",
];
const _: () = assert!(ORDERS.start == 20 && ORDERS.end == 40, "each number is a word");

/// Values of changes as JSON writes them.
const QUOTED: [&str; 7] =
    ["\"card\"", "\"cash\"", "\"credit\"", "\"points\"", "\"post\"", "\"van\"", "\"bike\""];

/// The tool desk. A reason is a change that is missing; the last three are the record, a refusal and nothing. Its base
/// reads no request that a job holds out.
pub struct ToolDesk;

/// What to do next.
#[derive(Clone, Copy)]
enum Deed {
    Pay(Payment),
    Send(Carrier),
    Find,
    Refuse,
    Done,
}

impl Deed {
    fn all() -> impl Iterator<Item = Self> {
        let pay = Payment::ALL.iter().copied().map(Self::Pay);
        let send = Carrier::ALL.iter().copied().map(Self::Send);
        pay.chain(send).chain([Self::Find, Self::Refuse, Self::Done])
    }

    fn of(reason: usize) -> Self {
        Self::all().nth(reason).unwrap_or(Self::Done)
    }

    fn any_change(rng: &mut ChaCha8Rng) -> Self {
        let changes: Vec<_> =
            Self::all().filter(|deed| !matches!(deed, Self::Find | Self::Done)).collect();
        changes.choose(rng).copied().unwrap_or(Self::Refuse)
    }

    /// As the model writes it in a conversation.
    fn written(self, state: &[Message]) -> String {
        let order = order(state);
        let (name, arguments) = match self {
            Self::Pay(payment) => ("change", json!({ "order": order, "pay": payment.word() })),
            Self::Send(carrier) => ("change", json!({ "order": order, "send": carrier.word() })),
            Self::Find => ("find", json!({ "order": order })),
            Self::Refuse => ("refuse", json!({ "order": order })),
            Self::Done => return DONE.to_owned(),
        };
        let (id, arguments) = (String::new(), arguments.to_string());
        CODEC.write(&message_of("", vec![ToolCall { id, name: name.to_owned(), arguments }]))
    }
}

/// The number at the end of the request, which follows the policy.
fn order(state: &[Message]) -> u32 {
    let request = state.get(1).map_or(Cow::Borrowed(""), Message::written);
    request.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(ORDERS.start)
}

impl World for ToolDesk {
    fn prompts(&self) -> &'static str {
        "tools"
    }

    fn words(&self) -> Vec<&'static str> {
        let own = [
            "find",
            "order",
            "product",
            "pay",
            "send",
            "refuse",
            "say",
            "record",
            "refusal",
            "change",
            "tools",
            "\"find\"",
            "\"change\"",
            "\"refuse\"",
            "<tool>",
            "<tool_response>",
            "</tool_response>",
            "<tool_call>{\"name\":\"find\",\"arguments\":{\"order\":",
            "<tool_call>{\"name\":\"change\",\"arguments\":{\"order\":",
            "<tool_call>{\"name\":\"refuse\",\"arguments\":{\"order\":",
            ",\"pay\":",
            ",\"send\":",
            "}}</tool_call>",
        ];
        let wishes = Wish::ALL.iter().map(|wish| wish.word());
        let products = Product::ALL.iter().map(|product| product.word());
        let payments = Payment::ALL.iter().map(|payment| payment.word());
        let carriers = Carrier::ALL.iter().map(|carrier| carrier.word());
        let values = wishes.chain(products).chain(payments).chain(carriers);
        own.into_iter().chain(values).chain(QUOTED).chain(NUMBERS).collect()
    }

    fn calls_tools(&self) -> bool {
        true
    }

    fn taught(&self) -> Taught<'_> {
        Taught::EveryPart(self)
    }
}

impl Speech for ToolDesk {
    fn conversation(&self, rng: &mut ChaCha8Rng) -> Context {
        let trained = Combination::all().filter(|c| c.split() == Split::Train).collect::<Vec<_>>();
        let combination = trained[rng.random_range(0..trained.len())];
        let mut desk = Desk::new(combination, rng);
        let mut state = desk.opening();
        for _ in 0..rng.random_range(0..EnvironmentSpec::TOOL_DESK_TURNS) {
            let deed = if rng.random_bool(0.3) { Deed::Find } else { Deed::any_change(rng) };
            let written = deed.written(state.messages());
            let Ok(action) = CODEC.read(Reply::whole(&written), &state) else { break };
            let message = action.message.clone();
            match desk.turn(&Ok(action)) {
                Ok(step) if step.end == End::Continues => {
                    state = state.with(std::iter::once(message).chain(step.messages));
                }
                _ => break,
            }
        }
        state
    }

    fn any_action(&self, state: &[Message], rng: &mut ChaCha8Rng) -> String {
        self.advised(rng.random_range(0..self.reasons()), state)
    }

    fn weak_action(&self, state: &[Message], rng: &mut ChaCha8Rng) -> String {
        let deed = match rng.random_range(0..100) {
            0..20 => Deed::Find,
            20..40 => Deed::Done,
            _ => Deed::any_change(rng),
        };
        deed.written(state)
    }

    fn reply(&self, rng: &mut ChaCha8Rng) -> String {
        self.turn(rng).0
    }

    fn turn(&self, rng: &mut ChaCha8Rng) -> (String, String) {
        if rng.random_bool(0.04) {
            return ("what".into(), "what".into());
        }
        let changes = Changes {
            pay: Payment::ALL.choose(rng).copied().filter(|_| rng.random_bool(0.6)),
            send: Carrier::ALL.choose(rng).copied(),
            refused: false,
        };
        let text = match rng.random_range(0..20) {
            0..6 => {
                let product = Product::ALL.choose(rng).map_or("", |product| product.word());
                let known = if rng.random_bool(0.5) { changes } else { Changes::default() };
                format!("product {product} {known}")
            }
            6..8 => Changes { refused: true, ..Changes::default() }.to_string(),
            8..12 => Changes { send: None, pay: Payment::ALL.choose(rng).copied(), ..changes }
                .to_string(),
            _ => changes.to_string(),
        };
        let text = text.trim_end().to_owned();
        let said = format!("<tool_response> {}", text.split(' ').next().unwrap_or_default());
        let result = ToolResult { call_id: String::new(), text, is_error: false };
        (said, Message::tool(result).written().into_owned())
    }

    fn last_turn(&self, rng: &mut ChaCha8Rng) -> (String, String) {
        self.turn(rng)
    }

    fn reasons(&self) -> usize {
        Deed::all().count()
    }

    /// A call is longer than a question, so repeating it takes more practice.
    fn approved(&self) -> f64 {
        0.4
    }

    fn reason(&self, reason: usize) -> String {
        let missing = match Deed::of(reason) {
            Deed::Pay(payment) => payment.word(),
            Deed::Send(carrier) => carrier.word(),
            Deed::Find => "record",
            Deed::Refuse => "refusal",
            Deed::Done => "nothing",
        };
        format!("{missing} is missing")
    }

    fn advice(&self, reason: usize) -> String {
        match Deed::of(reason) {
            Deed::Pay(payment) => format!("pay {}", payment.word()),
            Deed::Send(carrier) => format!("send {}", carrier.word()),
            Deed::Find => "find the order".into(),
            Deed::Refuse => "refuse it".into(),
            Deed::Done => "say done".into(),
        }
    }

    fn advised(&self, reason: usize, state: &[Message]) -> String {
        Deed::of(reason).written(state)
    }
}
