//! What should exist next: reconcilers without input. Enqueues, never computes.
