//! The log subscriber and the metrics registry.
