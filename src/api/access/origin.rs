//! Whose page sent a request, and which addresses are on this service.

use axum::http::{HeaderMap, header};

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a request that changes something comes from this service's own pages, or from no page at all. A
/// browser sends cookies with whatever any page asks for, so a cookie without a word of its origin is not enough.
pub(super) fn is_own(headers: &HeaderMap) -> bool {
    if headers.contains_key(header::AUTHORIZATION) {
        return true;
    }
    if let Some(site) = text(headers, "sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(headers, "origin") else {
        return !headers.contains_key(header::COOKIE);
    };
    let host = origin.split_once("://").map(|(_, host)| host);
    let ours = ["host", "x-forwarded-host"].map(|name| text(headers, name));
    host.is_some_and(|host| ours.iter().flatten().any(|ours| ours.eq_ignore_ascii_case(host)))
}

/// Whether the browser speaks https, here or to a proxy in front.
pub(super) fn is_https(headers: &HeaderMap) -> bool {
    let begins = |name, with| text(headers, name).is_some_and(|value| value.starts_with(with));
    begins("origin", "https://") || begins("x-forwarded-proto", "https")
}

/// A path on this service; nothing that a browser would take for another host.
pub(in crate::api) fn path_here(path: &str) -> Option<&str> {
    let inside = path.strip_prefix('/')?;
    // Browsers read `\` as `/`, and pass over tabs and line ends.
    let safe =
        !inside.starts_with('/') && !path.contains(['\\']) && !path.contains(char::is_control);
    safe.then_some(path)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::{is_own, path_here};

    fn sent(headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, axum::http::HeaderValue::from_static(value));
        }
        is_own(&map)
    }

    #[test]
    fn only_own_pages_and_programs_change_anything() {
        let (host, cookie) = (("host", "nlac.example:8470"), ("cookie", "nlac_session=x"));
        assert!(sent(&[host]));
        assert!(sent(&[host, cookie, ("sec-fetch-site", "same-origin")]));
        assert!(sent(&[host, cookie, ("origin", "https://nlac.example:8470")]));
        assert!(sent(&[
            ("host", "inside"),
            cookie,
            ("origin", "https://a.b"),
            ("x-forwarded-host", "a.b")
        ]));
        assert!(sent(&[host, cookie, ("authorization", "Bearer x")]));
        assert!(!sent(&[host, cookie]));
        assert!(!sent(&[host, cookie, ("sec-fetch-site", "same-site")]));
        assert!(!sent(&[
            host,
            ("sec-fetch-site", "cross-site"),
            ("origin", "https://nlac.example:8470")
        ]));
        assert!(!sent(&[host, cookie, ("origin", "https://nlac.example")]));
        assert!(!sent(&[host, ("origin", "https://evil.example")]));
        assert!(!sent(&[host, ("origin", "null")]));
    }

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
