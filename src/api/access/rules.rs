//! What each route needs. Routes of the API need what their tag says, pages what they are declared with; what
//! neither names needs `admin`.

use std::collections::HashMap;

use axum::http::Method;
use utoipa::openapi::{
    Content, OpenApi, Ref, Response, ResponseBuilder,
    path::{Operation, PathItem},
    security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
};

use crate::domain::access::Scope;

/// What reading and changing things of a tag needs.
const TAGS: &[(&str, Scope, Scope)] = &[
    ("jobs", Scope::Read, Scope::Submit),
    ("experience", Scope::Read, Scope::Submit),
    ("gateway", Scope::Read, Scope::Submit),
    ("critic", Scope::Read, Scope::Submit),
    ("datasets", Scope::Read, Scope::Submit),
    ("prompts", Scope::Read, Scope::Submit),
    ("peers", Scope::Read, Scope::Operate),
    ("access", Scope::Admin, Scope::Admin),
    ("service", Scope::Read, Scope::Admin),
];

/// Operations that need no API key: what probes ask for, the contract, and what agents call. Those show a key of an
/// agent's or an episode's, which the route itself looks at.
const OPEN: &[&str] = &[
    "healthz",
    "readyz",
    "openapi",
    "create_chat_completion",
    "create_response",
    "create_message",
    "count_message_tokens",
    "list_models",
];

/// What a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Access {
    /// Nothing.
    Open,
    /// A key with this scope.
    Needs(Scope),
}

/// A route's rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct Rule {
    pub access: Access,
    /// It is looked at by people: they are led to the sign-in.
    pub page: bool,
}

/// What every route needs.
pub(in crate::api) struct Rules {
    api: HashMap<(Method, String), Access>,
    pages: HashMap<&'static str, Access>,
}

impl Rules {
    /// Of the routes that a document describes, and of pages.
    pub fn new(
        document: &mut OpenApi,
        pages: impl IntoIterator<Item = (&'static str, Access)>,
    ) -> Self {
        let mut api = HashMap::new();
        for (path, item) in &mut document.paths.paths {
            // What stands behind a parameter is told apart by the route's handler.
            let route =
                path.split_once("}:").map_or(path.clone(), |(route, _)| format!("{route}}}"));
            for (method, operation) in operations(item) {
                api.insert((method.clone(), route.clone()), access(&method, operation));
            }
        }
        Self { api, pages: pages.into_iter().collect() }
    }

    /// What a route needs.
    pub fn of(&self, method: &Method, path: &str) -> Rule {
        if let Some(access) = self.pages.get(path) {
            return Rule { access: *access, page: true };
        }
        let method = if *method == Method::HEAD { Method::GET } else { method.clone() };
        let access = self.api.get(&(method, path.to_owned()));
        Rule { access: access.copied().unwrap_or(Access::Needs(Scope::Admin)), page: false }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [
        (Method::GET, get),
        (Method::PUT, put),
        (Method::POST, post),
        (Method::DELETE, delete),
        (Method::PATCH, patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| operation.as_mut().map(|operation| (method, operation)))
}

fn access(method: &Method, operation: &Operation) -> Access {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    if OPEN.contains(&id) {
        return Access::Open;
    }
    let tag = operation.tags.iter().flatten().next();
    let rule = TAGS.iter().find(|(name, ..)| tag.is_some_and(|tag| tag == name));
    Access::Needs(match rule {
        Some((_, read, _)) if *method == Method::GET => *read,
        Some((_, _, change)) => *change,
        None => Scope::Admin,
    })
}

/// Writes into the document what each route needs, and what it answers to those who lack it.
pub(in crate::api) fn declare(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for (method, operation) in operations(item) {
            let Access::Needs(needed) = access(&method, operation) else { continue };
            let by = |scheme| SecurityRequirement::new(scheme, [needed.as_str()]);
            operation.security = Some(vec![by("api_key"), by("session")]);
            for (status, name, _) in REFUSALS {
                let answer = Ref::from_response_name(name);
                operation.responses.responses.insert(status.into(), answer.into());
            }
        }
    }
    let components = document.components.get_or_insert_default();
    for (_, name, description) in REFUSALS {
        components.responses.insert(name.into(), refusal(description).into());
    }
    let scopes = "`read` sees everything but keys and the audit log; `submit` controls jobs and deletes those that \
                  are over, imports datasets and deletes those that no job under way names, gives rewards, pushes \
                  and deletes prompt sets, opens and ends episodes of agents, makes webhooks and asks the critic; `operate` registers engines and \
                  trainers, drains and resumes replicas; `admin` makes keys and reads the audit log. All include \
                  `read`, `admin` includes all. Nothing of this is asked for while sign-in is off, as it is by \
                  default on loopback.";
    let bearer = Http::builder().scheme(HttpAuthScheme::Bearer).description(Some(scopes)).build();
    let cookie = ApiKeyValue::with_description("nlac_session", "What /sign-in sets for the pages");
    for (name, scheme) in [
        ("api_key", SecurityScheme::Http(bearer)),
        ("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie))),
    ] {
        components.security_schemes.insert(name.into(), scheme.into());
    }
}

/// What any route that needs a scope may answer.
const REFUSALS: [(&str, &str, &str); 3] = [
    ("401", "SignInNeeded", "No API key, or one that is unknown, expired or revoked"),
    ("403", "NotAllowed", "The key lacks the scope, or another site's page sent the request"),
    ("429", "TooManyRequests", "The key asks too often; Retry-After says how many seconds to wait"),
];

fn refusal(description: &str) -> Response {
    let problem = Content::new(Some(Ref::from_schema_name("Problem")));
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", problem)
        .build()
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::{Access, OPEN, Rules, Scope, TAGS, operations};

    #[test]
    fn every_route_of_the_api_has_a_rule_and_every_rule_a_route() {
        let mut document = crate::api::document();
        let (mut ids, mut tags) = (Vec::new(), Vec::new());
        for (path, item) in &mut document.paths.paths {
            for (method, operation) in operations(item) {
                let tag = operation.tags.iter().flatten().next().cloned().unwrap_or_default();
                assert!(
                    TAGS.iter().any(|(name, ..)| *name == tag),
                    "{method} {path}: say in TAGS what tag {tag:?} needs"
                );
                tags.push(tag);
                ids.extend(operation.operation_id.clone());
            }
        }
        for (tag, ..) in TAGS {
            assert!(tags.iter().any(|used| used == tag), "no route has tag {tag}");
        }
        for id in OPEN {
            assert!(ids.iter().any(|used| used == id), "no operation is called {id}");
        }
    }

    #[test]
    fn what_no_rule_names_needs_admin() {
        let rules = Rules::new(&mut crate::api::document(), []);
        let access = |method, path| rules.of(&method, path).access;
        assert_eq!(access(Method::GET, "/v1/jobs"), Access::Needs(Scope::Read));
        assert_eq!(access(Method::HEAD, "/v1/jobs"), Access::Needs(Scope::Read));
        assert_eq!(access(Method::GET, "/healthz"), Access::Open);
        assert_eq!(access(Method::POST, "/healthz"), Access::Needs(Scope::Admin));
        assert_eq!(access(Method::GET, "/new"), Access::Needs(Scope::Admin));
    }
}
