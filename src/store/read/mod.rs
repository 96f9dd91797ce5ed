//! What the API and the pages read: rows joined from several tables, page by page. A page begins after a cursor
//! (the id of the last row seen) and holds `limit` rows. How a row looks on the wire is up to the API.

pub mod annotations;
pub mod episodes;
pub mod evaluations;
pub mod jobs;
pub mod metrics;
pub mod observed;
pub mod transitions;
