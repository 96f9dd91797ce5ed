//! The user whom the agent serves: a script, or a chat model.

use std::sync::Arc;

use nlac_tau_bench::UserPrompts;

use crate::{
    env::{EnvError, partner::Partner},
    experience::message::Message,
};

/// Who plays the user.
#[derive(Clone)]
pub(super) enum User {
    Engine { partner: Partner, prompts: Arc<UserPrompts> },
    Script(Arc<[String]>),
}

/// The user of an episode, with the conversation as he sees it.
pub(super) struct Customer {
    user: User,
    said: Vec<Message>,
    turns: usize,
    seed: i64,
}

impl Customer {
    pub(super) fn new(user: User, instruction: &str, seed: i64) -> Self {
        let said = match &user {
            User::Engine { prompts, .. } => vec![
                Message::system(prompts.system(instruction)),
                Message::user(prompts.greeting()),
            ],
            User::Script(_) => Vec::new(),
        };
        Self { user, said, turns: 0, seed }
    }

    /// His answer to what the agent said; his request where it said nothing yet.
    pub(super) async fn answer(&mut self, agent: Option<&str>) -> Result<String, EnvError> {
        self.said.extend(agent.map(Message::user));
        let turn = self.turns;
        self.turns += 1;
        let answer = match &self.user {
            User::Engine { partner, .. } => {
                let seed = self.seed.wrapping_add(i64::try_from(turn).unwrap_or(0));
                partner.answer(self.said.clone(), seed).await?
            }
            // A script that has come to its end is satisfied.
            User::Script(replies) => {
                replies.get(turn).cloned().unwrap_or_else(|| nlac_tau_bench::STOP.to_owned())
            }
        };
        self.said.push(Message::assistant(&*answer));
        Ok(answer)
    }
}
