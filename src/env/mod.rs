//! Environments: the trait and each kind.
