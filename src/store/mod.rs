//! Every SQL statement, one file per table.
