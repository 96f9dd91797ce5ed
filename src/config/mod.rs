//! Settings of the service, by section.
