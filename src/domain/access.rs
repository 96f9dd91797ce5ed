//! Who asks, and what they may do.

use rand::{TryRngCore, rngs::OsRng};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    ids::{KeyId, SessionId},
    text_enum::text_enum,
};

text_enum!(
    /// What a key may do. All others include `read`; `admin` includes all.
    Scope {
        /// See everything but keys and the audit log.
        Read = "read",
        /// Submit and control jobs, delete those that are over, import and delete datasets, give rewards, push and
        /// delete prompt sets, make webhooks, ask the critic.
        Submit = "submit",
        /// Register engines and trainers, drain and resume replicas.
        Operate = "operate",
        /// Make and revoke keys, read the audit log.
        Admin = "admin",
    }
);

/// What a key may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Scopes(pub Vec<Scope>);

impl Scopes {
    /// Whether they are enough.
    #[must_use]
    pub fn cover(&self, needed: Scope) -> bool {
        let covers =
            |scope: &Scope| *scope == needed || *scope == Scope::Admin || needed == Scope::Read;
        self.0.iter().any(covers)
    }

    /// As words.
    #[must_use]
    pub fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|scope| scope.as_str()).collect()
    }
}

impl TryFrom<Vec<String>> for Scopes {
    type Error = String;

    fn try_from(words: Vec<String>) -> Result<Self, String> {
        words.iter().map(|word| word.parse()).collect::<Result<_, _>>().map(Self)
    }
}

/// Who asks.
#[derive(Debug, Clone)]
pub struct Actor {
    /// The key; none while sign-in is off, and for what this process asks of itself.
    pub key: Option<KeyId>,
    /// The session, if a page's cookie brought the key.
    pub session: Option<SessionId>,
    /// The key's name.
    pub name: String,
    /// What they may do.
    pub scopes: Scopes,
}

/// The name of who asks where nobody signs in. No key has it.
pub const LOCAL: &str = "local";

/// Who creates what ships with nlac, such as its prompt sets. No key has this name.
pub const PROGRAM: &str = "nlac";

impl Actor {
    /// Whoever reaches a service without sign-in: they may do everything.
    #[must_use]
    pub fn local() -> Self {
        let scopes = Scopes(vec![Scope::Admin]);
        Self { key: None, session: None, name: LOCAL.into(), scopes }
    }
}

/// A key or a session's cookie, in clear. It is shown to its owner once and kept nowhere; [`Secret::hash`] is.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// 256 bits of the operating system's chance.
    ///
    /// # Errors
    /// A system without any.
    pub fn random() -> Result<Self, rand::rand_core::OsError> {
        let mut bytes = [0_u8; 32];
        OsRng.try_fill_bytes(&mut bytes)?;
        Ok(Self::of(&bytes))
    }

    /// Of bytes that nobody can guess.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("nlac_{hex}"))
    }

    /// What is stored of it. A random secret cannot be found by trying, so a fast hash is enough.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }

    /// Its first characters, to recognise it by.
    #[must_use]
    pub fn prefix(&self) -> String {
        self.0.chars().take(12).collect()
    }

    /// Whether one that a person made can be used: long, and of characters that a header holds.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.0.len() >= 32 && self.0.chars().all(|c| c.is_ascii_graphic())
    }

    /// In clear, for its owner.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, Scopes, Secret};

    #[test]
    fn scopes_include_reading_and_admin_includes_all() {
        let covered = |scope| {
            Scope::ALL.iter().map(|needed| Scopes(vec![scope]).cover(*needed)).collect::<Vec<_>>()
        };
        assert_eq!(covered(Scope::Read), [true, false, false, false]);
        assert_eq!(covered(Scope::Submit), [true, true, false, false]);
        assert_eq!(covered(Scope::Operate), [true, false, true, false]);
        assert_eq!(covered(Scope::Admin), [true; 4]);
        assert!(!Scopes(Vec::new()).cover(Scope::Read));
    }

    #[test]
    fn a_secret_is_long_new_each_time_and_not_shown_by_accident() {
        let (Ok(one), Ok(other)) = (Secret::random(), Secret::random()) else {
            panic!("the system has no chance to give");
        };
        assert!(one.is_usable() && one.reveal().len() == 69);
        assert_ne!(one.reveal(), other.reveal());
        assert!(!format!("{one:?}").contains(&one.reveal()[5..]));
        assert!(!Secret::from("short".to_owned()).is_usable());
    }
}
