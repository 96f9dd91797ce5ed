//! Leases: claim, heartbeat, complete, back off. Mechanism only.
