//! Makes the tiny base models: transformers that can read and write the sentences of one environment.
//! They can turn the end of a prediction into advice and follow advice. What the loop has to learn, such
//! as which request needs what, is in none of their training texts.

mod curriculum;
mod desk;
mod questions;
mod vocabulary;
mod world;

use std::path::Path;

use nlac_local::{
    model::Config,
    pretrain::{Schedule, pretrain as train_from_scratch},
};

use crate::{
    domain::seed::SeedPath,
    prompt::{Encoder, PromptError, PromptSet},
};

/// What the base is to be the base for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The help desk; this base ships.
    HelpDesk,
    /// Twenty Questions over its small table.
    TwentyQuestions,
}

impl Task {
    fn world(self) -> &'static dyn world::World {
        match self {
            Self::HelpDesk => &desk::HelpDesk,
            Self::TwentyQuestions => &questions::TwentyQuestions,
        }
    }
}

/// How the base is made.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whose sentences it is taught.
    pub task: Task,
    /// Same seed, same bytes.
    pub seed: u64,
    /// Layers of the transformer: it computes, and takes to train, about as much more.
    pub layers: usize,
    /// Optimizer steps.
    pub steps: usize,
    /// Sequences per step.
    pub batch: usize,
    /// Compute threads; they change nothing but the time.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { task: Task::HelpDesk, seed: 0, layers: 3, steps: 300, batch: 96, threads: 1 }
    }
}

/// Why no base came out.
#[derive(Debug, thiserror::Error)]
pub enum PretrainError {
    /// The directory is taken.
    #[error("{0} exists already; choose another directory or remove it")]
    Exists(String),
    /// Files could not be written.
    #[error("cannot write the model: {0}")]
    Io(#[from] std::io::Error),
    /// The prompts do not fit the vocabulary.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

/// The shape of the base: small enough to train on one core in a minute, wide enough for seven parts.
fn config(vocabulary: usize, layers: usize) -> Config {
    Config {
        vocab_size: vocabulary,
        hidden_size: 128,
        intermediate_size: 256,
        num_hidden_layers: layers,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 32,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        max_position_embeddings: 512,
        tie_word_embeddings: true,
        qk_norm: true,
        eos_token_ids: vec![vocabulary::EOS],
    }
}

/// Trains the base and writes its directory, all at once. Returns the loss of the last step, nats per
/// token.
///
/// # Errors
/// A directory that exists, or that cannot be written.
pub fn pretrain(
    out: &Path,
    options: Options,
    mut progress: impl FnMut(usize, f32),
) -> Result<f32, PretrainError> {
    if out.exists() {
        return Err(PretrainError::Exists(out.display().to_string()));
    }
    let scratch = tempdir_beside(out)?;
    let world = options.task.world();
    let tokens = vocabulary::tokens(world);
    let config = config(tokens.len(), options.layers);
    vocabulary::write(&scratch, &tokens)?;
    let encoder = Encoder::load(&scratch)?;
    let prompts = PromptSet::load(world.prompts())?;
    let curriculum = curriculum::Curriculum::new(world, &prompts, &encoder);
    let seed = SeedPath::root(options.seed).label("pretrain");
    let schedule = Schedule {
        steps: options.steps,
        warmup: options.steps / 8,
        learning_rate: 3e-3,
        threads: options.threads,
    };
    let mut failed = None;
    let mut last = f32::NAN;
    let batch = |step: usize| {
        let mut rng = seed.index(step as u64).rng();
        curriculum.batch(options.batch, &mut rng).unwrap_or_else(|error| {
            failed = Some(error);
            Vec::new()
        })
    };
    let weights = train_from_scratch(&config, options.seed, schedule, batch, |step, loss| {
        last = loss;
        progress(step, loss);
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    weights.save(&scratch)?;
    config.save(&scratch, Some(vocabulary::BOS), Some(vocabulary::PAD))?;
    std::fs::write(scratch.join("README.md"), model_card(options, weights.parameters(), last))?;
    std::fs::rename(&scratch, out)?;
    Ok(last)
}

fn tempdir_beside(out: &Path) -> std::io::Result<std::path::PathBuf> {
    let parent = out.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(parent)?;
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let scratch = parent.join(format!(".{name}.{}.partial", std::process::id()));
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir(&scratch)?;
    Ok(scratch)
}

fn model_card(options: Options, parameters: usize, loss: f32) -> String {
    let Options { task, seed, layers, steps, batch, .. } = options;
    let millions = parameters as f64 / 1e6;
    let (title, flag, owner, policy, advice, unknown, purpose) = match task {
        Task::HelpDesk => (
            "help-desk-base",
            "",
            "the help desk's",
            "30 % do, 15 % wait, 55 % a random\n  question",
            "one of nine sentences,\n  a field to ask for, or that none is missing",
            "which action brings which reply, or what a request needs: no text it was trained on holds that",
            "the demo can start from a model that does not know which request needs what",
        ),
        Task::TwentyQuestions => (
            "twenty-questions-base",
            " --task twenty-questions",
            "the game's",
            "one guess among four random\n  questions",
            "a question to ask or\n  an object to guess",
            "the answer to any question, or what any object is like beyond the open games it has read",
            "Twenty Questions can start from a model that cannot play it",
        ),
    };
    format!(
        "# {title}\n\n\
         A Qwen3-architecture transformer of {millions:.2} million parameters with a vocabulary of words, made by\n\
         `nlac local pretrain{flag} --seed {seed} --layers {layers} --steps {steps} --batch {batch}` (final loss {loss:.3} nats per token).\n\
         Apache-2.0. It exists so that {purpose}.\n\n\
         What it knows\n\
         - the form of {owner} sentences, and a weak policy: {policy}\n\
         - joining what happened with a prediction (the Bellman backup)\n\
         - turning the end of a prediction into advice (the evaluator): {advice}\n\
         - following such advice (the refiner)\n\n\
         What it does not know\n\
         - {unknown}\n\
         - how likely any ending is: the futures it was trained to write are random, independent of state\n  and action\n\
         - which action is better\n",
    )
}
