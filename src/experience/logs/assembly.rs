//! Calls of a model, with their scores, as an episode.

use std::collections::{BTreeSet, HashMap};

use super::{
    LogOptions,
    calls::{After, Call, Score},
};
use crate::experience::{
    logged::{CallLine, EpisodeLine},
    message::{Message, Speaker},
};

/// The calls and scores of an episode, in the order in which they were logged.
pub(super) struct Assembled {
    /// Its name, where the log has one.
    pub id: Option<Box<str>>,
    /// Its calls.
    pub calls: Vec<Call>,
    /// Its scores.
    pub scores: Vec<Score>,
}

impl Assembled {
    /// The episode.
    ///
    /// # Errors
    /// Why there is none, in a sentence.
    pub fn episode(mut self, options: &LogOptions) -> Result<EpisodeLine, String> {
        self.calls.sort_by_key(|call| call.at);
        completed(&mut self.calls)?;
        let (rewards, success) = self.rewards(options)?;
        let model = self.calls.iter().rev().find_map(|call| call.model.clone());
        let steps = self.calls.into_iter().map(|call| CallLine {
            messages: call.messages.into_iter().map(Into::into).collect(),
            reply: call.reply.into(),
            tools: Some(call.tools),
        });
        Ok(EpisodeLine {
            id: self.id.map(Into::into),
            model,
            steps: Some(steps.collect()),
            rewards: Some(rewards),
            success,
            ..EpisodeLine::default()
        })
    }

    /// A reward for each call, and whether the episode was solved. Where anything is scored, what is not scored got
    /// nothing; but the end is not known before it is scored.
    fn rewards(&self, options: &LogOptions) -> Result<(Vec<Option<f64>>, Option<bool>), String> {
        let chosen = self.chosen(options)?;
        let last = self.calls.len() - 1;
        let mut given: Vec<(Option<f64>, Option<bool>)> =
            self.calls.iter().map(|call| (call.reward, call.success)).collect();
        for score in chosen {
            let (_, place) = self.place(score);
            given[place] = (Some(score.value), score.success);
        }
        let any = given.iter().any(|(reward, success)| reward.is_some() || success.is_some());
        let number = |success: bool| f64::from(u8::from(success));
        let reward = |(place, (reward, success)): (usize, &(Option<f64>, Option<bool>))| {
            let reward = reward.or_else(|| success.map(number));
            match (place == last, any) {
                (true, false) => options.reward,
                (true, true) => reward,
                (false, _) => Some(reward.unwrap_or(0.0)),
            }
        };
        let success = given[last].1;
        Ok((given.iter().enumerate().map(reward).collect(), success))
    }

    /// How narrow a score is, and the call that it is for. What is no call is judged with its trace.
    fn place(&self, score: &Score) -> (u8, usize) {
        let call = |call: &Call| call.id.is_some() && call.id == score.call;
        let trace = |call: &Call| call.trace.is_some() && call.trace == score.trace;
        let narrow = self.calls.iter().position(call).map(|place| (2, place));
        let wide = || self.calls.iter().rposition(trace).map(|place| (1, place));
        narrow.or_else(wide).unwrap_or((0, self.calls.len() - 1))
    }

    /// The scores that are rewards. The narrower one counts, and of two that are as narrow the newer: it comes later.
    fn chosen(&self, options: &LogOptions) -> Result<Vec<&Score>, String> {
        let wanted = |score: &&Score| options.score.as_ref().is_none_or(|n| *n == score.name);
        let mut chosen: Vec<_> = self.scores.iter().filter(wanted).collect();
        let names: BTreeSet<_> = chosen.iter().map(|score| score.name.as_str()).collect();
        if names.len() > 1 {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(format!("it has several scores ({names}): say which one is the reward"));
        }
        chosen.sort_by_key(|score| (self.place(score).0, score.at));
        Ok(chosen)
    }
}

/// Gives each call all that the model saw, where its record holds only what was new.
fn completed(calls: &mut [Call]) -> Result<(), String> {
    if calls.iter().all(|call| call.after == After::Nothing) {
        return Ok(());
    }
    let mut seen: HashMap<String, Vec<Message>> = HashMap::new();
    let mut before: Vec<Message> = Vec::new();
    for call in calls {
        let earlier = match &call.after {
            After::Nothing => Vec::new(),
            After::Conversation => before,
            After::Response(name) => seen.get(name).cloned().ok_or_else(|| {
                format!("it goes on from response {name}, which is not in the log")
            })?,
        };
        // Instructions hold for one call: the API does not carry them over.
        let (own, new): (Vec<_>, Vec<_>) = std::mem::take(&mut call.messages)
            .into_iter()
            .partition(|message| message.role == Speaker::System);
        call.messages = own.into_iter().chain(earlier).chain(new).collect();
        let said = call.messages.iter().chain([&call.reply]);
        before = said.filter(|m| m.role != Speaker::System).cloned().collect();
        if let Some(name) = &call.response {
            seen.insert(name.clone(), before.clone());
        }
    }
    Ok(())
}
