-- Who works: nlac's own processes, and what others host: engines that generate, trainers that take gradient steps, and
-- environments.

-- One row is a server that shares this database. One that stops in order deletes its row.
create table processes (
    id           uuid primary key,          -- new at each start; leases on work name it as their owner
    roles        text[] not null check (cardinality(roles) > 0),
    host         text not null,
    version      text not null,
    started_at   timestamptz not null default now(),
    heartbeat_at timestamptz not null default now()
);

-- One row is a registered engine: one model behind one or several URLs.
create table engines (
    name         text primary key,
    kind         text not null,             -- dialect of its API
    urls         text[] not null check (cardinality(urls) > 0),     -- its replicas
    draining     text[] not null default '{}',                      -- replicas that get no new work
    base_model   text not null,             -- served model name
    model        text not null,             -- the model's name in specs
    model_dir    text,                      -- tokenizer and chat template
    adapter_dir  text,                      -- adapters as the engine sees them
    seeds        boolean not null default true,     -- false: the engine fails on requests with a seed
    api_key_env  text,                      -- an environment variable: never the key
    hedge_ms     int check (hedge_ms > 0),  -- a request that takes longer is sent to a second replica too
    capabilities jsonb,                     -- null: never reached
    trouble      text,                      -- why it did not answer when last asked
    checked_at   timestamptz,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now()
);

-- One row is a registered trainer.
create table trainers (
    name         text primary key,
    kind         text not null,             -- protocol
    url          text not null,
    base_model   text not null,
    model        text not null,             -- the model's name in specs
    api_key_env  text,                      -- an environment variable: never the key
    capabilities jsonb,                     -- null: never reached
    trouble      text,                      -- why it did not answer when last asked
    checked_at   timestamptz,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now()
);

-- One row is a registered environment: a server on which episodes are played.
create table environments (
    name         text primary key,
    kind         text not null,             -- protocol
    url          text not null,
    api_key_env  text,                      -- an environment variable: never the key
    sessions     int not null check (sessions > 0),         -- episodes at a time, of one process of this service
    step_seconds int not null check (step_seconds > 0),     -- deadline of a step
    replayable   boolean not null,          -- the same task, seed and actions give the same episode
    found        jsonb,                     -- what it says of itself; null: never reached
    trouble      text,                      -- why it did not answer when last asked
    checked_at   timestamptz,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now()
);
