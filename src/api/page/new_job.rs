//! A job before it exists: its spec as text, the settings that people change as a form, what is wrong with it
//! at its lines, and what it would take. The text is what is submitted; the form edits it.

use askama::Template;
use axum::{Form, extract::State, http::HeaderMap, response::Html};
use serde::Deserialize;
use serde_json::Value;

use super::{format, render, settings::Settings};
use crate::{
    api::{
        AppState, estimate,
        extract::Params,
        problem::Problem,
        submission::{self, Format, Mistake, Refused},
    },
    domain::ids::JobId,
    estimate::{Estimate, Figure, Outlook},
    store::read::jobs as read_jobs,
};

/// The examples that ship.
const EXAMPLES: &[(&str, &str)] = &[
    ("help-desk", include_str!("../../../examples/help-desk.yaml")),
    ("nlrl", include_str!("../../../examples/nlrl.yaml")),
    ("ppo", include_str!("../../../examples/ppo.yaml")),
    ("ppo-glam", include_str!("../../../examples/ppo-glam.yaml")),
    ("sac-glam", include_str!("../../../examples/sac-glam.yaml")),
    ("service-desk", include_str!("../../../examples/service-desk.yaml")),
    ("tool-desk", include_str!("../../../examples/tool-desk.yaml")),
    ("twenty-questions", include_str!("../../../examples/twenty-questions.yaml")),
];
/// Earlier jobs that can be started from.
const EARLIER: i64 = 50;

/// What a new job starts from.
#[derive(Deserialize)]
pub(super) struct Origin {
    /// An example's name or a job's id.
    from: Option<String>,
}

#[derive(Template)]
#[template(path = "new_job.html")]
struct Page {
    here: &'static str,
    origins: Vec<(String, String, bool)>,
    settings: Settings,
    editor: Editor,
    check: Check,
}

#[derive(Template)]
#[template(path = "new_job_editor.html")]
struct Editor {
    spec: String,
}

#[derive(Template)]
#[template(path = "new_job_check.html")]
struct Check {
    /// It is sent beside the part that was asked for.
    out_of_band: bool,
    mistakes: Vec<Mistake>,
    warnings: Vec<String>,
    rows: Vec<Row>,
    /// What figures are based on, and which those are.
    bases: Vec<(String, String)>,
    budgets: Vec<(Outlook, String)>,
    /// The same key submits once; another spec gets another key.
    key: String,
}

struct Row {
    title: &'static str,
    likely: String,
    range: String,
}

/// The page.
pub(super) async fn page(
    State(state): State<AppState>,
    Params(origin): Params<Origin>,
) -> Result<Html<String>, Problem> {
    let from = origin.from.unwrap_or_else(|| EXAMPLES[0].0.into());
    let mut conn = state.store.acquire().await?;
    let jobs = read_jobs::titles(&mut conn, from.parse().ok(), EARLIER).await?;
    drop(conn);
    let spec = match EXAMPLES.iter().find(|(name, _)| *name == from) {
        Some((_, text)) => (*text).to_owned(),
        None => {
            let id: JobId =
                from.parse().map_err(|_| Problem::not_found("example or job", &from))?;
            let job = super::job::found(&state, id).await?;
            submission::yaml(&submission::concise(&job.spec)).map_err(|error| {
                tracing::error!(%error, "a spec cannot be written");
                let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
                Problem::with_status(status, "the page is broken")
            })?
        }
    };
    let examples = EXAMPLES.iter().map(|(name, _)| ((*name).to_owned(), format!("example {name}")));
    let earlier = jobs.into_iter().map(|job| {
        let title = format!("{} of {}", job.name, format::minute(job.created_at));
        (job.id.to_string(), title)
    });
    let origins = examples.chain(earlier).map(|(value, title)| {
        let chosen = value == from;
        (value, title, chosen)
    });
    let (check, settings) = checked(&state, &spec).await?;
    let (origins, settings) = (origins.collect(), settings.unwrap_or_default());
    render(&Page { here: "/jobs/new", origins, settings, editor: Editor { spec }, check })
}

/// A spec as it is typed.
#[derive(Deserialize)]
pub(super) struct Typed {
    spec: String,
}

/// What is wrong with it or what it would take, and the form's fields as it sets them.
pub(super) async fn check(
    State(state): State<AppState>,
    Form(typed): Form<Typed>,
) -> Result<Html<String>, Problem> {
    let (check, settings) = checked(&state, &typed.spec).await?;
    let Html(mut html) = render(&check)?;
    // Where the text cannot be read, the fields stay as they are.
    if let Some(mut settings) = settings {
        settings.out_of_band = true;
        html += &render(&settings)?.0;
    }
    Ok(Html(html))
}

/// The text with the one setting changed that was touched, and what is said of it then.
pub(super) async fn edit(
    State(state): State<AppState>,
    headers: HeaderMap,
    Form(fields): Form<Vec<(String, String)>>,
) -> Result<Html<String>, Problem> {
    let touched = headers.get("hx-trigger-name").and_then(|name| name.to_str().ok());
    let of = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let mut spec = of("spec").unwrap_or_default().to_owned();
    if let Some((pointer, value)) = touched.and_then(|name| Some((name, of(name)?))) {
        let changes = Settings::changes(&state, pointer, value).await?;
        for (pointer, value) in changes {
            spec = submission::set(&spec, &pointer, &value).unwrap_or(spec);
        }
    }
    let (check, settings) = checked(&state, &spec).await?;
    let (Html(editor), Html(check)) =
        (render(&Editor { spec })?, render(&Check { out_of_band: true, ..check })?);
    let mut html = editor + &check;
    // A choice may change other fields; under a text that is being typed they stay as they are.
    if let Some(mut settings) = settings.filter(|_| touched.is_some_and(Settings::chosen)) {
        settings.out_of_band = true;
        html += &render(&settings)?.0;
    }
    Ok(Html(html))
}

async fn checked(state: &AppState, spec: &str) -> Result<(Check, Option<Settings>), Problem> {
    let value: Option<Value> = serde_yaml_ng::from_str(spec).ok();
    let settings = match value {
        Some(value) => Some(Settings::of(state, &value).await?),
        None => None,
    };
    let mut check = Check {
        out_of_band: false,
        mistakes: Vec::new(),
        warnings: Vec::new(),
        rows: Vec::new(),
        bases: Vec::new(),
        budgets: Vec::new(),
        key: JobId::new().to_string(),
    };
    match submission::read(state, spec, Format::Yaml).await {
        Ok(admitted) => {
            check.warnings = admitted.warnings;
            check.show(&estimate::of(state, &admitted.spec).await?);
        }
        Err(Refused::Problem(problem)) => return Err(problem),
        Err(Refused::Unreadable(mistake)) => check.mistakes = vec![mistake],
        Err(Refused::Mistaken(mistakes)) => check.mistakes = mistakes,
    }
    Ok((check, settings))
}

impl Check {
    fn show(&mut self, estimate: &Estimate) {
        let figures = [
            ("Iterations", &estimate.iterations),
            ("Episodes to learn from", &estimate.episodes),
            ("Held-out episodes", &estimate.held_out_episodes),
            ("Environment steps", &estimate.env_steps),
            ("Generation calls", &estimate.generation_calls),
            ("Prompt tokens read", &estimate.prompt_tokens),
            ("Tokens generated", &estimate.generated_tokens),
            ("Optimizer steps", &estimate.optimizer_steps),
            ("Tokens trained on", &estimate.trained_tokens),
            ("Wall time", &estimate.seconds),
            ("Cost", &estimate.cost),
        ];
        for (title, figure) in figures {
            let show = if title == "Wall time" { format::span } else { format::count };
            self.rows.push(row(title, figure, show));
            match self.bases.iter_mut().find(|(basis, _)| *basis == figure.basis) {
                Some((_, titles)) => *titles = format!("{titles}, {}", title.to_lowercase()),
                None => self.bases.push((figure.basis.clone(), title.to_owned())),
            }
        }
        let budgets = estimate.budgets.iter();
        self.budgets = budgets.map(|budget| (budget.outlook, budget.message.clone())).collect();
    }
}

fn row(title: &'static str, figure: &Figure, show: fn(f64) -> String) -> Row {
    let [likely, least, most] = [figure.likely, figure.least, figure.most].map(|v| v.map(show));
    let range = match (least, most) {
        (Some(least), Some(most)) if least == most => "exactly".into(),
        (Some(least), Some(most)) => format!("{least} – {most}"),
        (Some(least), None) if figure.least > Some(0.0) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        _ => "–".into(),
    };
    Row { title, likely: likely.unwrap_or_else(|| "not known".into()), range }
}
