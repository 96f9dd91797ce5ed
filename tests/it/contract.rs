//! `openapi.yaml` is the contract: it equals what the routes say.

#[test]
fn the_document_is_what_the_routes_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.yaml");
    let committed = std::fs::read_to_string(path).unwrap();
    let present = nlac::api::openapi_yaml().unwrap();
    assert!(
        committed == present,
        "openapi.yaml is out of date: write it anew with `cargo run -- openapi > openapi.yaml`"
    );
}
