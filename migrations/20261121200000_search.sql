-- What transitions are found by: the newest that was said about each, in one narrow row, so that a filter is an
-- index and words are one. Made from the other tables; never the only place of anything.
create table transition_search (
    transition_id uuid primary key references transitions on delete cascade,
    job_id        uuid not null references jobs on delete cascade,
    iteration     integer not null,
    success       boolean,                  -- of its episode
    verdict       text,                     -- newest, on the action itself
    changed       boolean,                  -- by the rounds of the newest refinement
    target_status text,                     -- newest
    words         tsvector not null         -- action, newest critique, newest refinement
);
create index transition_search_of_job on transition_search (job_id, transition_id desc);
create index transition_search_found on transition_search (job_id, verdict, success, transition_id desc);
create index transition_search_everywhere on transition_search (verdict, success, transition_id desc);
create index transition_search_words on transition_search using gin (words);

insert into transition_search
select t.id, t.job_id, i.index, e.success, c.verdict, btrim(r.text) <> btrim(t.action), g.status,
    to_tsvector('simple', concat_ws(' ', t.action, c.text, r.text))
from transitions t
join iterations i on i.id = t.iteration_id
join episodes e on e.id = t.episode_id
left join lateral (
    select c.verdict, g.text from critiques c join generations g on g.id = c.generation_id
    where c.transition_id = t.id and c.round = 0 order by c.id desc limit 1
) c on true
left join lateral (
    select g.text from refinements r join generations g on g.id = r.generation_id
    where r.transition_id = t.id order by r.id desc limit 1
) r on true
left join lateral (
    select status from targets where transition_id = t.id order by id desc limit 1
) g on true;
