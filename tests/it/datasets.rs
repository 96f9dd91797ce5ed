//! Logged episodes: imported line by line, learnt from without a rollout, annotated anew by a newer
//! critic.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Place, Service, free_port, small_job};

/// `nlac import`, with what it said.
async fn import(service: &Service, file: &std::path::Path) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nlac"));
    command.arg("import").arg(file).args(["--dataset", "desk", "--server", &service.url]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.success(), said.concat())
}

/// What a job collected, as somebody else's log: plain chat messages and a return.
async fn log_of(service: &Service, id: &str) -> Vec<String> {
    let (_, page) = service.get(&format!("/v1/jobs/{id}/episodes?purpose=collect&limit=200")).await;
    let episodes = page["data"].as_array().unwrap();
    episodes
        .iter()
        .map(|e| {
            let (messages, task) = (&e["contexts"][0]["messages"], &e["task"]);
            json!({ "task": task, "messages": messages, "return": e["return"], "success": e["success"] })
                .to_string()
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_learns_from_imported_episodes_alone() {
    let service = Service::start().await;
    let (_, job) = service.post("/v1/jobs", &small_job()).await;
    let online = job["id"].as_str().unwrap().to_owned();
    assert_eq!(service.finished(&online).await["status"], "succeeded");
    let mut lines = log_of(&service, &online).await;
    let episodes = lines.len();
    assert!(episodes >= 20);
    let distinct: std::collections::HashSet<_> = lines.iter().cloned().collect();

    // Nothing is imported before the dataset is there.
    let mut spec = small_job();
    spec["rollout"]["episodes"] = 0.into();
    spec["datasets"] = json!(["desk"]);
    spec["budget"]["iterations"] = 3.into();
    let (status, problem) = service.post("/v1/jobs", &spec).await;
    assert_eq!(status, 422);
    assert!(problem["remedy"].as_str().unwrap().contains("nlac import"), "{problem}");

    // Bad lines are refused by number and reason; the good ones around them are stored.
    lines.insert(3, "{ not json".into());
    lines.insert(7, r#"{"messages": [{"role": "user", "content": "hi"}], "return": 1}"#.into());
    lines.insert(9, String::new());
    let place = Place::new();
    let file = place.path().join("log.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let (ok, said) = import(&service, &file).await;
    assert!(ok, "{said}");
    assert!(said.contains(":4: refused: key must be"), "{said}");
    assert!(said.contains(":8: refused: there is no message of the assistant"), "{said}");
    let repeats = episodes - distinct.len();
    let stored = distinct.len();
    let outcome = format!("{stored} episodes stored, {repeats} were there already, 2 refused");
    assert!(said.contains(&outcome), "{said}");
    let (ok, said) = import(&service, &file).await;
    assert!(ok && said.contains(&format!("0 episodes stored, {episodes} were there")), "{said}");

    let (status, job) = service.post("/v1/jobs", &spec).await;
    assert_eq!(status, 201, "{job}");
    let id = job["id"].as_str().unwrap().to_owned();
    let job = service.finished(&id).await;
    assert_eq!(job["status"], "succeeded", "{job}");
    let (_, page) = service.get(&format!("/v1/jobs/{id}/metrics")).await;
    let env_steps: Vec<&Value> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["name"] == "collect.env_steps")
        .collect();
    assert!(env_steps.iter().all(|m| m["value"] == 0.0), "no rollout of its own: {env_steps:?}");

    let job: Uuid = id.parse().unwrap();
    let mut conn = service.app.store.acquire().await.unwrap();
    let count = async |conn: &mut sqlx::PgConnection, sql: &'static str| -> i64 {
        sqlx::query_scalar(sql).bind(job).fetch_one(conn).await.unwrap()
    };
    let linked = "select count(*) from replay where job_id = $1 and step = 0";
    assert_eq!(count(&mut conn, linked).await, stored as i64);
    let steps = "select count(*) from train_steps where job_id = $1 and state = 'applied'";
    assert!(count(&mut conn, steps).await > 0);
    // A later iteration's critic annotates the same transitions again; what was said before stays.
    let anew = "select count(*) from (select transition_id from targets where job_id = $1
        group by transition_id having count(distinct iteration_id) > 1) t";
    assert!(count(&mut conn, anew).await > 0);
    // The tokens of an imported action are those that the engine would have written.
    let compared: (i64, i64) = sqlx::query_as(
        "select count(*) filter (where x.completion_tokens = g.token_ids), count(*)
         from training_examples x join transitions a on a.id = x.transition_id
         join transitions b on b.action = a.action join generations g on g.id = b.generation_id
         where x.job_id = $1 and x.source = 'action' and g.job_id = $2 and g.finish_reason = 'stop'",
    )
    .bind(job)
    .bind(online.parse::<Uuid>().unwrap())
    .fetch_one(&mut *conn)
    .await
    .unwrap();
    assert!(compared.1 > 0 && compared.0 == compared.1, "{compared:?}");
    drop(conn);

    let (_, listed) = service.get("/v1/datasets").await;
    assert_eq!(listed["data"][0]["episodes"], stored as i64);
    let (status, problem) = service.post("/v1/datasets/desk/episodes", &json!({})).await;
    assert_eq!(status, 415, "{problem}");
    service.stop().await;
}

/// A process that does not outlive a test that fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `nlac serve` with nothing but its Postgres.
fn serve(place: &Place, port: u16) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nlac"));
    command
        .args(["serve", "--no-local", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"])
        .arg(place.path().join("data"))
        .env_remove("DATABASE_URL")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Process(command.spawn().unwrap())
}

/// The dataset as it is listed, once the service answers; null while there is none.
async fn listed(port: u16) -> Value {
    let http = crate::support::http();
    for _ in 0..600 {
        let answer = http.get(format!("http://127.0.0.1:{port}/v1/datasets")).send().await;
        if let Ok(answer) = answer {
            return answer.json::<Value>().await.unwrap()["data"][0].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("no service after a minute");
}

/// The most memory that a process has held, MiB; none of one that has just ended.
fn peak(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_transitions_survive_a_kill_and_none_is_doubled() {
    const EPISODES: usize = 25_000;
    let place = Place::new();
    let file = place.path().join("log.jsonl");
    let lines: Vec<String> = (0..EPISODES)
        .map(|episode| {
            let mut messages = vec![json!({ "role": "user", "content": format!("request {episode}") })];
            for step in 0..4 {
                messages.push(json!({ "role": "assistant", "content": format!("what is your item {step} ?") }));
                messages.push(json!({ "role": "user", "content": "here it is ".repeat(20) }));
            }
            json!({ "messages": messages, "return": episode % 2 }).to_string()
        })
        .collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    drop(lines);

    let port = free_port();
    let import = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nlac"));
        command
            .arg("import")
            .arg(&file)
            .args(["--dataset", "log", "--server", &format!("http://127.0.0.1:{port}")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        Process(command.spawn().unwrap())
    };
    let server = serve(&place, port);
    assert_eq!(listed(port).await, Value::Null);
    let mut first = import();
    let before = loop {
        let stored = listed(port).await["episodes"].as_u64().unwrap_or(0) as usize;
        if stored > 0 {
            break stored;
        }
        assert!(first.0.try_wait().unwrap().is_none(), "the import ended before anything was seen");
    };
    drop(server);
    drop(first);
    assert!(before < EPISODES, "it was killed in the middle");

    let mut server = serve(&place, port);
    let kept = listed(port).await["episodes"].as_u64().unwrap() as usize;
    assert!(kept >= before, "what was answered for is kept: {kept} of {before}");
    let mut again = import();
    let mut watched = 0;
    while again.0.try_wait().unwrap().is_none() {
        watched = watched.max(peak(&again.0).unwrap_or(0));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let mut said = String::new();
    std::io::Read::read_to_string(again.0.stdout.as_mut().unwrap(), &mut said).unwrap();
    let rest = EPISODES - kept;
    assert!(said.contains(&format!("{rest} episodes stored, {kept} were there")), "{said}");
    let dataset = listed(port).await;
    assert_eq!(dataset["episodes"], EPISODES);
    assert_eq!(dataset["transitions"], 4 * EPISODES);
    // Five pieces of 4 MiB went through; the service holds a few of them at a time.
    let served = peak(&server.0).unwrap();
    assert!(watched > 0 && watched < 128 && served < 256, "{served} MiB, {watched} MiB");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(server.0.id().cast_signed()),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    assert!(server.0.wait().unwrap().success());
}

/// What rejection fine-tuning imitates: each action in a state once, and no task more often than it may.
#[tokio::test(flavor = "multi_thread")]
async fn successes_are_imitated_once_and_no_task_crowds_out_the_others() {
    use nlac::{
        domain::ids::{JobId, TransitionId},
        store::transitions::{Successes, load, of_successes},
    };
    let service = Service::start().await;
    let mut spec = small_job();
    spec["budget"]["iterations"] = 1.into();
    spec["rollout"]["episodes"] = 40.into();
    let (_, job) = service.post("/v1/jobs", &spec).await;
    let id = job["id"].as_str().unwrap().to_owned();
    assert_eq!(service.finished(&id).await["status"], "succeeded");
    let job = JobId(id.parse().unwrap());
    let mut conn = service.app.store.acquire().await.unwrap();
    // As if all of them had been solved.
    sqlx::query("update episodes set success = true").execute(&mut *conn).await.unwrap();
    let mut steps = async |per_task: u32, deduplicate: bool| {
        let which = Successes { newest: 1000, per_task, deduplicate };
        let ids: Vec<TransitionId> = of_successes(&mut conn, job, which).await.unwrap();
        load(&mut conn, &ids).await.unwrap()
    };
    let said = |steps: &[nlac::store::transitions::Loaded]| -> Vec<String> {
        let of = |loaded: &nlac::store::transitions::Loaded| {
            format!("{:?} {}", loaded.state.messages(), loaded.transition.action)
        };
        steps.iter().map(of).collect()
    };
    let all = said(&steps(1000, false).await);
    let once = said(&steps(1000, true).await);
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert!(distinct.len() < all.len(), "some were said twice");
    assert_eq!(once.len(), distinct.len());
    assert_eq!(once.iter().collect::<std::collections::BTreeSet<_>>(), distinct);
    // Four kinds of request.
    let capped = steps(2, false).await;
    let episodes: std::collections::BTreeSet<_> =
        capped.iter().map(|loaded| loaded.transition.episode_id).collect();
    assert!((4..=8).contains(&episodes.len()), "{}", episodes.len());
    drop(conn);
    service.stop().await;
}
