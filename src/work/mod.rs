//! One file per kind of work: load, compute, save in one transaction.
