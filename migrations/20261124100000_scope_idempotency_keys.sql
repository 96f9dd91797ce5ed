-- An idempotency key belongs to whoever sent it, and works for every request that creates something.
create table idempotency_keys (
    owner       text not null,              -- name of the API key that sent it
    key         text not null,              -- the header
    operation   text not null,              -- operation id of the request
    body_hash   bytea not null,             -- sha256 of the request's body
    resource    text not null,              -- what the request created: an id or a name
    created_at  timestamptz not null default now(),
    primary key (owner, key)
);

insert into idempotency_keys (owner, key, operation, body_hash, resource)
select owner, idempotency_key, 'submit_job', ''::bytea, id::text from jobs where idempotency_key is not null;
alter table jobs drop column idempotency_key;
