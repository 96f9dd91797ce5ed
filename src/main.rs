//! tmp
use nlac::{app::*, domain::{clock::*, ids::*, job::*}, store::*};
#[tokio::main]
async fn main() {
    nlac::telemetry::init_logs("warn");
    let a: Vec<String> = std::env::args().collect();
    let spec: nlac::domain::spec::JobSpec = serde_json::from_str(&std::fs::read_to_string(&a[1]).unwrap()).unwrap();
    let settings = ServiceSettings { listen: ([127,0,0,1],0).into(), data_dir: a[2].clone().into(), ..Default::default() };
    let app = App::start(&settings).await.unwrap();
    let job = Job { id: JobId::new(), spec: spec.clone(), status: JobStatus::Queued, error: None, created_at: SystemClock.now(), started_at: None, finished_at: None };
    let hashes = serde_json::to_value(nlac::prompt::PromptSet::load(&spec.model.prompts).unwrap().hashes()).unwrap();
    let mut c = app.store.acquire().await.unwrap();
    jobs::insert(&mut c, &job, &hashes, None).await.unwrap();
    let t = std::time::Instant::now();
    let mut seen = 0i64;
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let ev: Vec<(i64, String, String, serde_json::Value)> = sqlx::query_as("select id, kind, message, data from events where job_id=$1 and id>$2 order by id").bind(job.id).bind(seen).fetch_all(&mut *c).await.unwrap();
        for (id, kind, m, d) in ev { seen = id;
            let g = |k: &str| d.get(k).and_then(|v| v.as_f64()).map(|v| format!("{v:.3}")).unwrap_or("-".into());
            match kind.as_str() { "iteration_finished" => println!("{:6.1}s it {} col {} critic {} pol {} tgt {} yes {} chg {} val {} steps {} | {} s: col {} ann {} learn {} pub {} eval {}", t.elapsed().as_secs_f32(), g("iteration"), g("collect.success"), g("critic.loss"), g("policy.loss"), g("critic.targets_accepted"), g("evaluator.yes"), g("refiner.changed"), g("refiner.valid"), g("learn.steps"), g("time.iteration"), g("x"),g("x"),g("x"),g("x"),g("x")),
              "phase_started"|"published" => {}, _ => println!("{:6.1}s {kind}: {m}", t.elapsed().as_secs_f32()) } }
        let j = jobs::get(&mut c, job.id).await.unwrap().unwrap();
        if j.status.is_final() { println!("{:?} {:?}", j.status, j.error); break; }
    }
    let m: Vec<(String, f64)> = sqlx::query_as("select name, sum(value) from metrics where job_id=$1 and (name like 'time.%' or name like 'tokens%') group by name order by 1").bind(job.id).fetch_all(&mut *c).await.unwrap();
    println!("{m:?}");
    drop(c);
    app.stop().await;
}
