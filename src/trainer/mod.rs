//! Gradient steps on trainers that others host: the trait, the Tinker client, adapter files.
