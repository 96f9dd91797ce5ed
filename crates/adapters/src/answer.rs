//! The answer to an HTTP request for an archive: whole, or a range of it, so that a client can resume.

use std::{io::Read, ops::Range};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::Packed;

/// Bytes of a piece, and pieces that wait for a slow client.
const PIECE: usize = 256 << 10;
const AHEAD: usize = 4;

impl Packed {
    /// Answers a request. `etag` names exactly these bytes, without its quotation marks.
    pub fn answer(self, asked: &HeaderMap, etag: &str) -> Response {
        let whole = self.size();
        let quoted = format!("\"{etag}\"");
        let same = asked.get(header::IF_RANGE).is_none_or(|tag| *tag == *quoted);
        let range =
            asked.get(header::RANGE).filter(|_| same).and_then(|range| wanted(range, whole));
        let (status, range) = match range {
            None => (StatusCode::OK, 0..whole),
            Some(Some(range)) => (StatusCode::PARTIAL_CONTENT, range),
            Some(None) => {
                let headers = [(header::CONTENT_RANGE, format!("bytes */{whole}"))];
                return (StatusCode::RANGE_NOT_SATISFIABLE, headers).into_response();
            }
        };
        let mut answer = (status, self.body(range.clone())).into_response();
        let headers = answer.headers_mut();
        let mut set = |name, value: String| {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        };
        set(header::CONTENT_TYPE, "application/x-tar".into());
        set(header::ACCEPT_RANGES, "bytes".into());
        set(header::ETAG, quoted);
        set(header::CONTENT_LENGTH, (range.end - range.start).to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            let Range { start, end } = range;
            set(header::CONTENT_RANGE, format!("bytes {start}-{}/{whole}", end - 1));
        }
        answer
    }

    /// Reads on a thread that may block, as fast as the client takes it.
    fn body(self, range: Range<u64>) -> Body {
        let (pieces, stream) = mpsc::channel(AHEAD);
        tokio::task::spawn_blocking(move || {
            let mut part = match self.read(&range) {
                Ok(part) => part,
                Err(error) => return drop(pieces.blocking_send(Err(error))),
            };
            loop {
                let mut piece = Vec::with_capacity(PIECE);
                let read = (&mut part).take(PIECE as u64).read_to_end(&mut piece);
                let piece = match read {
                    Ok(0) => return,
                    Ok(_) => Ok(piece),
                    Err(error) => Err(error),
                };
                let last = piece.is_err();
                if pieces.blocking_send(piece).is_err() || last {
                    return;
                }
            }
        });
        Body::from_stream(ReceiverStream::new(stream))
    }
}

/// The range that a header asks for; within it none where the archive ends before. A header that asks for several
/// ranges, or for something else, asks for the whole.
fn wanted(header: &HeaderValue, whole: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = header.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", last) => whole.saturating_sub(last.parse().ok()?)..whole,
        (first, "") => first.parse().ok()?..whole,
        (first, last) => {
            first.parse().ok()?..last.parse::<u64>().ok()?.saturating_add(1).min(whole)
        }
    };
    Some(Some(range).filter(|range| range.start < range.end))
}

/// `sha-256=:…:` of a hash in hex, as a `Repr-Digest` (RFC 9530) has it.
#[must_use]
pub fn repr_digest(sha256: &str) -> String {
    use base64::prelude::{BASE64_STANDARD, Engine};
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Vec<u8> = sha256.as_bytes().chunks_exact(2).filter_map(byte).collect();
    format!("sha-256=:{}:", BASE64_STANDARD.encode(bytes))
}
