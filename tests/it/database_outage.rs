//! What nlac does while its database is away.

use std::time::{Duration, Instant};

use nlac::store::{Listener, Store, WORK_CHANNEL};

use crate::support::{Place, database::Database};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_rejects_connections_at_once_keeps_no_processor_busy() {
    let place = Place::new();
    let root = place.path().join("postgres");
    let mut database = Database::start(&root).await;
    let store = Store::connect(database.url().parse().unwrap()).await.unwrap();
    let mut listener = Listener::on(&store, WORK_CHANNEL).await.unwrap();
    database.kill();
    // Without its socket, a connection fails at once, as it does without a name server.
    std::fs::remove_file(root.join("run/.s.PGSQL.5432")).unwrap();
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(listener.heard().await, None);
    }
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());

    database.back().await;
    let telling = async {
        for _ in 0..600 {
            let tell = sqlx::query("select pg_notify($1, 'again')").bind(WORK_CHANNEL);
            // The pool may still have connections of the server that was killed.
            let _ = tell.execute(store.pool()).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let hearing = async {
        loop {
            if let Some(heard) = listener.heard().await {
                return heard;
            }
        }
    };
    tokio::select! {
        heard = hearing => assert_eq!(heard, "again"),
        () = telling => panic!("it hears nothing after a minute"),
    }
    drop(listener);
    store.close().await;
}
