//! What a row of each form is.

use serde::Serialize;

use super::ExportForm;
use crate::{
    domain::annotation::Verdict, experience::message::Message,
    store::read::transitions::TransitionView,
};

/// A row of an export.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Row {
    Transition(Box<Transition>),
    Conversation {
        messages: Vec<Message>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tools: Option<String>,
    },
    Preference {
        prompt: Vec<Message>,
        chosen: [Message; 1],
        rejected: [Message; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        tools: Option<String>,
    },
}

/// A transition whose tools are one text of JSON, as in the other forms: TRL reads it, and a column of a table has one
/// type.
#[derive(Serialize)]
pub(super) struct Transition {
    #[serde(flatten)]
    view: TransitionView,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<String>,
}

/// The row of a transition, where the form has one for it.
pub(super) fn row(mut view: TransitionView, form: ExportForm) -> Option<Row> {
    let tools = std::mem::take(&mut view.tools);
    let tools = (!tools.is_empty()).then(|| serde_json::to_string(&tools).ok()).flatten();
    // Chat formats know one order of blocks.
    let state = std::mem::take(&mut view.state);
    view.state = state.into_iter().map(Message::folded).collect();
    match form {
        ExportForm::Transitions => Some(Row::Transition(Box::new(Transition { view, tools }))),
        ExportForm::Sft => conversation(view, tools),
        ExportForm::Preferences => preference(view, tools),
    }
}

/// An action that was refined to another, if the environment can read it.
fn refined(view: &TransitionView) -> Option<&String> {
    view.refinement.as_ref().filter(|_| view.changed == Some(true) && view.valid == Some(true))
}

fn conversation(view: TransitionView, tools: Option<String>) -> Option<Row> {
    // An imported action was taken, so some environment could read it.
    let readable = view.env_action.is_some() || view.generation_id.is_none();
    let approved = view.verdict == Some(Verdict::Yes) && readable;
    let said = refined(&view).cloned().or_else(|| approved.then(|| view.action.clone()))?;
    let mut messages = view.state;
    messages.push(Message::assistant(said));
    Some(Row::Conversation { messages, tools })
}

fn preference(view: TransitionView, tools: Option<String>) -> Option<Row> {
    let chosen = [Message::assistant(refined(&view)?.clone())];
    let rejected = [Message::assistant(view.action)];
    Some(Row::Preference { prompt: view.state, chosen, rejected, tools })
}
