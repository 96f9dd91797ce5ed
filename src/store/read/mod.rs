//! What the API and the page show: rows as they are sent, page by page. A page begins after a cursor
//! (the id of the last row seen) and holds `limit` rows.

pub mod annotations;
pub mod episodes;
pub mod jobs;
pub mod metrics;
pub mod observed;
pub mod transitions;
