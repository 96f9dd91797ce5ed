-- Who is told of events, and what became of each telling. A delivery is a row in the event's own transaction.
create table webhooks (
    id         uuid primary key,
    url        text not null,
    -- Empty: of every kind.
    kinds      text[] not null,
    -- Null: of every job.
    job_id     uuid references jobs on delete cascade,
    created_at timestamptz not null
);

create table webhook_deliveries (
    webhook_id uuid not null references webhooks on delete cascade,
    event_id   bigint not null references events on delete cascade,
    state      text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
    attempts   int not null default 0,
    -- When it is tried next; while it is being tried, when somebody else may try it.
    due_at     timestamptz not null default now(),
    settled_at timestamptz,
    error      text,
    primary key (webhook_id, event_id)
);
create index webhook_deliveries_due on webhook_deliveries (due_at) where state = 'waiting';
create index webhook_deliveries_of_event on webhook_deliveries (event_id);
