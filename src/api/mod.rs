//! HTTP in and out: reads the store, enqueues. Never algorithms, engines, trainers or environments.
