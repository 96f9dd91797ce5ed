//! Models that think before they speak: tokenizers over bytes with the special tokens and the turns of published
//! models, and an engine that writes what a function says, within its limits.

use std::path::Path;

use async_trait::async_trait;
use nlac::{
    domain::{generation::FinishReason, ids::CheckpointId, peer::EngineCapabilities},
    engine::{
        Adapter, Completion, Engine, EngineError, Probe, Request, Scored, Scoring, Tokenized,
    },
    experience::context::Context,
    prompt::{Encoder, PromptSet},
    rollout::{Published, Sampler},
};

use super::byte_model::write_tokenizer;

/// A family of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Qwen3,
    DeepSeekR1,
    GptOss,
}

/// Reasoning only after the last question, an empty one where `enable_thinking` is false.
const QWEN3: &str = "{%- set ns = namespace(last=0) %}
{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content %}
    {%- if m.role == 'assistant' %}
        {%- set thought = m.reasoning_content or '' %}
        {%- if '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {%- set content = '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') %}
        {%- endif %}
    {%- endif %}
    {{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}";

/// Opens the reasoning itself, and strips that of every reply.
const DEEPSEEK_R1: &str = "{{ bos_token }}
{%- for m in messages %}
    {%- if m.role == 'system' %}{{- m.content }}
    {%- elif m.role == 'user' %}{{- '<｜User｜>' + m.content }}
    {%- else %}{{- '<｜Assistant｜>' + m.content.split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<｜Assistant｜><think>\\n' }}{%- endif %}";

/// Channels, the reasoning only of the last reply.
const GPT_OSS: &str = "{{- '<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\\n\
    Knowledge cutoff: 2024-06\\nCurrent date: ' + strftime_now('%Y-%m-%d') + '\\n\\nReasoning: ' }}
{{- reasoning_effort or 'medium' }}
{{- '\\n\\n# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>' }}
{%- for m in messages %}
    {%- if m.role == 'system' %}{{- '<|start|>developer<|message|># Instructions\\n\\n' + m.content + '<|end|>' }}
    {%- elif m.role == 'user' %}{{- '<|start|>user<|message|>' + m.content + '<|end|>' }}
    {%- elif loop.last and not add_generation_prompt %}
        {%- if 'thinking' in m %}{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}
        {%- endif %}
        {{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|return|>' }}
    {%- else %}{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}";

impl Family {
    pub const ALL: [Self; 3] = [Self::Qwen3, Self::DeepSeekR1, Self::GptOss];

    /// Its tokenizer and chat template.
    pub fn encoder(self) -> Encoder {
        let directory = tempfile::tempdir().unwrap();
        self.write(directory.path());
        Encoder::load(directory.path()).unwrap()
    }

    /// Writes its tokenizer and chat template.
    pub fn write(self, directory: &Path) {
        let tags = ["<think>", "</think>"];
        let channels = [
            "<|return|>",
            "<|end|>",
            "<|call|>",
            "<|start|>",
            "<|channel|>",
            "<|message|>",
            "<|constrain|>",
        ];
        match self {
            Self::Qwen3 => {
                write_tokenizer(directory, &["<|im_end|>", "<|im_start|>"], &tags, QWEN3)
            }
            Self::DeepSeekR1 => {
                let special = ["<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"];
                write_tokenizer(directory, &special, &tags, DEEPSEEK_R1);
            }
            Self::GptOss => write_tokenizer(directory, &channels, &[], GPT_OSS),
        }
    }

    /// A reply as its models write it, from the end of the prompt to the end of the turn.
    pub fn reply(self, thought: &str, answer: &str) -> String {
        match self {
            Self::Qwen3 => format!("<think>\n{thought}\n</think>\n\n{answer}<|im_end|>"),
            Self::DeepSeekR1 => format!("{thought}\n</think>\n\n{answer}<｜end▁of▁sentence｜>"),
            Self::GptOss => format!(
                "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>\
                 {answer}<|return|>"
            ),
        }
    }

    /// What its models write where they stop before they answer.
    pub fn endless(self, thought: &str) -> String {
        match self {
            Self::Qwen3 => format!("<think>\n{thought}"),
            Self::DeepSeekR1 => thought.to_owned(),
            Self::GptOss => format!("<|channel|>analysis<|message|>{thought}"),
        }
    }
}

/// An engine that writes what `say` makes of a prompt's text without special tokens. It ends a text at the limit, and
/// leaves special tokens out of it, as engines do.
pub struct Thinker<F> {
    pub encoder: Encoder,
    pub say: F,
}

impl<F: Fn(&str) -> String + Send + Sync> Thinker<F> {
    /// Plays every part, as `online` and `target`.
    pub fn sampler<'a>(&'a self, prompts: &'a PromptSet) -> Sampler<'a> {
        let published = |name: &str| {
            let adapter = Adapter { name: name.into(), path: "/nowhere".into() };
            Some(Published { checkpoint_id: CheckpointId::new(), adapter })
        };
        let (online, target) = (published("online"), published("target"));
        Sampler {
            engine: self,
            prompts,
            encoder: &self.encoder,
            online,
            target,
            frozen: None,
            origin: None,
        }
    }
}

#[async_trait]
impl<F: Fn(&str) -> String + Send + Sync> Engine for Thinker<F> {
    fn name(&self) -> &str {
        "thinker"
    }

    fn takes_seeds(&self) -> bool {
        true
    }

    async fn samples(&self, request: Request, count: u32) -> Result<Vec<Completion>, EngineError> {
        let prompt = self.encoder.decode(&request.prompt).unwrap();
        let closing = self.encoder.closing().unwrap();
        let model = request.adapter.as_ref().map_or("base", |adapter| &*adapter.name);
        let each = (0..count).map(|_| {
            let text = (self.say)(&prompt);
            // The reasoning was closed for it.
            let marks = ["</think>\n\n", "final<|message|>"];
            let answer = marks.iter().find_map(|mark| Some(text.split_once(mark)?.1));
            let text = answer.filter(|_| request.prompt.ends_with(&closing)).unwrap_or(&text);
            let mut token_ids = self.encoder.encode_text(text).unwrap();
            let most = request.sampling.max_tokens as usize;
            let cut = token_ids.len() > most;
            token_ids.truncate(most);
            Completion {
                engine: "thinker".into(),
                model: model.into(),
                prompt_tokens: u32::try_from(request.prompt.len()).unwrap(),
                logprobs: request.logprobs.then(|| vec![-1.0; token_ids.len()]),
                text: self.encoder.decode(&token_ids).unwrap(),
                token_ids,
                finish_reason: if cut { FinishReason::Length } else { FinishReason::Stop },
                own_temperature: false,
            }
        });
        Ok(each.collect())
    }

    async fn score(&self, _: Scoring) -> Result<Vec<Scored>, EngineError> {
        unreachable!("nothing is scored")
    }

    async fn load(&self, _: &Adapter) -> Result<(), EngineError> {
        unreachable!("nothing is loaded")
    }

    async fn unload(&self, _: &str) -> Result<(), EngineError> {
        unreachable!("nothing is unloaded")
    }

    async fn check(&self) -> Result<EngineCapabilities, EngineError> {
        unreachable!("nothing is checked")
    }

    async fn tokenize_chat(&self, _: &Context) -> Result<Tokenized, EngineError> {
        unreachable!("nothing is tokenised")
    }

    async fn sleep(&self) -> Result<(), EngineError> {
        unreachable!("the algorithm puts nothing to sleep")
    }

    async fn wake(&self) -> Result<(), EngineError> {
        unreachable!("the algorithm wakes nothing")
    }

    async fn probe(&self, _: &Adapter, _: &[u32]) -> Result<Probe, EngineError> {
        unreachable!("nothing is probed")
    }
}
