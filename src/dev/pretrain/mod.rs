//! Makes the base model that ships: a tiny transformer that can read and write the help desk's
//! sentences and play each part's form, and knows nothing of what the loop is to learn.

mod curriculum;
mod vocabulary;

use std::path::Path;

use nlac_local::{
    model::Config,
    pretrain::{Schedule, pretrain as train_from_scratch},
};

use crate::{
    domain::seed::SeedPath,
    prompt::{Encoder, PromptError, PromptSet},
};

/// How the base is made.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Same seed, same bytes.
    pub seed: u64,
    /// Optimizer steps.
    pub steps: usize,
    /// Sequences per step.
    pub batch: usize,
    /// Compute threads; they change nothing but the time.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, steps: 300, batch: 96, threads: 1 }
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
#[must_use]
pub fn config() -> Config {
    Config {
        vocab_size: vocabulary::SIZE,
        hidden_size: 128,
        intermediate_size: 256,
        num_hidden_layers: 3,
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
    vocabulary::write(&scratch)?;
    let encoder = Encoder::load(&scratch)?;
    let prompts = PromptSet::load("desk")?;
    let curriculum = curriculum::Curriculum::new(&prompts, &encoder)?;
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
    let weights = train_from_scratch(&config(), options.seed, schedule, batch, |step, loss| {
        last = loss;
        progress(step, loss);
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    weights.save(&scratch)?;
    config().save(&scratch, Some(vocabulary::BOS), Some(vocabulary::PAD))?;
    std::fs::write(scratch.join("README.md"), model_card(options, last))?;
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

fn model_card(options: Options, loss: f32) -> String {
    format!(
        "# help-desk-base\n\n\
         A Qwen3-architecture transformer of 0.45 million parameters with a vocabulary of words, made by\n\
         `nlac local pretrain --seed {} --steps {} --batch {}` (final loss {loss:.3} nats per token).\n\
         Apache-2.0. It exists so that the demo can start from a model that knows nothing of its task.\n\n\
         What it knows\n\
         - the form of the help desk's sentences, and a weak policy: 30 % do, 15 % wait, 55 % a random\n  question\n\
         - joining what happened with a prediction (the Bellman backup)\n\
         - reading a forecast into a critique (the evaluator): it looks at the forecast's end and nothing\n  else\n\
         - doing what a critique says (the refiner)\n\n\
         What it does not know\n\
         - which action brings which reply, or what a request needs: no text it was trained on holds that\n\
         - how likely any ending is: the futures it was trained to write are random, independent of state\n  and action\n\
         - which action is better\n",
        options.seed, options.steps, options.batch,
    )
}
