-- A unit of work that cannot reach its engine or trainer waits, and its job says for what.
alter table work_items
    add column class       text not null default 'engine' check (class in ('engine', 'trainer', 'light')),
    add column waiting_for text,                            -- the peer that could not be reached at the last try
    add column waits       integer not null default 0;      -- tries in a row that could not reach it
update work_items set class = case phase when 'learn' then 'trainer' else class end;
alter table work_items alter column class drop default;
drop index work_items_claimable;
create index work_items_claimable on work_items (job_id, class, run_at, id) where state = 'ready';
create index work_items_waiting on work_items (job_id) where waiting_for is not null;

alter table jobs
    add column waiting_for   text,          -- the peer that its work waits for
    add column waiting_why   text,          -- what the last try to reach it said
    add column waiting_since timestamptz,
    add column plan_error    text;          -- why its next work cannot be planned

-- When a job's work of a class was last claimed: of two jobs with as much under way, the other is next.
create table work_turns (
    job_id uuid not null references jobs on delete cascade,
    class  text not null,
    at     timestamptz not null,
    primary key (job_id, class)
);
