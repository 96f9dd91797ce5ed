//! The compute thread: models under training, one operation at a time, in order of arrival.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, mpsc::Receiver},
};

use super::{
    ALPHA, TrainerOptions,
    api::Shared,
    futures::{Finished, Outcome},
    wire::{
        AdamFields, Created, Followed, ForwardInput, ForwardOutput, LoraAnswer, LoraSettings,
        Saved, Stepped, Unloaded,
    },
};
use crate::{
    model::{Config, LoraConfig, Weights},
    train::{AdamParams, LoraTrainer, Role, Shape},
};

/// One operation on a model; its result resolves a future.
pub struct Job {
    pub future: u64,
    pub model_id: String,
    pub operation: Operation,
}

/// What can be done.
pub enum Operation {
    Create(LoraSettings, Shape),
    Unload,
    Forward(ForwardInput),
    ForwardBackward(ForwardInput),
    OptimStep(AdamFields),
    /// Towards another model.
    Polyak {
        source: String,
        rate: f32,
    },
    /// To a directory, under a name that the answer shows.
    SaveState(PathBuf, String),
    /// From a directory; with the optimizer's moments, or without.
    LoadState(PathBuf, String, bool),
    SaveAdapter(PathBuf, String),
}

/// The thread's state.
pub struct Compute {
    shared: Arc<Shared>,
    config: Config,
    base: Weights,
    models: HashMap<String, LoraTrainer>,
}

impl Compute {
    pub fn new(shared: &Arc<Shared>, config: Config, base: Weights) -> Self {
        Self { shared: shared.clone(), config, base, models: HashMap::new() }
    }

    /// Works until told to stop; what waits then fails, so that nobody polls for it in vain.
    pub fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            let Job { future, model_id, operation } = job;
            let outcome = if self.shared.is_stopping() {
                Err("The trainer is stopping".to_owned())
            } else {
                let work = AssertUnwindSafe(|| self.execute(&model_id, operation));
                catch_unwind(work).unwrap_or_else(|_| {
                    // Half an operation may have happened to it.
                    self.models.remove(&model_id);
                    Err(format!("Model {model_id} was lost: the operation panicked"))
                })
            };
            self.shared.futures.resolve(future, outcome);
        }
    }

    fn execute(&mut self, model_id: &str, operation: Operation) -> Outcome {
        match operation {
            Operation::Create(settings, shape) => self.create(model_id, &settings, shape),
            Operation::Polyak { source, rate } => self.follow(model_id, &source, rate),
            Operation::Unload => {
                self.models.remove(model_id);
                json(&Unloaded { model_id, kind: "unload_model" })
            }
            operation => {
                let saving = match &operation {
                    Operation::SaveState(path, _) | Operation::SaveAdapter(path, _) => {
                        Some(path.clone())
                    }
                    _ => None,
                };
                let outcome = self.train(model_id, operation);
                if let Some(path) = saving {
                    self.shared.checkpoints.settle(&path);
                }
                outcome
            }
        }
    }

    fn train(&mut self, model_id: &str, operation: Operation) -> Outcome {
        let (vocab, longest) = (self.config.vocab_size, self.config.max_position_embeddings);
        let trainer = self.models.get_mut(model_id).ok_or_else(|| stale(model_id))?;
        match operation {
            Operation::Forward(input) => {
                if let Some(examples) = input.candidates(vocab, longest, false)? {
                    let scores = trainer.scores(&examples);
                    return pass(ForwardOutput::scored(trainer.role(), &examples, scores));
                }
                let examples = input.examples(vocab, longest)?;
                let predicted = trainer.forward(&examples);
                pass(ForwardOutput::new(trainer.role(), &examples, predicted))
            }
            Operation::ForwardBackward(input) => {
                let output = match input.candidates(vocab, longest, true)? {
                    Some(examples) => {
                        let scores = trainer.scores_backward(&examples);
                        ForwardOutput::scored(trainer.role(), &examples, scores)
                    }
                    None => {
                        let examples = input.examples(vocab, longest)?;
                        let predicted = trainer.forward_backward(&examples);
                        ForwardOutput::new(trainer.role(), &examples, predicted)
                    }
                };
                if !output.is_finite() {
                    // Its gradients are not finite either: no step may use them.
                    trainer.clear_gradients();
                    return Err("the loss is not finite (NaN or infinity); the gradients since the last step \
                                are dropped. Lower the learning rate, or clip gradients (grad_clip_norm)"
                        .into());
                }
                pass(output)
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
                if !stats.grad_norm.is_finite() {
                    return Err("the gradient is not finite (NaN or infinity), so no step was taken. Lower the \
                                learning rate, or clip gradients (grad_clip_norm)"
                        .into());
                }
                json(&Stepped::new(stats.grad_norm, adam.learning_rate, stats.steps))
            }
            Operation::SaveState(path, name) => {
                trainer.save_state(&path).map_err(|e| disk(&e))?;
                json(&Saved::new(format!("tinker://{model_id}/weights/{name}"), "save_weights"))
            }
            Operation::LoadState(path, uri, optimizer) => {
                trainer.load_state(&path, optimizer).map_err(|e| e.to_string())?;
                json(&Saved::new(uri, "load_weights"))
            }
            Operation::SaveAdapter(path, name) => {
                let base = &self.shared.options.base_model_name;
                trainer.lora().save_peft(&path, base).map_err(|e| disk(&e))?;
                json(&Saved::for_sampler(format!("tinker://{model_id}/{name}")))
            }
            Operation::Create(..) | Operation::Unload | Operation::Polyak { .. } => {
                Err("not an operation on one model".into())
            }
        }
    }

    fn follow(&mut self, model_id: &str, source: &str, rate: f32) -> Outcome {
        // Two models are needed at once, one of them to be changed.
        let mut trainer = self.models.remove(model_id).ok_or_else(|| stale(model_id))?;
        let followed = match self.models.get(source) {
            Some(source) => trainer.follow(source, rate).map_err(|e| e.to_string()),
            None => Err(stale(source)),
        };
        self.models.insert(model_id.to_owned(), trainer);
        followed?;
        json(&Followed { model_id, kind: "polyak" })
    }

    fn create(&mut self, model_id: &str, settings: &LoraSettings, shape: Shape) -> Outcome {
        let TrainerOptions { max_models, max_lora_rank, base_model_name, threads, .. } =
            &self.shared.options;
        if self.models.len() >= *max_models {
            return Err(format!(
                "Maximum number of LoRA adapters ({max_models}) reached; unload a model first"
            ));
        }
        let rank = settings.rank;
        if rank == 0 || rank > *max_lora_rank {
            return Err(format!("LoRA rank {rank} is not between 1 and {max_lora_rank}"));
        }
        let lora = LoraConfig { rank, alpha: ALPHA };
        let seed = settings.seed.unwrap_or_else(rand::random);
        let (config, base) = (self.config.clone(), self.base.clone());
        let trainer = match shape.role {
            Role::Policy => LoraTrainer::new(config, base, lora, seed, *threads),
            Role::Critic => LoraTrainer::critic(config, base, lora, shape.head, seed, *threads),
        };
        self.models.insert(model_id.to_owned(), trainer);
        let lora_config = LoraAnswer { rank, alpha: ALPHA, seed };
        json(&Created { model_id, base_model: base_model_name, lora_config })
    }
}

fn json(value: &impl serde::Serialize) -> Outcome {
    let json = serde_json::to_vec(value).map_err(|e| e.to_string())?;
    Ok(Finished::Json(json.into()))
}

fn pass(output: ForwardOutput) -> Outcome {
    Ok(Finished::Pass(Arc::new(output)))
}

fn stale(model_id: &str) -> String {
    format!("Model {model_id} not loaded (likely stale request from previous server)")
}

fn disk(error: &dyn std::fmt::Display) -> String {
    format!("the checkpoint could not be saved: {error}; free space in the checkpoints directory")
}
