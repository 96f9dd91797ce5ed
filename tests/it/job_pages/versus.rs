//! Two versions side by side.

use super::{Finished, all};

/// Both versions of a pair played the same task from the same seed.
pub async fn pairs_are_the_same_tasks(job: &Finished) {
    let page = job.found("/jobs/JOB/versus?a=0&b=2").await;
    let tally = all(
        &page,
        r"Of (\d+) held-out tasks that both versions played from the same seed, (\d+) were solved by both, (\d+) only by version 0, (\d+) only by version 2, and (\d+) by neither",
    );
    let numbers: Vec<usize> = tally[0].iter().map(|number| number.parse().unwrap()).collect();
    assert!(numbers[0] >= 4, "{numbers:?}");
    assert_eq!(numbers[0], numbers[1..].iter().sum::<usize>(), "{numbers:?}");

    let sections: Vec<&str> = page.split("<section class=\"versus\">").skip(1).collect();
    assert_eq!(sections.len(), numbers[0].min(10));
    let differs: Vec<bool> =
        sections.iter().map(|text| text.contains("<b>only version ")).collect();
    assert_eq!(differs.iter().filter(|differs| **differs).count(), numbers[2] + numbers[3]);
    assert!(differs.is_sorted_by(|first, next| first >= next), "different outcomes come first");
    for section in sections {
        let episodes = all(section, r#"href="/episodes/([0-9a-f-]{36})""#);
        assert_eq!(episodes.len(), 2, "{section}");
        let mut sides = Vec::new();
        for episode in &episodes {
            let (_, read) = job.service.get(&format!("/v1/episodes/{}", episode[0])).await;
            sides.push(read);
        }
        assert_eq!(sides[0]["seed"], sides[1]["seed"]);
        assert_eq!(sides[0]["task"], sides[1]["task"]);
        assert_eq!((&sides[0]["iteration"], &sides[1]["iteration"]), (&0.into(), &2.into()));
    }
    // Without a choice: the first and the newest version. One version alone is no comparison.
    assert_eq!(job.found("/jobs/JOB/versus").await, page);
    assert!(job.found("/jobs/JOB/versus?a=2&b=2").await.contains("Choose two versions"));
    assert!(job.found("/jobs/JOB/versus?a=0&b=99").await.contains("No held-out task"));
    assert_eq!(job.page("/jobs/JOB/versus?a=x").await.0, 400);
    assert_eq!(job.page(&format!("/jobs/{}/versus", uuid::Uuid::now_v7())).await.0, 404);
}
