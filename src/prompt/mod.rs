//! Prompt templates, strict rendering, content hashes, reply parsing.
