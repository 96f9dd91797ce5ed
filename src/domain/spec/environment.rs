//! Where an agent acts.

use garde::Validate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::text_enum::text_enum;

/// Where the agent acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EnvironmentSpec {
    /// A form that must be complete before the request is carried out; nobody says what it needs.
    HelpDesk {},
    /// A form whose needs follow from three attributes of the request; whole combinations are held out.
    ServiceDesk(#[garde(skip)] ServiceDeskSpec),
    /// Change an order by tool calls, under a policy; whole combinations of wish and product are held out.
    ToolDesk {},
    /// Guess an object by yes/no questions; a rule-based oracle answers from an object table.
    TwentyQuestions {
        /// Questions before the game is lost.
        #[serde(default = "default_questions")]
        #[garde(range(min = 1, max = 100))]
        #[schema(minimum = 1, maximum = 100, default = 20)]
        max_questions: u32,
        /// Which objects there are, and in which language they are asked for.
        #[serde(default)]
        #[garde(skip)]
        #[schema(inline)]
        table: ObjectTable,
    },
    /// Guess an object of a list by yes/no questions, which a chat model answers.
    TwentyQuestionsChat {
        /// The registered engine that answers, of kind `openai` or `tgi`.
        #[garde(length(min = 1, max = 100))]
        #[schema(min_length = 1, max_length = 100)]
        oracle: String,
        /// Questions before the game is lost.
        #[serde(default = "default_questions")]
        #[garde(range(min = 1, max = 100))]
        #[schema(minimum = 1, maximum = 100, default = 20)]
        max_questions: u32,
        /// A data file with one object on each line: `object, another name; category`. Without it, the list that ships.
        #[serde(default)]
        #[garde(inner(length(min = 1, max = 500)))]
        #[schema(min_length = 1, max_length = 500)]
        objects: Option<String>,
    },
    /// Solve a problem in one reply; its final answer is compared with the right one.
    Mathematics {
        /// A data file of problems to train on, in the form of MATH or GSM8K: one JSON object on each line.
        #[garde(length(min = 1, max = 500))]
        #[schema(min_length = 1, max_length = 500, example = "math/train.jsonl")]
        train: String,
        /// A data file of problems to measure with.
        #[garde(length(min = 1, max = 500))]
        #[schema(min_length = 1, max_length = 500, example = "math/test.jsonl")]
        held_out: String,
        /// Who says whether an answer is right.
        #[serde(default)]
        #[garde(skip)]
        #[schema(inline)]
        checker: AnswerChecker,
    },
    /// Reach goals in a world of plants and animals, with actions to choose from (Playground-Text).
    Playground {
        /// How large the world is.
        #[serde(default)]
        #[garde(skip)]
        #[schema(inline)]
        size: PlaygroundSize,
    },
    /// Serve a user by calling tools over a database, under a policy (τ-bench).
    TauBench(#[garde(dive)] TauBenchSpec),
    /// Agents of yours act, and call the model through the gateway.
    Gateway(#[garde(dive)] GatewaySpec),
    /// A registered environment: a server that somebody else runs.
    Remote(#[garde(dive)] RemoteSpec),
}

/// The service desk: what it says, and what it is measured with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceDeskSpec {
    /// Which of the missing fields a refusal names.
    #[serde(default)]
    #[schema(inline)]
    pub refusal: NamedField,
    /// The combinations to measure with. They are not trained on.
    #[serde(default)]
    #[schema(inline)]
    pub held_out: ServiceTasks,
}

/// Which of the missing fields a refusal names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamedField {
    /// Any of them; the episode's seed decides which.
    #[default]
    Any,
    /// The first in the order kind, product, tier.
    First,
}

/// Combinations of the service desk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceTasks {
    /// 16 combinations to report results on. The other 44 are trained on.
    #[default]
    Test,
    /// 8 combinations to choose settings with. The 36 that are in neither part are trained on.
    Development,
}

/// Who says whether an answer is right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerChecker {
    /// nlac itself, by algebra and by numbers.
    #[default]
    BuiltIn,
    /// The server that the service was started with (`--answer-checker`).
    External,
}

/// τ-bench: its data, its tasks and its user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct TauBenchSpec {
    /// A data directory with the benchmark's `retail` and `airline`, which do not ship.
    #[garde(length(min = 1, max = 500))]
    #[schema(min_length = 1, max_length = 500, example = "tau_bench")]
    pub data: String,
    /// Who plays the user.
    #[garde(dive)]
    pub user: TauUser,
    /// Tasks to train on.
    #[serde(default = "retail_train")]
    #[garde(skip)]
    #[schema(inline)]
    pub train: TauTasks,
    /// Tasks to measure with.
    #[serde(default = "retail_test")]
    #[garde(skip)]
    #[schema(inline)]
    pub held_out: TauTasks,
    /// How the agent learns of the tools and calls them.
    #[serde(default)]
    #[garde(skip)]
    #[schema(inline)]
    pub form: TauForm,
    /// Turns of the agent before the episode is lost; 30 in the benchmark.
    #[serde(default = "default_turns")]
    #[garde(range(min = 1, max = 200))]
    #[schema(minimum = 1, maximum = 200, default = 30)]
    pub max_turns: u32,
}

/// How an agent of τ-bench learns of the tools and calls them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TauForm {
    /// The chat template shows the tools, and the agent calls them in the format of its model.
    #[default]
    Tools,
    /// The system prompt describes the tools, and the agent writes `Action:` and a call in JSON (the benchmark's ReAct
    /// agent).
    React,
}

/// Who plays the user of τ-bench.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(rename_all = "snake_case")]
pub enum TauUser {
    /// A registered engine of kind `openai` or `tgi`, at temperature 0.
    Engine(#[garde(length(min = 1, max = 100))] String),
    /// These replies in their order, whatever the agent says; then the user is satisfied.
    Script(#[garde(length(min = 1, max = 100), inner(length(max = 4_000)))] Vec<String>),
}

text_enum!(
    /// Task files of τ-bench.
    TauTasks {
        /// 500 tasks of the online shop.
        RetailTrain = "retail_train",
        /// 20 tasks of the online shop.
        RetailDev = "retail_dev",
        /// 115 tasks of the online shop.
        RetailTest = "retail_test",
        /// 50 tasks of the airline.
        AirlineTest = "airline_test",
    }
);

/// How a job learns from the calls of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct GatewaySpec {
    /// New steps with a known reward that an iteration waits for. An episode gives its steps when it has ended.
    #[serde(default = "default_new_steps")]
    #[garde(range(min = 1, max = 1_000_000))]
    #[schema(minimum = 1, maximum = 1_000_000, default = 256)]
    pub steps: u32,
    /// Seconds after which an iteration begins with fewer new steps, if there is any; it waits for all of them unless
    /// given.
    #[serde(default)]
    #[garde(inner(range(min = 1, max = 604_800)))]
    #[schema(minimum = 1, maximum = 604_800)]
    pub seconds: Option<u32>,
}

/// A registered environment, and how a job plays there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct RemoteSpec {
    /// Its registered name.
    #[garde(length(min = 1, max = 100))]
    #[schema(min_length = 1, max_length = 100, example = "my-desk")]
    pub name: String,
    /// What every reset is sent beside seed and task: the environment's own settings.
    #[serde(default)]
    #[garde(skip)]
    #[schema(value_type = Object)]
    pub reset: serde_json::Map<String, serde_json::Value>,
    /// The split of its task list that training draws from.
    #[serde(default = "default_train")]
    #[garde(length(min = 1, max = 100))]
    #[schema(min_length = 1, max_length = 100, default = "train")]
    pub train: String,
    /// The split of its task list that evaluations draw from.
    #[serde(default = "default_held_out")]
    #[garde(length(min = 1, max = 100))]
    #[schema(min_length = 1, max_length = 100, default = "held_out")]
    pub held_out: String,
    /// The return from which on an episode is solved, where the environment does not say whether it is.
    #[serde(default = "default_solved")]
    #[garde(skip)]
    #[schema(default = 1.0)]
    pub solved: f64,
}

impl EnvironmentSpec {
    /// Turns before the help desk closes; part of the task.
    pub const HELP_DESK_TURNS: u32 = 5;
    /// Turns before the service desk closes; part of the task.
    pub const SERVICE_DESK_TURNS: u32 = 6;
    /// Turns before the tool desk closes; part of the task.
    pub const TOOL_DESK_TURNS: u32 = 5;

    /// Most steps that an episode can have.
    #[must_use]
    pub const fn most_steps(&self) -> u32 {
        match self {
            Self::HelpDesk {} => Self::HELP_DESK_TURNS,
            Self::ServiceDesk(_) => Self::SERVICE_DESK_TURNS,
            Self::ToolDesk {} => Self::TOOL_DESK_TURNS,
            Self::TwentyQuestions { max_questions, .. }
            | Self::TwentyQuestionsChat { max_questions, .. } => *max_questions,
            Self::Mathematics { .. } => 1,
            Self::TauBench(tau_bench) => tau_bench.max_turns,
            Self::Playground { size: PlaygroundSize::Full } => 30,
            Self::Playground { size: PlaygroundSize::Small | PlaygroundSize::Tiny } => 12,
            Self::Gateway(_) | Self::Remote(_) => u32::MAX,
        }
    }

    /// The registered engine that plays the user or the oracle, where the environment has one.
    #[must_use]
    pub const fn chat(&self) -> Option<&String> {
        match self {
            Self::TwentyQuestionsChat { oracle, .. } => Some(oracle),
            Self::TauBench(TauBenchSpec { user: TauUser::Engine(engine), .. }) => Some(engine),
            _ => None,
        }
    }

    /// The data files that it reads.
    #[must_use]
    pub fn files(&self) -> Vec<&str> {
        match self {
            Self::TwentyQuestionsChat { objects, .. } => {
                objects.iter().map(String::as_str).collect()
            }
            Self::Mathematics { train, held_out, .. } => vec![train, held_out],
            Self::TauBench(tau_bench) => vec![&tau_bench.data],
            Self::HelpDesk {}
            | Self::ServiceDesk(_)
            | Self::ToolDesk {}
            | Self::TwentyQuestions { .. }
            | Self::Playground { .. }
            | Self::Gateway(_)
            | Self::Remote(_) => Vec::new(),
        }
    }

    /// Where a spec names the chat engine.
    #[must_use]
    pub const fn chat_pointer(&self) -> &'static str {
        match self {
            Self::TauBench(_) => "/environment/user/engine",
            _ => "/environment/oracle",
        }
    }

    /// How a job learns from agents' calls, where its environment is the gateway.
    #[must_use]
    pub const fn gateway(&self) -> Option<&GatewaySpec> {
        match self {
            Self::Gateway(gateway) => Some(gateway),
            _ => None,
        }
    }

    /// The registered environment, where it is one.
    #[must_use]
    pub const fn remote(&self) -> Option<&RemoteSpec> {
        match self {
            Self::Remote(remote) => Some(remote),
            _ => None,
        }
    }
}

/// The objects of Twenty Questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectTable {
    /// Eighty objects, questions in plain English; every fifth object is held out.
    #[default]
    Full,
    /// Sixteen objects and five attributes, in fixed sentences that a tiny model can hold; the first guess
    /// ends the game.
    Small,
}

/// The worlds of Playground-Text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaygroundSize {
    /// Nine kinds each of furniture, plants, herbivores and carnivores; eight objects at a time.
    #[default]
    Full,
    /// Two or three kinds each; five objects at a time, goals of at most twelve steps.
    Small,
    /// Nine kinds; five objects at a time, goals of at most eight steps, one line of few words that says everything, for
    /// tiny models.
    Tiny,
}

const fn retail_train() -> TauTasks {
    TauTasks::RetailTrain
}

const fn retail_test() -> TauTasks {
    TauTasks::RetailTest
}

const fn default_turns() -> u32 {
    30
}

fn default_train() -> String {
    "train".into()
}

fn default_held_out() -> String {
    "held_out".into()
}

const fn default_solved() -> f64 {
    1.0
}

const fn default_new_steps() -> u32 {
    256
}

const fn default_questions() -> u32 {
    20
}
