//! Generation on engines that others host: the trait, the wire, the pool.
