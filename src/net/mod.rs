//! The only HTTP client: deadlines, bounded retries, redaction.
