//! What the README tells people to type is what the program takes.

use clap::Parser;
use nlac::{cli::Cli, domain::logged::LoggedEpisode};
use serde_json::Value;

use crate::support::{Service, small_job};

const README: &str = include_str!("../../README.md");

/// The contents of the README's fenced blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    README.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

#[test]
fn every_command_is_one_that_the_program_takes() {
    let mut seen = Vec::new();
    for line in blocks("sh").iter().flat_map(|block| block.lines()) {
        let line = line.split(" # ").next().unwrap().trim();
        let Some(arguments) =
            line.strip_prefix("cargo run --release -- ").or_else(|| line.strip_prefix("nlac "))
        else {
            continue;
        };
        let words = ["nlac"].into_iter().chain(arguments.split_whitespace());
        let words = words
            .map(|word| if word == "ID" { "01a1fd10-c6f8-70d2-aeb5-634f4dcb6085" } else { word });
        if let Err(error) = Cli::try_parse_from(words) {
            panic!("{line}: {error}");
        }
        seen.push(line);
    }
    assert!(seen.len() >= 5, "{seen:?}");
}

#[test]
fn the_logged_episode_is_one_that_can_be_imported() {
    let lines: Vec<_> = blocks("json").iter().flat_map(|block| block.lines()).collect();
    assert!(!lines.is_empty());
    for line in lines {
        LoggedEpisode::parse(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
}

/// The examples for curl, followed by hand: submit, watch, read the critiques of a transition.
#[tokio::test(flavor = "multi_thread")]
async fn the_examples_for_curl_lead_to_critiques() {
    let block = blocks("sh").into_iter().find(|block| block.contains("curl -s")).unwrap();
    let paths: Vec<&str> = block
        .lines()
        .filter(|line| line.contains("localhost:8470"))
        .map(|line| line.split("localhost:8470").nth(1).unwrap())
        .map(|rest| rest.split(['\'', ' ']).next().unwrap())
        .collect();
    let service = Service::start().await;
    assert!(block.contains("application/yaml") && block.contains("@examples/help-desk.yaml"));
    // The example's own text, but small.
    let text = serde_yaml_ng::to_string(&small_job()).unwrap();
    let request = service.http.post(format!("{}{}", service.url, paths[0]));
    let request = request.header("content-type", "application/yaml").body(text);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let job: Value = answer.json().await.unwrap();
    let id = job["id"].as_str().unwrap();
    assert_eq!(service.finished(id).await["status"], "succeeded");
    let (mut transition, mut critiques) = (Value::Null, Value::Null);
    for path in &paths[1..] {
        let path = path
            .replace("/ID/", &format!("/{id}/"))
            .replace("TRANSITION", transition["id"].as_str().unwrap_or_default());
        let (status, answer) = service.get(&path).await;
        assert_eq!(status, 200, "{path}: {answer}");
        if path.contains("/transitions?") {
            transition = answer["data"][0].clone();
        }
        critiques = answer;
    }
    assert!(!critiques["critiques"].as_array().unwrap().is_empty(), "{critiques}");

    let block = blocks("sh").into_iter().find(|block| block.contains("/v1/critiques -H")).unwrap();
    let (_, checkpoints) = service.get(&format!("/v1/jobs/{id}/checkpoints?limit=1")).await;
    let body = block.split('\'').nth(3).unwrap();
    let body = body.replace("CHECKPOINT", checkpoints["data"][0]["id"].as_str().unwrap());
    let body: Value = serde_json::from_str(&body).unwrap();
    let (status, critique) = service.post("/v1/critiques", &body).await;
    assert_eq!(status, 200, "{critique}");
    assert_eq!(critique["action"], "do it now .");
    assert!(["yes", "no"].contains(&critique["verdict"].as_str().unwrap()), "{critique}");
    service.stop().await;
}
