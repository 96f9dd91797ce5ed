-- Followers read events by their place in the log. Ids are drawn at the insert and become visible at the commit, in
-- another order; a place is drawn at the commit itself, under a lock of the job, so that whoever has read up to one
-- place has seen every earlier one. The lock is the last that a transaction takes, so nobody waits in a circle.
create sequence events_place;
alter table events add column place bigint;
update events set place = id;
select setval('events_place', greatest((select max(id) from events), 1));
drop index events_of_job;
create unique index events_of_job on events (job_id, place);

create function place_event() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('events of ' || new.job_id, 0));
    update events set place = nextval('events_place') where id = new.id;
    return null;
end $$;
create constraint trigger events_place after insert on events
    deferrable initially deferred for each row execute function place_event();

-- What an iteration has used, counted where the rows are written, so that nobody has to count rows.
create table spending (
    iteration_id     uuid primary key references iterations on delete cascade,
    env_steps        bigint not null default 0,     -- taken for training: by episodes and by annotation
    generated_tokens bigint not null default 0,
    prompt_tokens    bigint not null default 0,     -- read to generate them
    optimizer_steps  bigint not null default 0,
    trained_tokens   bigint not null default 0
);
insert into spending
select i.id,
    i.branch_env_steps + (select count(*) from transitions t where t.iteration_id = i.id and t.generation_id is not null),
    coalesce(g.generated, 0), coalesce(g.prompts, 0), coalesce(s.steps, 0), coalesce(s.tokens, 0)
from iterations i
left join (select iteration_id, sum(cardinality(token_ids)) as generated, sum(prompt_tokens) as prompts
           from generations group by iteration_id) g on g.iteration_id = i.id
left join (select iteration_id, count(*) as steps, sum(tokens) as tokens
           from train_steps where state = 'applied' group by iteration_id) s on s.iteration_id = i.id;
alter table iterations drop column branch_env_steps;

-- A rollback goes on from an earlier count of steps: the steps that it leaves behind stay.
alter table train_steps drop constraint train_steps_pkey, add primary key (iteration_id, step);
create index train_steps_of_job on train_steps (job_id, step);
