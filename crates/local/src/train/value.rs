//! A critic's head: a linear map from the last hidden state to one value per position.

use super::backward::Example;
use crate::model::Config;

/// A value head, or the gradients of one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValueHead {
    weight: Vec<f32>,
    /// One number.
    bias: Vec<f32>,
}

impl ValueHead {
    /// The head of a fresh critic: every value is 0.
    pub fn zeros(config: &Config) -> Self {
        Self { weight: vec![0.0; config.hidden_size], bias: vec![0.0] }
    }

    pub fn tensors(&self) -> [&Vec<f32>; 2] {
        [&self.weight, &self.bias]
    }

    pub fn tensors_mut(&mut self) -> [&mut Vec<f32>; 2] {
        [&mut self.weight, &mut self.bias]
    }

    /// The values of rows of hidden states, by sequence.
    pub fn values(&self, shard: &[Example], hidden: &[f32]) -> Vec<Vec<f32>> {
        let mut rows = hidden.chunks_exact(self.weight.len()).map(|row| {
            let products = row.iter().zip(&self.weight).map(|(h, w)| h * w);
            products.sum::<f32>() + self.bias[0]
        });
        shard.iter().map(|example| rows.by_ref().take(example.input.len()).collect()).collect()
    }

    /// Adds the head's gradients to `gradients`, where they are wanted; returns that of the hidden states.
    pub fn backward(
        &self,
        shard: &[Example],
        hidden: &[f32],
        values: &[Vec<f32>],
        mut gradients: Option<&mut Self>,
    ) -> Vec<f32> {
        let d = self.weight.len();
        let mut dhidden = vec![0.0; hidden.len()];
        let of_shard = shard.iter().zip(values).flat_map(|(example, values)| {
            values.iter().enumerate().map(|(i, value)| example.pull_at(i, *value))
        });
        let rows = hidden.chunks_exact(d).zip(dhidden.chunks_exact_mut(d));
        for (pull, (row, drow)) in of_shard.zip(rows) {
            if pull == 0.0 {
                continue;
            }
            if let Some(gradients) = &mut gradients {
                gradients.bias[0] -= pull;
                for (to, h) in gradients.weight.iter_mut().zip(row) {
                    *to -= pull * h;
                }
            }
            for (to, w) in drow.iter_mut().zip(&self.weight) {
                *to = -pull * w;
            }
        }
        dhidden
    }
}
