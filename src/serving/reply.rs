//! One answer: what the model is shown, what it writes, and how that is read as a message.

use super::voice::{Voice, refused};
use crate::{
    domain::{
        fault::Fault,
        generation::{FinishReason, Generation, Role, Weights},
        seed::SeedPath,
        spec::SamplingSpec,
    },
    experience::{
        action::{Codec as _, Reply, message_of, reasoning},
        context::Context,
        message::{Block, Message},
    },
    gateway::wire::{Refused, RefusedKind},
    rollout::{ChatPolicy, Policy as _, Prompt},
    work::JobContext,
};

/// An answer with what made it.
pub(super) struct Said {
    /// The tokens of what the model saw; none of a chat engine.
    pub prompt_ids: Vec<i32>,
    pub message: Message,
    pub generation: Generation,
}

impl Voice {
    /// Its answer.
    pub async fn reply(
        &self,
        context: &Context,
        sampling: SamplingSpec,
        seed: SeedPath,
    ) -> Result<Said, Refused> {
        let (generation, prompt_ids) = match self {
            Self::Policy(job) => write(job, context, sampling, seed).await.map_err(refused)?,
            Self::Chat(engine, prompts) => {
                let speaker = ChatPolicy { engine: &**engine, prompts };
                let reply = speaker.reply(context, sampling, seed).await;
                (reply.map_err(refused)?, Vec::new())
            }
        };
        let message = self.read(&generation, context);
        Ok(Said { prompt_ids, message, generation })
    }

    /// How many tokens the prompt has.
    pub fn count(&self, context: &Context) -> Result<u32, Refused> {
        match self {
            Self::Policy(job) => {
                let (_, tokens) = prompt(job, context).map_err(refused)?;
                Ok(u32::try_from(tokens.len()).unwrap_or(u32::MAX))
            }
            Self::Chat(..) => {
                let what = "the engine of the episode does not tell its tokens";
                Err(Refused::new(RefusedKind::Unsupported, what))
            }
        }
    }

    /// What it wrote, as a message. A call that cannot be read stays the text that it is: the agent sees it and may say so.
    fn read(&self, generation: &Generation, context: &Context) -> Message {
        let text = &generation.text;
        if context.frame().tools.is_empty() {
            let (thought, said) = reasoning(text);
            let mut message = message_of(said, Vec::new());
            let thought = thought.map(|thought| Block::Reasoning(thought.to_owned()));
            message.blocks.splice(0..0, thought);
            return message;
        }
        let cut = generation.finish_reason == FinishReason::Length;
        match self.tool_calls().read(Reply { text, cut }, context) {
            Ok(action) => action.message,
            Err(unreadable) => unreadable.message,
        }
    }
}

/// What the policy sees, and its tokens.
fn prompt(job: &JobContext, context: &Context) -> Result<(Context, Vec<u32>), Fault> {
    let template = job.prompts.policy();
    let seen = template.render(context, None, &serde_json::json!({})).map_err(Fault::fail)?;
    // A conversation that a chat template refuses is the agent's mistake.
    let tokens = job.encoder.encode(&seen).map_err(|e| Fault::Refused(e.to_string()))?;
    Ok((seen, tokens))
}

async fn write(
    job: &JobContext,
    context: &Context,
    sampling: SamplingSpec,
    seed: SeedPath,
) -> Result<(Generation, Vec<i32>), Fault> {
    let (seen, tokens) = prompt(job, context)?;
    let prompt_ids = tokens.iter().map(|token| token.cast_signed()).collect();
    let sampler = job.sampler();
    let prompt = Prompt {
        role: Role::Policy,
        template: job.prompts.policy(),
        context: &seen,
        weights: if sampler.online.is_some() { Weights::Online } else { Weights::Base },
        sampling,
        seed,
    };
    Ok((sampler.write(prompt, tokens).await?, prompt_ids))
}
