//! Checks which page sent a request, and which addresses belong to this service.

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use tower_http::csrf::{CsrfLayer, ProtectionError};

use super::Hosts;
use crate::api::problem::{Problem, ProblemCode};

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Rejects changing requests from pages of other sites, because a browser sends cookies with any page's
/// requests. Pages under the names of `hosts` belong to the service, also behind a proxy that changes `Host`.
pub(in crate::api) fn csrf(
    hosts: &Hosts,
) -> CsrfLayer<impl FnMut(ProtectionError) -> Response + Clone + use<>> {
    let layer = hosts.origins().fold(CsrfLayer::new(), |layer, origin| {
        layer.clone().add_trusted_origin(origin).unwrap_or(layer)
    });
    layer.with_rejection_response(|_| {
        Problem::with_status(StatusCode::FORBIDDEN, "a page of another site sent this request")
            .code(ProblemCode::OtherSite)
            .remedy(
                "use the service's own pages; behind a proxy, keep the `Host` header or start the service with \
                 --allowed-host NAME",
            )
            .into_response()
    })
}

/// Whether the browser uses https, here or up to a proxy.
pub(in crate::api) fn is_https(headers: &HeaderMap) -> bool {
    let begins = |name, with| text(headers, name).is_some_and(|value| value.starts_with(with));
    begins("origin", "https://") || begins("x-forwarded-proto", "https")
}

/// A path on this service. Nothing that a browser could take for another host.
pub(in crate::api) fn path_here(path: &str) -> Option<&str> {
    let inside = path.strip_prefix('/')?;
    // Browsers read `\` as `/`, and ignore tabs and line ends.
    let safe =
        !inside.starts_with('/') && !path.contains(['\\']) && !path.contains(char::is_control);
    safe.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::path_here;

    #[test]
    fn a_way_back_stays_here() {
        for here in ["/", "/jobs/1?after=2", "/search?q=//x", "/a//b"] {
            assert_eq!(path_here(here), Some(here));
        }
        for away in [
            "",
            "jobs",
            "//evil",
            "/\\evil",
            "\\\\evil",
            "/\t/evil",
            "/a\n",
            "https://evil",
            "javascript:x",
        ] {
            assert_eq!(path_here(away), None, "{away:?}");
        }
    }
}
