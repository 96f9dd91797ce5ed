-- Jobs, their iterations and the units of work that leases are held on.

create table engines (
    name        text primary key,
    kind        text not null,              -- dialect: vllm
    url         text not null,
    base_model  text not null,              -- served model name
    model_dir   text not null,              -- tokenizer and chat template
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);

create table trainers (
    name        text primary key,
    kind        text not null,              -- protocol: tinker
    url         text not null,
    base_model  text not null,
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);

create table jobs (
    id              uuid primary key,
    name            text not null,
    spec            jsonb not null,         -- immutable
    prompt_hashes   jsonb not null,         -- role -> content hash, pinned at submission
    status          text not null check (status in ('queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled')),
    error           text,
    idempotency_key text unique,
    created_at      timestamptz not null default now(),
    started_at      timestamptz,
    finished_at     timestamptz
);
create index jobs_newest on jobs (id desc);
create index jobs_active on jobs (id) where status in ('queued', 'running');

create table iterations (
    id          uuid primary key,
    job_id      uuid not null references jobs on delete cascade,
    index       integer not null check (index >= 0),
    phase       text not null check (phase in ('collect', 'annotate', 'learn', 'publish', 'evaluate', 'done')),
    phase_started_at timestamptz not null default now(),
    started_at  timestamptz not null default now(),
    finished_at timestamptz,
    unique (job_id, index)
);

create table work_items (
    id               uuid primary key,
    job_id           uuid not null references jobs on delete cascade,
    iteration_id     uuid not null references iterations on delete cascade,
    phase            text not null,
    ordinal          integer not null,      -- place among the iteration's items of this phase
    payload          jsonb not null,
    state            text not null check (state in ('ready', 'leased', 'done', 'failed', 'cancelled')),
    run_at           timestamptz not null default now(),
    attempt          integer not null default 0,
    max_attempts     integer not null,
    lease_token      uuid,                  -- random per claim; every write of the holder checks it
    lease_owner      text,
    lease_expires_at timestamptz,           -- database clock
    progress         jsonb,
    last_error       text,
    created_at       timestamptz not null default now(),
    finished_at      timestamptz,
    unique (iteration_id, phase, ordinal),  -- planning twice plans once
    check ((state = 'leased') = (lease_token is not null))
);
create index work_items_claimable on work_items (run_at, id) where state = 'ready';
create index work_items_leased on work_items (lease_expires_at) where state = 'leased';
create index work_items_of_job on work_items (job_id, iteration_id, phase);

create table work_attempts (
    item_id    uuid not null references work_items on delete cascade,
    attempt    integer not null,
    owner      text not null,
    started_at timestamptz not null default now(),
    ended_at   timestamptz,
    outcome    text check (outcome in ('done', 'retry', 'failed', 'lost', 'cancelled')),
    error      text,
    primary key (item_id, attempt)
);

create table events (
    id     bigint generated always as identity primary key,
    job_id uuid not null references jobs on delete cascade,
    at     timestamptz not null default now(),
    kind   text not null,
    message text not null,
    data   jsonb not null default '{}'
);
create index events_of_job on events (job_id, id);

create table metrics (
    job_id      uuid not null references jobs on delete cascade,
    name        text not null,
    iteration   integer not null,
    temperature real not null default -1,   -- -1: not an evaluation
    value       double precision not null,
    at          timestamptz not null default now(),
    primary key (job_id, name, iteration, temperature)
);
