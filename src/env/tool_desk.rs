//! The tool desk, a miniature of τ-bench: a customer names an order and a wish, and the agent calls tools until the order
//! is as the policy says. What is right follows from the wish and from the product, which only the record tells. Whole
//! combinations of the two are held out while each of their parts is trained on.

use std::{
    fmt::{self, Write},
    sync::{Arc, LazyLock},
};

use async_trait::async_trait;
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use super::{
    End, EnvError, Environment, Session, Split, Step, Task,
    form::{Word, words},
    split_seed, unknown_task,
};
use crate::{
    domain::{
        environment::Capabilities,
        spec::{EnvironmentSpec, ToolFormat},
    },
    experience::{
        action::{Action, Codec, Read},
        codec::ToolCalls,
        context::{Context, Frame, Tool},
        message::{Message, ToolCall, ToolResult},
    },
};

words!(/// What a customer wants.
Wish {
    Refund = "refund", Exchange = "exchange", Upgrade = "upgrade", Cancel = "cancel",
});
words!(/// What was ordered.
Product {
    Phone = "phone", Laptop = "laptop", Camera = "camera", Food = "food",
});
words!(/// How the customer is paid.
Payment { Card = "card", Cash = "cash", Credit = "credit", Points = "points" });
words!(/// How the product is sent.
    Carrier { Post = "post", Van = "van", Bike = "bike" });

/// Numbers of orders.
pub const ORDERS: std::ops::Range<u32> = 20..40;

/// What the agent says to close the case.
pub const DONE: &str = "done .";

/// A wish about a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Combination {
    /// What is wanted.
    pub wish: Wish,
    /// Of what.
    pub product: Product,
}

impl Combination {
    /// All 16, in the desk's order.
    pub fn all() -> impl Iterator<Item = Self> {
        Wish::ALL
            .iter()
            .flat_map(|&wish| Product::ALL.iter().map(move |&product| Self { wish, product }))
    }

    /// The part of the tasks that it belongs to. Four are held out: each wish once and each product once.
    #[must_use]
    pub const fn split(self) -> Split {
        match (self.wish as usize + self.product as usize) % Wish::ALL.len() {
            0 => Split::HeldOut,
            _ => Split::Train,
        }
    }

    /// How the order must be at the end.
    #[must_use]
    pub const fn goal(self) -> Changes {
        match carrier(self.product) {
            Some(carrier) => {
                Changes { pay: Some(payment(self.wish)), send: Some(carrier), refused: false }
            }
            None => Changes { pay: None, send: None, refused: true },
        }
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.wish.word(), self.product.word())
    }
}

const fn payment(wish: Wish) -> Payment {
    match wish {
        Wish::Refund => Payment::Card,
        Wish::Exchange => Payment::Credit,
        Wish::Upgrade => Payment::Points,
        Wish::Cancel => Payment::Cash,
    }
}

/// None for a product that no change is allowed of.
const fn carrier(product: Product) -> Option<Carrier> {
    match product {
        Product::Phone => Some(Carrier::Bike),
        Product::Laptop => Some(Carrier::Van),
        Product::Camera => Some(Carrier::Post),
        Product::Food => None,
    }
}

/// The policy: what the agent is told before the customer speaks.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let mut text = "find\npay".to_owned();
    for &wish in Wish::ALL {
        let _ = write!(text, " {} {}", wish.word(), payment(wish).word());
    }
    text.push_str("\nsend");
    for &product in Product::ALL {
        if let Some(carrier) = carrier(product) {
            let _ = write!(text, " {} {}", product.word(), carrier.word());
        }
    }
    text.push_str("\nrefuse food\nsay done .");
    text
});

/// The tools.
static FRAME: LazyLock<Arc<Frame>> = LazyLock::new(|| {
    let order = || json!({ "type": "integer", "description": "Number of the order." });
    let one_of = |words: Vec<&str>| json!({ "type": "string", "enum": words });
    let pay = one_of(Payment::ALL.iter().map(|payment| payment.word()).collect());
    let send = one_of(Carrier::ALL.iter().map(|carrier| carrier.word()).collect());
    let tool = |name: &str, description: &str, properties: Value| {
        let parameters =
            json!({ "type": "object", "properties": properties, "required": ["order"] });
        let function =
            json!({ "name": name, "description": description, "parameters": parameters });
        serde_json::from_value::<Tool>(json!({ "type": "function", "function": function }))
    };
    let tools = [
        tool("find", "Reads the record of an order.", json!({ "order": order() })),
        tool(
            "change",
            "Sets how an order is paid back, or by whom it is sent.",
            json!({ "order": order(), "pay": pay, "send": send }),
        ),
        tool("refuse", "Refuses the request and undoes its changes.", json!({ "order": order() })),
    ];
    Arc::new(Frame { tools: tools.into_iter().flatten().collect(), ..Frame::default() })
});

/// What was done with an order: the part of its record that the agent writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// How the customer is paid.
    pub pay: Option<Payment>,
    /// How the product is sent.
    pub send: Option<Carrier>,
    /// The request is refused; then nothing else is done.
    pub refused: bool,
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pay = self.pay.map(|payment| format!("pay {}", payment.word()));
        let send = self.send.map(|carrier| format!("send {}", carrier.word()));
        let refused = self.refused.then(|| "refuse".to_owned());
        let words: Vec<_> = pay.into_iter().chain(send).chain(refused).collect();
        f.write_str(&words.join(" "))
    }
}

/// The tool desk.
#[derive(Debug, Clone, Copy)]
pub struct ToolDesk;

impl ToolDesk {
    /// What it can do.
    pub const CAPABILITIES: Capabilities =
        Capabilities { replayable: true, tools: true, splits: true, ..Capabilities::NONE };
}

#[async_trait]
impl Environment for ToolDesk {
    fn name(&self) -> &'static str {
        "tool_desk"
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn codec(&self, format: ToolFormat) -> Arc<dyn Codec> {
        Arc::new(ToolCalls(format))
    }

    async fn tasks(&self, split: Split) -> Result<Vec<String>, EnvError> {
        let of_split = Combination::all().filter(|combination| combination.split() == split);
        Ok(of_split.map(|combination| combination.to_string()).collect())
    }

    async fn open(&self, task: &Task, seed: i64) -> Result<Box<dyn Session>, EnvError> {
        let drawn = match task {
            Task::Drawn(split) => {
                let mut rng = ChaCha8Rng::seed_from_u64(split_seed(*split, seed));
                let all: Vec<_> = Combination::all().filter(|c| c.split() == *split).collect();
                all.choose(&mut rng).copied().ok_or_else(|| unknown_task(self.name(), "any"))?
            }
            Task::Named(name) => Combination::all()
                .find(|combination| combination.to_string() == *name)
                .ok_or_else(|| unknown_task(self.name(), name))?,
        };
        // The rest follows from the seed alone, so that a named task is the same episode as the drawn one.
        Ok(Box::new(Desk::new(drawn, &mut ChaCha8Rng::seed_from_u64(seed.cast_unsigned()))))
    }
}

/// One customer and one order.
pub struct Desk {
    combination: Combination,
    task: String,
    order: u32,
    found: bool,
    changes: Changes,
    /// Of two changes that are missing, this names the payment.
    names_payment: bool,
    left: u32,
    ended: bool,
}

impl Desk {
    /// A case whose order number, and whose choice among reasons to name, are drawn.
    #[must_use]
    pub fn new(combination: Combination, rng: &mut ChaCha8Rng) -> Self {
        Self {
            combination,
            task: combination.to_string(),
            order: rng.random_range(ORDERS),
            found: false,
            changes: Changes::default(),
            names_payment: rng.random(),
            left: EnvironmentSpec::TOOL_DESK_TURNS,
            ended: false,
        }
    }

    /// What the agent sees first: tools, the policy and the request.
    #[must_use]
    pub fn opening(&self) -> Context {
        let request = format!("{} order {}", self.combination.wish.word(), self.order);
        let messages = vec![Message::system(&**POLICY), Message::user(request)];
        Context::new(messages, FRAME.clone())
    }

    /// One turn.
    ///
    /// # Errors
    /// A turn after the end.
    pub fn turn(&mut self, read: &Read) -> Result<Step, EnvError> {
        if self.ended {
            return Err(EnvError::Ended);
        }
        self.left -= 1;
        let closes = |action: &Action| action.key == DONE;
        if read.as_ref().is_ok_and(closes) {
            let solved = self.found && self.changes == self.combination.goal();
            let said = if solved { "done solved".to_owned() } else { self.missing("refused") };
            return Ok(self.end(vec![Message::user(said)], solved));
        }
        let mut messages = match read {
            Ok(action) => self.answers(action),
            Err(_) => Vec::new(),
        };
        if messages.is_empty() {
            messages.push(Message::user("what"));
        }
        if self.left == 0 {
            messages.push(Message::user(self.missing("closed")));
            return Ok(self.end(messages, false));
        }
        Ok(Step { messages, ..Step::of("", 0.0, End::Continues) })
    }

    fn end(&mut self, messages: Vec<Message>, solved: bool) -> Step {
        self.ended = true;
        let end = End::Terminated { success: Some(solved) };
        Step { messages, ..Step::of("", f64::from(u8::from(solved)), end) }
    }

    /// What the case lacks, in words.
    fn missing(&self, said: &str) -> String {
        let goal = self.combination.goal();
        let payment = goal.pay.filter(|_| goal.pay != self.changes.pay).map(Word::word);
        let carrier = goal.send.filter(|_| goal.send != self.changes.send).map(Word::word);
        let refusal = (goal.refused && !self.changes.refused).then_some("refusal");
        let change = if self.names_payment { payment.or(carrier) } else { carrier.or(payment) };
        let record = (!self.found).then_some("record");
        let missing = record.or(refusal).or(change).unwrap_or("nothing");
        format!("{said} {missing} is missing")
    }

    /// The first call of a turn is taken, as in τ-bench.
    fn answers(&mut self, action: &Action) -> Vec<Message> {
        let calls: Vec<_> = action.message.tool_calls().cloned().collect();
        let Some((first, rest)) = calls.split_first() else { return Vec::new() };
        let answer = |call: &ToolCall, said: Result<String, &str>| {
            let is_error = said.is_err();
            let text = said.unwrap_or_else(str::to_owned);
            Message::tool(ToolResult { call_id: call.id.clone(), text, is_error })
        };
        let first = answer(first, self.call(first));
        std::iter::once(first).chain(rest.iter().map(|call| answer(call, Err("what")))).collect()
    }

    /// What a tool says.
    fn call(&mut self, call: &ToolCall) -> Result<String, &'static str> {
        let arguments = call.arguments_json();
        let given = |name: &str| arguments.get(name).and_then(Value::as_str);
        if arguments.get("order").and_then(Value::as_u64) != Some(self.order.into()) {
            return Err("unknown order");
        }
        let (pay, send) = (given("pay"), given("send"));
        match &*call.name {
            "find" => {
                self.found = true;
                let record =
                    format!("product {} {}", self.combination.product.word(), self.changes);
                return Ok(record.trim_end().to_owned());
            }
            "change" if pay.or(send).is_some() => {
                let read = pay.map(Payment::of).is_none_or(|known| known.is_some())
                    && send.map(Carrier::of).is_none_or(|known| known.is_some());
                if !read {
                    return Err("unknown change");
                }
                self.changes = Changes {
                    pay: pay.and_then(Payment::of).or(self.changes.pay),
                    send: send.and_then(Carrier::of).or(self.changes.send),
                    refused: false,
                };
            }
            "refuse" => self.changes = Changes { pay: None, send: None, refused: true },
            _ => return Err("unknown change"),
        }
        Ok(self.changes.to_string())
    }
}

#[async_trait]
impl Session for Desk {
    fn task(&self) -> &str {
        &self.task
    }

    fn opening(&self) -> Context {
        Self::opening(self)
    }

    async fn step(&mut self, read: &Read) -> Result<Step, EnvError> {
        self.turn(read)
    }
}
