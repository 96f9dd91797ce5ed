//! Who acts in an episode.

use async_trait::async_trait;

use super::{
    Sampler,
    sampler::{Asked, heard, only},
};
use crate::{
    domain::{
        fault::Fault,
        generation::{Generation, Role, Sampling, Weights},
        seed::SeedPath,
        spec::SamplingSpec,
    },
    engine::Frozen,
    experience::context::Context,
    prompt::PromptSet,
    telemetry::spans,
};

/// Who acts in an episode.
#[async_trait]
pub trait Policy: Send + Sync {
    /// Its reply to what it sees.
    ///
    /// # Errors
    /// The engine's fault: nothing that was cut off by an abort, mislabelled or lost comes back as text.
    async fn reply(
        &self,
        state: &Context,
        sampling: SamplingSpec,
        seed: SeedPath,
    ) -> Result<Generation, Fault>;
}

/// The online adapter acts; the base model where there is none.
#[async_trait]
impl Policy for Sampler<'_> {
    async fn reply(
        &self,
        state: &Context,
        sampling: SamplingSpec,
        seed: SeedPath,
    ) -> Result<Generation, Fault> {
        let weights = if self.online.is_some() { Weights::Online } else { Weights::Base };
        self.act(state, weights, sampling, seed).await
    }
}

/// A chat model acts, which nobody trains.
pub struct ChatPolicy<'a> {
    /// Where it answers.
    pub engine: &'a dyn Frozen,
    /// What it is asked.
    pub prompts: &'a PromptSet,
}

#[async_trait]
impl Policy for ChatPolicy<'_> {
    async fn reply(
        &self,
        state: &Context,
        sampling: SamplingSpec,
        seed: SeedPath,
    ) -> Result<Generation, Fault> {
        let template = self.prompts.policy();
        let context = template.render(state, None, &serde_json::json!({})).map_err(Fault::fail)?;
        let sampling = Sampling {
            temperature: sampling.temperature,
            max_tokens: sampling.most_tokens(),
            seed: self.engine.takes_seeds().then(|| seed.sampling_seed()),
        };
        let (role, weights) = (Role::Policy, Weights::Frozen);
        let span = spans::generation(role, weights, None, &sampling, 1);
        let said = heard(&span, async { Ok(vec![self.engine.answer(&context, sampling).await?]) });
        let prompt_hash = template.hash();
        let asked = Asked {
            role,
            weights,
            checkpoint_id: None,
            prompt_hash,
            sampling,
            reasoning_tokens: None,
        };
        only(asked.answered(&span, said.await?)?)
    }
}
