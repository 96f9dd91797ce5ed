//! Prompt templates: front matter, strict rendering, content hashes, reply parsing.
//!
//! A set is a folder of `prompts/`, one file per part. A prompt is the conversation so far (as much of
//! it as the part may see) and one final message of the user; so parts that see the same state share a
//! prefix, which engines cache.

mod encoder;
mod leak;
mod reply;
mod template;

use std::{collections::BTreeMap, sync::Arc};

pub use encoder::Encoder;
pub use reply::PredictionParts;
pub use template::{PromptError, Scope, Template};

use crate::{
    domain::annotation::{TargetStatus, Verdict},
    experience::{context::Context, message::Message},
};

#[derive(rust_embed::Embed)]
#[folder = "prompts/"]
struct Files;

/// The parts that every set has a file for.
const PARTS: [&str; 6] =
    ["policy", "successor", "bellman", "bellman_terminal", "evaluator", "refiner"];

/// Parts that only some algorithms need, and only some sets have.
const OPTIONAL_PARTS: [&str; 2] = ["corrector", "value"];

/// The templates of one set.
#[derive(Debug, Clone)]
pub struct PromptSet {
    name: String,
    templates: Arc<BTreeMap<&'static str, Template>>,
    general: Arc<General>,
}

/// Prompts that have nothing to do with the task.
#[derive(Debug, Default)]
struct General {
    prompts: Vec<Context>,
    hash: Option<String>,
}

impl PromptSet {
    /// Loads a set that ships with the program.
    ///
    /// # Errors
    /// An unknown set, or a file that is not what it should be.
    pub fn load(name: &str) -> Result<Self, PromptError> {
        if !Self::names().iter().any(|known| known == name) {
            let known = Self::names();
            return Err(PromptError::UnknownSet { name: name.into(), known });
        }
        let mut templates = BTreeMap::new();
        for part in PARTS {
            let file = format!("{name}/{part}.md");
            let bytes = Files::get(&file).ok_or_else(|| PromptError::Missing(file.clone()))?;
            templates.insert(part, Template::parse(&file, &bytes.data)?);
        }
        for part in OPTIONAL_PARTS {
            let file = format!("{name}/{part}.md");
            if let Some(bytes) = Files::get(&file) {
                templates.insert(part, Template::parse(&file, &bytes.data)?);
            }
        }
        if !templates["successor"].replies().has_target_form() {
            return Err(PromptError::Invalid {
                file: format!("{name}/successor.md"),
                reason: "its reply needs `prediction` or `conclusion`: a target must name an end"
                    .into(),
            });
        }
        let general = Arc::new(General::load(name)?);
        Ok(Self { name: name.into(), templates: Arc::new(templates), general })
    }

    /// The sets that ship with the program.
    #[must_use]
    pub fn names() -> Vec<String> {
        let mut names: Vec<_> =
            Files::iter().filter_map(|f| Some(f.split_once('/')?.0.to_owned())).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Content hash per part, to be pinned by a job.
    #[must_use]
    pub fn hashes(&self) -> BTreeMap<String, String> {
        let general = self.general.hash.iter().map(|hash| ("general".to_owned(), hash.clone()));
        let parts = self.templates.iter();
        parts.map(|(part, t)| ((*part).to_owned(), t.hash().to_owned())).chain(general).collect()
    }

    /// General prompts, for rehearsal and to see what is forgotten; none where the set has no
    /// `general.yaml`.
    #[must_use]
    pub fn general(&self) -> &[Context] {
        &self.general.prompts
    }

    /// Content hash of the general prompts.
    #[must_use]
    pub fn general_hash(&self) -> &str {
        self.general.hash.as_deref().unwrap_or_default()
    }

    /// The policy's prompt of a state.
    #[must_use]
    pub fn policy(&self) -> &Template {
        &self.templates["policy"]
    }

    /// The successor's prompt of a state and an action.
    #[must_use]
    pub fn successor(&self) -> &Template {
        &self.templates["successor"]
    }

    /// The Bellman backup of a transition that goes on.
    #[must_use]
    pub fn bellman(&self) -> &Template {
        &self.templates["bellman"]
    }

    /// The Bellman backup of an ending.
    #[must_use]
    pub fn bellman_terminal(&self) -> &Template {
        &self.templates["bellman_terminal"]
    }

    /// The evaluator's prompt.
    #[must_use]
    pub fn evaluator(&self) -> &Template {
        &self.templates["evaluator"]
    }

    /// The refinement policy's prompt.
    #[must_use]
    pub fn refiner(&self) -> &Template {
        &self.templates["refiner"]
    }

    /// The prompt that takes hindsight out of a target's reasoning.
    #[must_use]
    pub fn corrector(&self) -> Option<&Template> {
        self.templates.get("corrector")
    }

    /// The prompt of the scalar critic.
    #[must_use]
    pub fn value(&self) -> Option<&Template> {
        self.templates.get("value")
    }

    /// What `target` gives away: anywhere, that its writer was shown what came; in its reasoning, something of
    /// `revealed` (what came next) that is told as a fact and is not in `known` (state and action). The conclusion
    /// may tell the outcome: the successor is to learn it.
    #[must_use]
    pub fn leak(&self, target: &str, known: &str, revealed: &str) -> Option<String> {
        let reasoning = self.successor().replies().reasoning(target);
        leak::confession(target, revealed).or_else(|| leak::fact(reasoning, known, revealed))
    }

    /// Reads an evaluator's reply.
    #[must_use]
    pub fn verdict(&self, reply: &str) -> Verdict {
        self.evaluator().replies().verdict(reply)
    }

    /// Reads a predicted future, where the set prescribes a form for it.
    #[must_use]
    pub fn prediction(&self, reply: &str) -> Option<PredictionParts> {
        self.successor().replies().prediction(reply)
    }

    /// Whether a predicted future ends well; none if it names no end.
    #[must_use]
    pub fn outcome(&self, prediction: &str) -> Option<bool> {
        self.successor().replies().outcome(prediction)
    }

    /// Whether the set says how a future names its end.
    #[must_use]
    pub fn names_ends(&self) -> bool {
        self.successor().replies().names_ends()
    }

    /// Whether a Bellman target has the prescribed form, names an end, and tells what really came: `observation` next
    /// and, where the step ended the task, `last_reward`.
    #[must_use]
    pub fn target_status(
        &self,
        target: &str,
        observation: &str,
        last_reward: Option<f64>,
    ) -> TargetStatus {
        self.successor().replies().target_status(target, observation, last_reward)
    }
}

impl General {
    fn load(set: &str) -> Result<Self, PromptError> {
        let file = format!("{set}/general.yaml");
        let Some(bytes) = Files::get(&file) else { return Ok(Self::default()) };
        let texts: Vec<String> = serde_yaml_ng::from_slice(&bytes.data)
            .map_err(|e| PromptError::Invalid { file, reason: e.to_string() })?;
        Ok(Self {
            prompts: texts.into_iter().map(|text| Context::of(vec![Message::user(text)])).collect(),
            hash: Some(template::content_hash(&bytes.data)),
        })
    }
}
