//! page
use axum::response::Html;
pub(super) async fn list() -> Html<&'static str> { Html("") }
pub(super) async fn job() -> Html<&'static str> { Html("") }
pub(super) async fn live() -> Html<&'static str> { Html("") }
pub(super) async fn list_live() -> Html<&'static str> { Html("") }
pub(super) async fn asset() -> Html<&'static str> { Html("") }
