//! What a row of each form is.

use serde::Serialize;

use super::ExportForm;
use crate::{
    domain::{annotation::Verdict, message::Message},
    store::read::transitions::TransitionView,
};

/// A row of an export.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Row {
    Transition(Box<TransitionView>),
    Conversation { messages: Vec<Message> },
    Preference { prompt: Vec<Message>, chosen: [Message; 1], rejected: [Message; 1] },
}

/// The row of a transition, where the form has one for it.
pub(super) fn row(view: TransitionView, form: ExportForm) -> Option<Row> {
    match form {
        ExportForm::Transitions => Some(Row::Transition(Box::new(view))),
        ExportForm::Sft => conversation(view),
        ExportForm::Preferences => preference(view),
    }
}

/// An action that was refined to another, if the environment can read it.
fn refined(view: &TransitionView) -> Option<&String> {
    view.refinement.as_ref().filter(|_| view.changed == Some(true) && view.valid == Some(true))
}

fn conversation(view: TransitionView) -> Option<Row> {
    let approved = view.verdict == Some(Verdict::Yes) && view.env_action.is_some();
    let said = refined(&view).cloned().or_else(|| approved.then(|| view.action.clone()))?;
    let mut messages = view.state.0;
    messages.push(Message::assistant(said));
    Some(Row::Conversation { messages })
}

fn preference(view: TransitionView) -> Option<Row> {
    let chosen = [Message::assistant(refined(&view)?.clone())];
    let rejected = [Message::assistant(view.action)];
    Some(Row::Preference { prompt: view.state.0, chosen, rejected })
}
