//! The composition root: settings to every trait object, signals, the order of shutdown.
