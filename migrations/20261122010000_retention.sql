-- What is old is found without reading everything.
create index audit_at on audit (at);
create index webhook_deliveries_settled on webhook_deliveries (settled_at) where settled_at is not null;
