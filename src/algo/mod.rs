//! What is asked of which weights, and which training examples come out. Pure over ports: no socket, no transaction.
