//! What the API shows: pages of rows, newest first.
