-- Who may do what, who is signed in on the pages, and who did what. No secret is kept: only its hash.

create table api_keys (
    id           uuid primary key,
    name         text not null,
    prefix       text not null,             -- the secret's first characters, to recognise it by
    hash         bytea not null unique,     -- sha256 of a 256-bit random secret: nothing to guess, so no salt
    scopes       text[] not null check (scopes <@ array['read', 'submit', 'operate', 'admin'] and scopes <> '{}'),
    requests_per_minute integer not null check (requests_per_minute > 0),
    created_by   text not null,             -- name of the key that made it
    created_at   timestamptz not null default now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
-- A name is one person or one program; it is free again once its key is revoked.
create unique index api_keys_name on api_keys (name) where revoked_at is null;

create table sessions (
    id         uuid primary key,
    hash       bytea not null unique,       -- sha256 of the cookie
    key_id     uuid not null references api_keys on delete cascade,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);

create table audit (
    id       uuid primary key,
    at       timestamptz not null default now(),
    key_id   uuid,
    actor    text not null,                 -- the key's name; local while sign-in is off
    method   text not null,
    route    text not null,                 -- as declared, without ids
    resource text,                          -- the ids in it, or of what it made
    status   integer                        -- null: it began, and its end is not known
);
create index audit_of_actor on audit (actor, id desc);

alter table jobs add column owner text not null default 'local';
create index jobs_of_owner on jobs (owner, id desc);
