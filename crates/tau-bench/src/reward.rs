//! What an episode earns.

use crate::{
    database::Database,
    domain::Domain,
    tools::{self, Call, TRANSFER},
};

/// The state after a task's own actions. The call that would end the episode is left out; an action
/// that fails changes nothing, and the benchmark's tasks hold some.
pub(crate) fn gold_state(domain: Domain, mut database: Database, actions: &[Call]) -> Database {
    for action in actions.iter().filter(|action| action.name != TRANSFER) {
        tools::call(domain, &mut database, action);
    }
    database
}

/// Whether a message tells the user an output. Commas in the message do not count, so `1,234` tells
/// `1234`; the case of letters does not count either.
pub(crate) fn tells(message: &str, output: &str) -> bool {
    message.to_lowercase().replace(',', "").contains(&output.to_lowercase())
}
