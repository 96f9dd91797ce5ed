//! Postgres' wire protocol, as far as a relay has to know it.

use std::{collections::HashMap, io};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a message that begins with its length, such as the first one of a connection.
pub async fn unnamed(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    from.read_exact(&mut bytes).await?;
    let length = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    bytes.resize(length, 0);
    from.read_exact(&mut bytes[4..]).await?;
    Ok(bytes)
}

/// A message with its kind, length and content.
pub async fn message(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let kind = from.read_u8().await?;
    let mut bytes = vec![kind];
    bytes.extend(unnamed(from).await?);
    Ok(bytes)
}

/// A statement sent as text.
pub fn query(text: &str) -> Vec<u8> {
    let mut bytes = vec![b'Q'];
    bytes.extend((text.len() as u32 + 5).to_be_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
    bytes
}

/// What the server says when it has nothing more to say.
pub fn ready(status: u8) -> [u8; 6] {
    [b'Z', 0, 0, 0, 5, status]
}

/// Code and text of an error.
pub fn error(message: &[u8]) -> String {
    let fields = message[5..].split(|byte| *byte == 0).filter(|field| field.len() > 1);
    let mut said = String::new();
    for field in fields.filter(|field| matches!(field[0], b'C' | b'M')) {
        said = format!("{said} {}", String::from_utf8_lossy(&field[1..]));
    }
    said.trim().to_owned()
}

/// What a client asks for in one piece.
pub enum Request {
    /// A sign of life.
    Ping,
    /// A statement is prepared or forgotten, and not executed.
    Preparation(Vec<u8>),
    /// A statement is executed.
    Statement(Vec<u8>, Text),
    /// The client says good bye.
    Farewell,
}

/// What is known of a statement's text.
#[derive(Clone)]
pub struct Text {
    /// What people call it.
    pub name: String,
    /// It announces that something may be planned.
    pub plan: bool,
    /// It announces that something may be claimed.
    pub work: bool,
    /// It reads the catalogue for the client library.
    pub catalogue: bool,
}

impl Text {
    fn of(text: &str) -> Self {
        let name = text.trim().strip_prefix("-- ").unwrap_or(text.trim());
        let line = name.lines().next().unwrap_or_default().trim();
        Self {
            name: line.chars().take(48).collect(),
            plan: text.contains("'nlac_plan'"),
            work: text.contains("'nlac_work'"),
            catalogue: text.contains("pg_catalog."),
        }
    }
}

/// A mistake in a statement, as somebody could make it.
#[derive(Debug, Clone, Copy)]
pub struct Mistake {
    pub what: &'static str,
    /// The seed with which the search for a schedule that breaks begins.
    pub from: u64,
    /// The statement's name.
    pub statement: &'static str,
    pub right: &'static str,
    pub wrong: &'static str,
}

impl Mistake {
    /// The message that prepares a statement, with the mistake if it is this statement. What follows the text is no
    /// text.
    fn make(self, message: Vec<u8>) -> Vec<u8> {
        let end = message.iter().enumerate().filter(|(_, byte)| **byte == 0);
        let Some((end, _)) = end.skip_while(|(at, _)| *at < 5).nth(1) else { return message };
        let text = String::from_utf8_lossy(&message[5..end]);
        if !text.contains(&format!("-- {}\n", self.statement)) || !text.contains(self.right) {
            return message;
        }
        let text = text.replace(self.right, self.wrong);
        let mut wrong = vec![b'P'];
        wrong.extend(((4 + text.len() + message.len() - end) as u32).to_be_bytes());
        wrong.extend(text.as_bytes());
        wrong.extend(&message[end..]);
        wrong
    }
}

/// Reads what a client asks for. It remembers the statements that were prepared.
#[derive(Default)]
pub struct Reader {
    prepared: HashMap<Vec<u8>, Text>,
    mistake: Option<Mistake>,
}

impl Reader {
    pub fn making(mistake: Option<Mistake>) -> Self {
        Self { mistake, ..Self::default() }
    }

    pub async fn request(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<Request> {
        let (mut bytes, mut text, mut parts) = (Vec::new(), None, 0);
        loop {
            let mut message = message(from).await?;
            if let Some(mistake) = self.mistake.filter(|_| message[0] == b'P') {
                message = mistake.make(message);
            }
            let words = |at: usize| message[at..].split(|byte| *byte == 0);
            match message[0] {
                b'X' => return Ok(Request::Farewell),
                b'P' => {
                    let mut words = words(5);
                    let name = words.next().unwrap_or_default().to_vec();
                    let text = String::from_utf8_lossy(words.next().unwrap_or_default());
                    self.prepared.insert(name, Text::of(&text));
                }
                b'B' => {
                    let name = words(5).nth(1).unwrap_or_default();
                    text = self.prepared.get(name).cloned();
                }
                b'Q' => {
                    text = Some(Text::of(&String::from_utf8_lossy(&message[5..message.len() - 1])));
                }
                _ => {}
            }
            let last = matches!(message[0], b'S' | b'Q');
            parts += 1;
            bytes.extend(message);
            if last {
                break;
            }
        }
        Ok(match text {
            Some(text) => Request::Statement(bytes, text),
            None if parts == 1 => Request::Ping,
            None => Request::Preparation(bytes),
        })
    }
}
