//! A connection between a simulated process and Postgres: every statement waits on the board, before Postgres sees it
//! and, if the schedule wants that, before the process sees the answer.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::{
    board::{AtPostgres, Board, Delivery, Line, Passage, What, instant},
    wire::{self, Mistake, Reader, Request, Text},
};

/// Relays the connections of a process until the end of the test.
pub async fn relay(
    board: Arc<Board>,
    process: usize,
    listener: UnixListener,
    server: PathBuf,
    mistake: Option<Mistake>,
) {
    for number in 0.. {
        let Ok((client, _)) = listener.accept().await else { return };
        board.change(|state| state.connecting += 1);
        let id = number * 100 + process as u64;
        let (board, server) = (board.clone(), server.clone());
        tokio::spawn(async move {
            let relayed = Relay::connect(&board, (id, process), client, &server).await;
            board.change(|state| state.connecting -= 1);
            if let Ok(mut relay) = relayed {
                relay.reader = Reader::making(mistake);
                let _ = relay.run().await;
                // A process that is gone takes its transaction with it.
                let _ = relay.roll_back().await;
                board.change(|state| drop(state.lines.remove(&id)));
            }
        });
    }
}

struct Relay {
    board: Arc<Board>,
    id: u64,
    process: usize,
    client: (BufReader<OwnedReadHalf>, OwnedWriteHalf),
    server: (BufReader<OwnedReadHalf>, OwnedWriteHalf),
    reader: Reader,
    status: u8,
    /// The time that the server was told last.
    told: Option<Duration>,
    /// What the open transaction announces when it ends: something to plan, something to claim.
    announces: (bool, bool),
}

impl Relay {
    /// Passes on what both say until the client is signed in.
    async fn connect(
        board: &Arc<Board>,
        (id, process): (u64, usize),
        client: UnixStream,
        server: &Path,
    ) -> io::Result<Self> {
        let (read, mut to_client) = client.into_split();
        let mut from_client = BufReader::new(read);
        let (read, mut to_server) = UnixStream::connect(server).await?.into_split();
        let mut from_server = BufReader::new(read);
        to_server.write_all(&wire::unnamed(&mut from_client).await?).await?;
        let mut pid = 0;
        loop {
            let message = wire::message(&mut from_server).await?;
            to_client.write_all(&message).await?;
            let number = |at: usize| message[at..at + 4].try_into().map(i32::from_be_bytes);
            match message[0] {
                // 0: signed in; 12: the last word of the server.
                b'R' if !matches!(number(5), Ok(0 | 12)) => {
                    to_server.write_all(&wire::message(&mut from_client).await?).await?;
                }
                b'K' => pid = number(5).unwrap_or_default(),
                b'E' => return Err(io::Error::other(wire::error(&message))),
                b'Z' => break,
                _ => {}
            }
        }
        board.change(|state| {
            state.lines.insert(id, Line { process, pid, asked: None, waited: false });
        });
        Ok(Self {
            board: board.clone(),
            id,
            process,
            client: (from_client, to_client),
            server: (from_server, to_server),
            reader: Reader::default(),
            status: b'I',
            told: None,
            announces: (false, false),
        })
    }

    async fn run(&mut self) -> io::Result<()> {
        loop {
            let request = self.reader.request(&mut self.client.0).await?;
            // Signs of life are no steps, but something moves.
            self.board.change(|_| ());
            let dead = self.board.state().dead.contains(&self.process);
            match request {
                Request::Farewell => return Ok(()),
                Request::Ping => {
                    if dead {
                        // A process that dies while it begins a transaction does not know that it is in one.
                        self.roll_back().await?;
                    } else if self.status != b'I' {
                        self.board
                            .violated("a connection within a transaction is given back".into());
                    }
                    self.client.1.write_all(&wire::ready(self.status)).await?;
                }
                Request::Preparation(bytes) => self.pass(&bytes, "preparation").await?,
                Request::Statement(bytes, text) if dead || text.catalogue => {
                    self.pass(&bytes, &text.name).await?;
                }
                Request::Statement(bytes, text) => {
                    if !self.decided(&bytes, text).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Does with a statement what the schedule decides; false if the connection broke.
    async fn decided(&mut self, bytes: &[u8], text: Text) -> io::Result<bool> {
        let name = text.name.clone();
        let board = self.board.clone();
        let passage = board.ask(self.process, |go| What::Statement { name, go }).await;
        let hold = match passage {
            Some(Passage::Send { hold }) => hold,
            Some(Passage::Drop) => {
                self.client.1.write_all(&wire::ready(self.status)).await?;
                return Ok(true);
            }
            Some(Passage::Cut) | None => return Ok(false),
        };
        let answer = self.exchange(bytes, &text.name).await?;
        self.announces = (self.announces.0 | text.plan, self.announces.1 | text.work);
        if self.status == b'I' {
            self.announce();
        }
        // A statement that waited for a lock gets a decision of its own, because the process that released the lock
        // continues at the same moment.
        let waited = board.state().lines.get(&self.id).is_some_and(|line| line.waited);
        if hold || waited {
            let name = text.name.clone();
            let delivery = board.ask(self.process, |go| What::Answer { name, go }).await;
            if delivery != Some(Delivery::Arrive) {
                return Ok(false);
            }
        }
        self.client.1.write_all(&answer).await?;
        Ok(true)
    }

    /// Tells those who plan and those who claim, as the end of a transaction does.
    fn announce(&mut self) {
        let (plan, work) = std::mem::take(&mut self.announces);
        self.board.change(|state| {
            state.plan |= plan;
            state.work_unknown |= work;
        });
    }

    async fn pass(&mut self, bytes: &[u8], name: &str) -> io::Result<()> {
        let answer = self.exchange(bytes, name).await?;
        self.client.1.write_all(&answer).await
    }

    async fn roll_back(&mut self) -> io::Result<()> {
        if self.status != b'I' {
            self.exchange(&wire::query("rollback"), "rollback").await?;
        }
        Ok(())
    }

    /// Asks Postgres, and returns the answer.
    async fn exchange(&mut self, bytes: &[u8], name: &str) -> io::Result<Vec<u8>> {
        self.board.change(|state| {
            if let Some(line) = state.lines.get_mut(&self.id) {
                line.asked = Some((AtPostgres::Running, name.to_owned()));
                line.waited = false;
            }
        });
        let now = self.board.state().now;
        // A transaction has one time, that of its beginning.
        if self.status == b'I' && self.told != Some(now) {
            self.told = Some(now);
            let set = format!("set sim.now = '{}'", stamp(now));
            self.server.1.write_all(&[&wire::query(&set), bytes].concat()).await?;
            self.until_ready().await?;
        } else {
            self.server.1.write_all(bytes).await?;
        }
        let answer = self.until_ready().await;
        self.board.change(|state| {
            if let Some(line) = state.lines.get_mut(&self.id) {
                line.asked = None;
            }
            if self.status != b'T' {
                state.released();
            }
        });
        let (answer, error) = answer?;
        let dead = self.board.state().dead.contains(&self.process);
        if let Some(error) = error
            && !dead
        {
            self.board.violated(format!("Postgres rejects {name}: {error}"));
        }
        Ok(answer)
    }

    async fn until_ready(&mut self) -> io::Result<(Vec<u8>, Option<String>)> {
        let (mut answer, mut error) = (Vec::new(), None);
        loop {
            let message = wire::message(&mut self.server.0).await?;
            if message[0] == b'E' {
                error = Some(wire::error(&message));
            }
            let last = message[0] == b'Z';
            if last {
                self.status = message[5];
            }
            answer.extend(message);
            if last {
                return Ok((answer, error));
            }
        }
    }
}

/// A time of the schedule as Postgres reads it.
pub fn stamp(now: Duration) -> String {
    let at = instant(now);
    let (hour, minute, second, micro) = at.time().as_hms_micro();
    format!("{} {hour:02}:{minute:02}:{second:02}.{micro:06}+00", at.date())
}
