//! Calls of models, and the episodes that they belong to. The calls wait in a file until the whole log is read; memory
//! holds where each one stands.

use std::{
    collections::HashMap,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Origin, assembly::Assembled};
use crate::experience::{
    context::Tool,
    message::{Message, Speaker},
};

/// Most calls of an episode: a longer one is rejected before it is read.
const MOST_CALLS: usize = 10_000;

/// A call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Call {
    /// Its own name: whatever has this name is this call.
    pub id: Option<String>,
    /// The response's own name, where it differs.
    pub response: Option<String>,
    /// The trace that it belongs to.
    pub trace: Option<String>,
    /// The conversation or session that it belongs to: it may have several traces.
    pub session: Option<String>,
    /// Whose messages come before its own.
    pub after: After,
    /// When it began, nanoseconds since 1970; 0 where the log does not say.
    pub at: i64,
    /// The model.
    pub model: Option<String>,
    /// What the model saw.
    pub messages: Vec<Message>,
    /// What the model said.
    pub reply: Message,
    /// What it could call.
    pub tools: Vec<Tool>,
    /// The reward that the record gives it.
    pub reward: Option<f64>,
    /// Solved or not, where the record says so.
    pub success: Option<bool>,
}

impl Call {
    /// A call that names nothing.
    pub fn of(messages: Vec<Message>, reply: Message) -> Self {
        Self {
            id: None,
            response: None,
            trace: None,
            session: None,
            after: After::Nothing,
            at: 0,
            model: None,
            messages,
            reply,
            tools: Vec::new(),
            reward: None,
            success: None,
        }
    }
}

/// What a call's own messages follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum After {
    /// Nothing: they are all that the model saw.
    Nothing,
    /// The messages and the reply of the call whose response has this name.
    Response(String),
    /// Those of the call before it in the conversation.
    Conversation,
}

/// A judgement of a call, a trace or a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Score {
    /// What is judged: a call's own name.
    pub call: Option<String>,
    /// A trace.
    pub trace: Option<String>,
    /// A session.
    pub session: Option<String>,
    /// What is measured.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Solved or not, where the score is one of these.
    pub success: Option<bool>,
    /// When it was given, nanoseconds since 1970.
    pub at: i64,
}

/// A call whose record holds no messages.
#[derive(Debug)]
pub(super) struct Bare {
    /// The response's name: the same call may stand in another record, with its messages.
    pub response: Option<String>,
    /// Why it cannot be used.
    pub reason: String,
}

#[derive(Serialize, Deserialize)]
enum Part {
    Call(Call),
    Score(Score),
}

/// What names an episode, or a part of it.
#[derive(Clone, Copy)]
enum Name<'a> {
    Call(&'a str),
    Response(&'a str),
    Trace(&'a str),
    Session(&'a str),
    /// A conversation up to and with a message of the model.
    Content(&'a [u8; 32]),
}

impl Name<'_> {
    /// Half of SHA-256: a log would need 2^64 names before two are likely to be taken for one.
    fn hash(self) -> u128 {
        let (kind, name) = match self {
            Self::Call(name) => (0, name.as_bytes()),
            Self::Response(name) => (1, name.as_bytes()),
            Self::Trace(name) => (2, name.as_bytes()),
            Self::Session(name) => (3, name.as_bytes()),
            Self::Content(hash) => (4, &hash[..]),
        };
        let hash = Sha256::new_with_prefix([kind]).chain_update(name).finalize();
        hash.iter().take(16).fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
    }
}

/// Where a part stands in the file.
#[derive(Clone, Copy)]
struct Stored {
    offset: u64,
    length: u32,
}

struct Group {
    origin: Origin,
    id: Option<Box<str>>,
    parts: Vec<Stored>,
}

struct Judged {
    origin: Origin,
    names: [Option<u128>; 3],
    stored: Stored,
}

/// The calls of a log by episode.
pub(super) struct Calls<S: Write> {
    store: BufWriter<S>,
    end: u64,
    groups: Vec<Group>,
    names: HashMap<u128, u32>,
    scores: Vec<Judged>,
    bare: Vec<(Origin, Bare)>,
}

impl<S: Read + Write + Seek> Calls<S> {
    /// None yet; they will wait in a store, which is empty.
    pub fn new(store: S) -> Self {
        Self {
            store: BufWriter::with_capacity(1 << 16, store),
            end: 0,
            groups: Vec::new(),
            names: HashMap::new(),
            scores: Vec::new(),
            bare: Vec::new(),
        }
    }

    /// Adds a call. One that is there already is passed over.
    pub fn call(&mut self, origin: Origin, call: Call) -> io::Result<()> {
        let own = call.id.as_deref().map(|id| Name::Call(id).hash());
        if own.is_some_and(|own| self.names.contains_key(&own)) {
            return Ok(());
        }
        let mut names: Vec<u128> = own.into_iter().collect();
        names.extend(call.response.as_deref().map(|name| Name::Response(name).hash()));
        let after = match &call.after {
            After::Response(name) => Some(Name::Response(name).hash()),
            _ => None,
        };
        let kept = [
            call.session.as_deref().map(|name| Name::Session(name).hash()),
            call.trace.as_deref().map(|name| Name::Trace(name).hash()),
        ];
        let mut group = kept.iter().flatten().chain(&after).find_map(|n| self.names.get(n));
        names.extend(kept.into_iter().flatten());
        if kept == [None, None] && after.is_none() {
            // Nothing names its episode: it goes on from the call whose messages and reply it repeats.
            let (before, whole) = conversations(&call);
            let said = before.iter().rev().map(|hash| Name::Content(hash).hash());
            group = said.into_iter().find_map(|n| self.names.get(&n));
            names.push(Name::Content(&whole).hash());
        }
        let group = group.copied().unwrap_or_else(|| {
            let id = call.session.as_deref().or(call.trace.as_deref()).map(Into::into);
            self.groups.push(Group { origin, id, parts: Vec::new() });
            (self.groups.len() - 1) as u32
        });
        for name in names {
            self.names.entry(name).or_insert(group);
        }
        let stored = self.store(&Part::Call(call))?;
        self.groups[group as usize].parts.push(stored);
        Ok(())
    }

    /// Adds a score. What it judges may come later.
    pub fn score(&mut self, origin: Origin, score: Score) -> io::Result<()> {
        let names = [
            score.call.as_deref().map(|name| Name::Call(name).hash()),
            score.trace.as_deref().map(|name| Name::Trace(name).hash()),
            score.session.as_deref().map(|name| Name::Session(name).hash()),
        ];
        let stored = self.store(&Part::Score(score))?;
        self.scores.push(Judged { origin, names, stored });
        Ok(())
    }

    /// Notes a call without messages.
    pub fn bare(&mut self, origin: Origin, bare: Bare) {
        self.bare.push((origin, bare));
    }

    fn store(&mut self, part: &Part) -> io::Result<Stored> {
        let text = serde_json::to_vec(part)?;
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        self.store.write_all(&text)?;
        let stored = Stored { offset: self.end, length };
        self.end += u64::from(length);
        Ok(stored)
    }

    /// Hands out each episode, in the order in which they began, and everything that belongs to none.
    pub fn finish(
        mut self,
        each: &mut dyn FnMut(Origin, Result<Assembled, String>) -> io::Result<()>,
    ) -> io::Result<()> {
        for (origin, bare) in std::mem::take(&mut self.bare) {
            let name = bare.response.as_deref().map(|name| Name::Response(name).hash());
            if !name.is_some_and(|name| self.names.contains_key(&name)) {
                each(origin, Err(bare.reason))?;
            }
        }
        for Judged { origin, names, stored } in std::mem::take(&mut self.scores) {
            match names.iter().flatten().find_map(|name| self.names.get(name)) {
                Some(group) => self.groups[*group as usize].parts.push(stored),
                None => each(origin, Err("it judges what is not in the log".into()))?,
            }
        }
        self.store.flush()?;
        let mut store = self.store.into_inner().map_err(io::IntoInnerError::into_error)?;
        for Group { origin, id, parts } in self.groups {
            let bytes: u64 = parts.iter().map(|part| u64::from(part.length)).sum();
            if parts.len() > 2 * MOST_CALLS || bytes > 2 * super::MOST_BYTES as u64 {
                let calls = parts.len();
                let reason = format!("its {calls} calls and scores have {bytes} bytes: too large");
                each(origin, Err(reason))?;
                continue;
            }
            let mut assembled = Assembled { id, calls: Vec::new(), scores: Vec::new() };
            for part in parts {
                match read(&mut store, part)? {
                    Part::Call(call) => assembled.calls.push(call),
                    Part::Score(score) => assembled.scores.push(score),
                }
            }
            each(origin, Ok(assembled))?;
        }
        Ok(())
    }
}

fn read(store: &mut (impl Read + Seek), part: Stored) -> io::Result<Part> {
    let mut text = vec![0; part.length as usize];
    store.seek(SeekFrom::Start(part.offset))?;
    store.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// The content of a conversation after each message of the model that a call repeats, and after its reply. How the
/// message is written, and whether it kept its reasoning, makes no difference.
fn conversations(call: &Call) -> (Vec<[u8; 32]>, [u8; 32]) {
    let mut content = Sha256::new();
    let mut before = Vec::new();
    for message in call.messages.iter().chain([&call.reply]) {
        for (kind, text) in message.said() {
            content.update([message.role as u8]);
            for part in [kind, &text] {
                content.update(part.len().to_le_bytes());
                content.update(part);
            }
        }
        if message.role == Speaker::Assistant {
            before.push(content.clone().finalize().into());
        }
    }
    let whole = before.pop().unwrap_or_default();
    (before, whole)
}
