//! An adapter under training: accumulate gradients, step, save, resume.

use std::{collections::BTreeMap, path::Path};

use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

use super::{
    adam::{Adam, AdamParams},
    backward::{Example, Gradients, Reading, backward, predictions},
    value::ValueHead,
    write_directory,
};
use crate::model::{AdapterError, Config, Lora, LoraConfig, Strided, Weights, matmul};
use crate::model::{bytes_of, floats, write_safetensors};

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepStats {
    /// Norm of all gradients before clipping.
    pub grad_norm: f32,
    /// Steps taken so far.
    pub steps: u64,
}

/// What a model is trained to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It writes text.
    #[default]
    Policy,
    /// It tells a value of each position, by a head of its own.
    Critic,
}

impl Role {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Critic => "critic",
        }
    }
}

/// An adapter under training, with a value head where it is a critic.
pub struct LoraTrainer {
    config: Config,
    base: Weights,
    lora: Lora,
    head: Option<ValueHead>,
    merged: Weights,
    gradients: Gradients,
    adam: Adam,
    threads: usize,
}

#[derive(Serialize, Deserialize)]
struct StateFile {
    rank: usize,
    role: Role,
    alpha: f32,
    steps: u64,
}

impl LoraTrainer {
    /// A fresh adapter on a base.
    #[must_use]
    pub fn new(config: Config, base: Weights, lora: LoraConfig, seed: u64, threads: usize) -> Self {
        let lora = Lora::init(&config, &lora, seed);
        Self::continued(config, base, lora, threads)
    }

    /// A fresh adapter with a value head, which begins at 0.
    #[must_use]
    pub fn critic(
        config: Config,
        base: Weights,
        lora: LoraConfig,
        seed: u64,
        threads: usize,
    ) -> Self {
        let gradients = Gradients::of_critic(&config);
        let head = Some(ValueHead::zeros(&config));
        let mut critic = Self { head, gradients, ..Self::new(config, base, lora, seed, threads) };
        critic.adam = Adam::new(critic.tensors().map(Vec::len));
        critic
    }

    /// An adapter that exists, with a fresh optimizer.
    #[must_use]
    pub fn continued(config: Config, base: Weights, lora: Lora, threads: usize) -> Self {
        let lengths = lora.layers.iter().flatten().flat_map(|p| [p.a.len(), p.b.len()]);
        let adam = Adam::new(lengths);
        let gradients = Gradients::zeros(&config, false);
        let merged = lora.merge(&base);
        Self { merged, config, base, lora, head: None, gradients, adam, threads }
    }

    /// What it is trained to be.
    #[must_use]
    pub const fn role(&self) -> Role {
        if self.head.is_some() { Role::Critic } else { Role::Policy }
    }

    /// Everything that is trained, in the order of states and moments.
    fn tensors(&self) -> impl Iterator<Item = &Vec<f32>> {
        let pairs = self.lora.layers.iter().flatten().flat_map(|p| [&p.a, &p.b]);
        pairs.chain(self.head.iter().flat_map(ValueHead::tensors))
    }

    /// Log-probability of every target; of a critic, the value of every position.
    #[must_use]
    pub fn forward(&self, examples: &[Example]) -> Vec<Vec<f32>> {
        let reading = reading(self.head.as_ref());
        predictions(&self.config, &self.merged, reading, examples, self.threads)
    }

    /// Adds the gradients of the examples' summed loss; returns what [`Self::forward`] does.
    pub fn forward_backward(&mut self, examples: &[Example]) -> Vec<Vec<f32>> {
        let (config, merged, threads) = (&self.config, &self.merged, self.threads);
        let reading = reading(self.head.as_ref());
        backward(config, merged, reading, examples, &mut self.gradients, threads)
    }

    /// Steps by the accumulated gradients and clears them.
    pub fn optim_step(&mut self, params: &AdamParams) -> StepStats {
        let mut projected = self.lora_gradients();
        if let Some(head) = &self.gradients.value {
            projected.extend(head.tensors().map(Clone::clone));
        }
        self.clear_gradients();
        let mut gradients: Vec<_> = projected.iter_mut().collect();
        let mut tensors = tensors_mut(&mut self.lora, &mut self.head);
        let decays = vec![true; tensors.len()];
        let grad_norm = self.adam.step(params, &mut tensors, &mut gradients, &decays);
        self.merged = self.lora.merge(&self.base);
        StepStats { grad_norm, steps: self.adam.steps }
    }

    /// Forgets what was accumulated since the last step.
    pub fn clear_gradients(&mut self) {
        for tensor in self.gradients.tensors_mut() {
            tensor.fill(0.0);
        }
    }

    /// Gradients of A and B, by layer and linear map: `dA = s Bᵀ G`, `dB = s G Aᵀ`, where G is the
    /// gradient of the merged weight.
    pub(crate) fn lora_gradients(&self) -> Vec<Vec<f32>> {
        let rank = self.lora.rank();
        let scale = self.lora.scale;
        let shapes = self.config.linear_shapes();
        let mut all = Vec::new();
        for (pairs, linears) in self.lora.layers.iter().zip(&self.gradients.linears) {
            for ((pair, g), (outputs, inputs)) in pairs.iter().zip(linears).zip(shapes) {
                let mut da = vec![0.0; rank * inputs];
                matmul(Strided::transposed(&pair.b, rank), g, &mut da, rank, outputs, inputs);
                let mut a_t = vec![0.0; inputs * rank];
                for r in 0..rank {
                    for i in 0..inputs {
                        a_t[i * rank + r] = pair.a[r * inputs + i];
                    }
                }
                let mut db = vec![0.0; outputs * rank];
                matmul(Strided::rows(g, inputs), &a_t, &mut db, outputs, inputs, rank);
                for gradient in [&mut da, &mut db] {
                    gradient.iter_mut().for_each(|v| *v *= scale);
                }
                all.extend([da, db]);
            }
        }
        all
    }

    /// The adapter as it is.
    #[must_use]
    pub const fn lora(&self) -> &Lora {
        &self.lora
    }

    /// Steps taken so far.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.adam.steps
    }

    /// Writes everything needed to go on: adapter, value head, moments, step count.
    ///
    /// # Errors
    /// What writing runs into; the directory must not exist yet.
    pub fn save_state(&self, directory: &Path) -> std::io::Result<()> {
        let mut tensors = BTreeMap::new();
        let moments = self.adam.first.iter().zip(&self.adam.second);
        for (index, (value, (first, second))) in self.tensors().zip(moments).enumerate() {
            for (part, values) in [("value", value), ("first", first), ("second", second)] {
                let entry = (vec![values.len()], bytes_of(values));
                tensors.insert(format!("{index:04}.{part}"), entry);
            }
        }
        let state = StateFile {
            rank: self.lora.rank(),
            role: self.role(),
            alpha: self.lora.config.alpha,
            steps: self.adam.steps,
        };
        write_directory(directory, |partial| {
            let text = serde_json::to_string_pretty(&state).map_err(std::io::Error::other)?;
            std::fs::write(partial.join("state.json"), text)?;
            write_safetensors(&tensors, &partial.join("state.safetensors"))
        })
    }

    /// Takes over what [`Self::save_state`] wrote, with or without the optimizer's moments, or PEFT files,
    /// which have none. Gradients that were accumulated before are dropped.
    ///
    /// # Errors
    /// Missing files, or a state of another shape; then nothing has changed.
    pub fn load_state(&mut self, directory: &Path, optimizer: bool) -> Result<(), AdapterError> {
        if directory.join("adapter_config.json").exists() {
            return self.load_peft(directory, optimizer);
        }
        let missing = |_| AdapterError::Missing(directory.display().to_string());
        let text = std::fs::read(directory.join("state.json")).map_err(missing)?;
        let bytes = std::fs::read(directory.join("state.safetensors")).map_err(missing)?;
        let invalid =
            |e: &dyn std::fmt::Display| AdapterError::Tensor(format!("training state: {e}"));
        let state: StateFile = serde_json::from_slice(&text).map_err(|e| invalid(&e))?;
        let file = SafeTensors::deserialize(&bytes).map_err(|e| invalid(&e))?;
        let (rank, role) = (self.lora.rank(), self.role().name());
        if (state.rank, state.role) != (rank, self.role()) {
            return Err(AdapterError::Unsupported(format!(
                "the saved state is a {} of rank {}, the model a {role} of rank {rank}",
                state.role.name(),
                state.rank
            )));
        }
        let (mut lora, mut head, mut adam) =
            (self.lora.clone(), self.head.clone(), self.adam.clone());
        let values = tensors_mut(&mut lora, &mut head);
        let moments = adam.first.iter_mut().zip(&mut adam.second);
        for (index, (value, (first, second))) in values.into_iter().zip(moments).enumerate() {
            for (part, to) in [("value", value), ("first", first), ("second", second)] {
                let name = format!("{index:04}.{part}");
                let view = file.tensor(&name).map_err(|e| invalid(&format!("{name}: {e}")))?;
                let read = floats(&view).filter(|read| read.len() == to.len());
                *to = read.ok_or_else(|| invalid(&format!("{name} has another shape")))?;
            }
        }
        adam.steps = state.steps;
        lora.config.alpha = state.alpha;
        lora.scale = state.alpha / state.rank as f32;
        (self.lora, self.head) = (lora, head);
        self.clear_gradients();
        if optimizer {
            self.adam = adam;
        }
        self.merged = self.lora.merge(&self.base);
        Ok(())
    }

    /// Begins from an adapter that was made elsewhere.
    fn load_peft(&mut self, directory: &Path, optimizer: bool) -> Result<(), AdapterError> {
        let lora = Lora::load_peft(directory, &self.config)?;
        let (found, rank) = (lora.rank(), self.lora.rank());
        let untrainable = lora.layers.iter().flatten().any(|pair| pair.a.iter().all(|v| *v == 0.0));
        let headed = self.head.is_some();
        let refused = [
            (
                headed,
                "the adapter has other tensors than the model: PEFT files hold no value head"
                    .into(),
            ),
            (optimizer, "PEFT files hold no optimizer: load them with \"optimizer\": false".into()),
            (found != rank, format!("the adapter has rank {found}, the model {rank}")),
            (untrainable, "the adapter leaves out a linear map that is trained here".into()),
        ];
        if let Some((_, what)) = refused.into_iter().find(|(applies, _)| *applies) {
            return Err(AdapterError::Unsupported(what));
        }
        self.merged = lora.merge(&self.base);
        self.lora = lora;
        self.clear_gradients();
        Ok(())
    }
}

/// Everything that is trained, in the order of [`LoraTrainer::tensors`].
fn tensors_mut<'a>(lora: &'a mut Lora, head: &'a mut Option<ValueHead>) -> Vec<&'a mut Vec<f32>> {
    let pairs = lora.layers.iter_mut().flatten().flat_map(|p| [&mut p.a, &mut p.b]);
    pairs.chain(head.iter_mut().flat_map(ValueHead::tensors_mut)).collect()
}

fn reading(head: Option<&ValueHead>) -> Reading<'_> {
    head.map_or(Reading::Text, Reading::Values)
}
