//! The compute thread: models under training, one operation at a time.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::mpsc::Receiver,
};

use serde_json::{Value, json};

use super::{
    ALPHA, TrainerOptions,
    futures::{Futures, Outcome},
    wire::{AdamFields, ForwardInput, ForwardOutput, LoraSettings},
};
use crate::{
    model::{Config, LoraConfig, Weights},
    train::{AdamParams, LoraTrainer},
};

/// One operation on a model; its result resolves a future.
pub struct Job {
    pub future: u64,
    pub model_id: String,
    pub operation: Operation,
}

/// What can be done.
pub enum Operation {
    Create(LoraSettings),
    Unload,
    Forward(ForwardInput),
    ForwardBackward(ForwardInput),
    OptimStep(AdamFields),
    SaveState(String),
    LoadState { path: String, optimizer: bool },
    SaveAdapter(String),
    Stop,
}

/// The thread's state.
pub struct Compute {
    options: TrainerOptions,
    config: Config,
    base: Weights,
    futures: Futures,
    models: HashMap<String, Model>,
}

struct Model {
    trainer: LoraTrainer,
    /// Something was done to it already: a state may no longer be loaded.
    touched: bool,
}

impl Compute {
    pub fn new(options: TrainerOptions, config: Config, base: Weights, futures: Futures) -> Self {
        Self { options, config, base, futures, models: HashMap::new() }
    }

    pub fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            if matches!(job.operation, Operation::Stop) {
                return;
            }
            let outcome = self.execute(&job.model_id, job.operation);
            self.futures.resolve(job.future, outcome);
        }
    }

    fn execute(&mut self, model_id: &str, operation: Operation) -> Outcome {
        match operation {
            Operation::Create(settings) => self.create(model_id, &settings),
            Operation::Unload => {
                self.models.remove(model_id);
                Ok(json!({ "model_id": model_id, "type": "unload_model" }))
            }
            Operation::Stop => Ok(Value::Null),
            operation => {
                let directory = self.options.checkpoints.clone();
                let base_model = self.options.base_model.clone();
                let (vocab, longest) =
                    (self.config.vocab_size, self.config.max_position_embeddings);
                let model = self.models.get_mut(model_id).ok_or_else(|| {
                    format!(
                        "Model {model_id} not loaded (likely stale request from previous server); \
                         create a model and load its last saved state"
                    )
                })?;
                let untouched = !std::mem::replace(&mut model.touched, true);
                let trainer = &mut model.trainer;
                match operation {
                    Operation::Forward(input) => {
                        let examples = input.examples(vocab, longest)?;
                        let logprobs = trainer.forward(&examples);
                        to_json(&ForwardOutput::new(&examples, logprobs))
                    }
                    Operation::ForwardBackward(input) => {
                        let examples = input.examples(vocab, longest)?;
                        let logprobs = trainer.forward_backward(&examples);
                        to_json(&ForwardOutput::new(&examples, logprobs))
                    }
                    Operation::OptimStep(adam) => {
                        let stats = trainer.optim_step(&AdamParams {
                            learning_rate: adam.learning_rate,
                            beta1: adam.beta1,
                            beta2: adam.beta2,
                            eps: adam.eps,
                            weight_decay: adam.weight_decay,
                            grad_clip_norm: adam.grad_clip_norm,
                        });
                        Ok(json!({ "metrics": {
                            "grad_norm": stats.grad_norm,
                            "learning_rate": adam.learning_rate,
                            "steps": stats.steps,
                        }}))
                    }
                    Operation::SaveState(name) => {
                        let at = state_dir(&directory, model_id, &name);
                        trainer.save_state(&at).map_err(|e| disk(&e))?;
                        let path = format!("tinker://{model_id}/weights/{name}");
                        Ok(json!({ "path": path, "type": "save_weights" }))
                    }
                    Operation::LoadState { path, optimizer } => {
                        if !untouched {
                            return Err(
                                "load_weights must be the first request of a model".to_owned()
                            );
                        }
                        let at = parse_state(&directory, &path)?;
                        trainer.load_state(&at, optimizer).map_err(|e| e.to_string())?;
                        Ok(json!({ "path": path, "type": "load_weights" }))
                    }
                    Operation::SaveAdapter(name) => {
                        let at = adapter_dir(&directory, model_id, &name);
                        trainer.lora().save_peft(&at, &base_model).map_err(|e| e.to_string())?;
                        let path = format!("tinker://{model_id}/{name}");
                        Ok(json!({
                            "path": path,
                            "type": "save_weights_for_sampler",
                            "sampling_session_id": null,
                        }))
                    }
                    Operation::Create(_) | Operation::Unload | Operation::Stop => Ok(Value::Null),
                }
            }
        }
    }

    fn create(&mut self, model_id: &str, settings: &LoraSettings) -> Outcome {
        if self.models.len() >= self.options.max_models {
            return Err(format!(
                "Maximum number of LoRA adapters ({}) reached; unload a model first",
                self.options.max_models
            ));
        }
        let rank = settings.rank;
        if rank == 0 || rank > self.options.max_lora_rank {
            let most = self.options.max_lora_rank;
            return Err(format!("LoRA rank {rank} is not between 1 and {most}"));
        }
        let lora = LoraConfig { rank, alpha: ALPHA };
        let seed = settings.seed.unwrap_or(0);
        let trainer = LoraTrainer::new(
            self.config.clone(),
            self.base.clone(),
            lora,
            seed,
            self.options.threads,
        );
        self.models.insert(model_id.to_owned(), Model { trainer, touched: false });
        Ok(json!({
            "model_id": model_id,
            "base_model": self.options.base_model,
            "lora_config": { "rank": rank, "alpha": ALPHA, "seed": seed },
        }))
    }
}

fn to_json(value: &impl serde::Serialize) -> Outcome {
    serde_json::to_value(value).map_err(|e| e.to_string())
}

fn disk(error: &std::io::Error) -> String {
    format!("the state could not be saved: {error}; free space in the checkpoints directory")
}

/// Where a training state is saved.
pub fn state_dir(checkpoints: &Path, model_id: &str, name: &str) -> PathBuf {
    checkpoints.join(model_id).join("weights").join(name)
}

/// Where an adapter is saved.
pub fn adapter_dir(checkpoints: &Path, model_id: &str, name: &str) -> PathBuf {
    checkpoints.join(model_id).join("sampler_weights").join(name)
}

/// `tinker://MODEL/weights/NAME` to its directory.
fn parse_state(checkpoints: &Path, path: &str) -> Result<PathBuf, String> {
    let parts: Vec<_> = path.strip_prefix("tinker://").unwrap_or_default().split('/').collect();
    match parts.as_slice() {
        [model, "weights", name] if [model, name].iter().all(|p| is_name(p)) => {
            Ok(state_dir(checkpoints, model, name))
        }
        _ => Err(format!("{path:?} is not of the form tinker://MODEL_ID/weights/NAME")),
    }
}

/// What models and checkpoints may be called; nothing that could leave the directory.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 255 && name.chars().all(allowed)
}
