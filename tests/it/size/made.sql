-- What the rows of a job of JOB are made from: TRANSITIONS transitions, PER in each iteration, four in each episode. They
-- are older than all real rows. The job has really run, iteration 0 and iteration 1. The generated iterations are put
-- before iteration 1, which becomes the newest one and the one that the job continues from.
create schema size;

-- An id that grows with its number; rows of another kind have others.
create function size.id(kind int, n bigint) returns uuid language sql immutable parallel safe as $$
    select (lpad(to_hex(1700000000000 + n), 12, '0') || '7' || lpad(to_hex(kind), 3, '0') || '8000'
        || lpad(to_hex(n), 12, '0'))::uuid
$$;

create function size.word(n bigint) returns text language sql immutable parallel safe as $$
    select (array['ask', 'name', 'order', 'refund', 'billing', 'form', 'empty', 'left', 'please', 'wait', 'number', 'late',
        'paid', 'twice', 'card', 'closed', 'open', 'again', 'reset', 'mail', 'sent', 'lost', 'found', 'box', 'door', 'desk',
        'agent', 'help', 'close', 'case', 'new', 'old', 'user', 'code', 'page', 'link', 'send', 'check', 'stop', 'done']
    )[1 + n % 40]
$$;

-- Actions differ as those of a policy do: some hundred are common, the others rare.
create function size.action(n bigint) returns text language sql immutable parallel safe as $$
    select size.word(n) || ' ' || size.word(n / 7) || ' ' || size.word(n * 13 / 11) || ' ' || (n * 7919) % 5000
$$;

create table size.job as
select 'JOB'::uuid as id, TRANSITIONS::bigint as transitions, PER::bigint as per, TRANSITIONS / PER as iterations;

update iterations i set index = s.iterations + 1 from size.job s where i.job_id = s.id and i.index = 1;
update checkpoints c set version = s.iterations + 1 from size.job s where c.job_id = s.id and c.version = 1;
update replay r set iteration = s.iterations + 1 from size.job s where r.job_id = s.id;
update transition_search t set iteration = s.iterations + 1 from size.job s where t.job_id = s.id;
update metrics m set iteration = s.iterations + 1 from size.job s where m.job_id = s.id and m.iteration = 1;

insert into iterations (id, job_id, index, phase, base, started_at, finished_at)
select size.id(1, i), s.id, i, 'done', i - 1, now() - (s.iterations - i + 1) * interval '1 minute',
    now() - (s.iterations - i) * interval '1 minute'
from size.job s, generate_series(1, s.iterations) i;

insert into checkpoints (id, job_id, iteration_id, role, version, name, path, sha256, parents, optimizer_steps,
    expired_at, published_at)
select size.id(2 + r.place, i), s.id, size.id(1, i), r.role, i, 'size-' || r.role || '-v' || i, '/deleted', md5(i::text),
    '{}', i * 4, now(), now()
from size.job s, generate_series(1, s.iterations) i, (values (0, 'online'), (1, 'target')) r (place, role);

insert into metrics (job_id, name, iteration, temperature, value)
select m.job_id, m.name, i, m.temperature, m.value
from size.job s, metrics m, generate_series(1, s.iterations) i
where m.job_id = s.id and m.iteration = s.iterations + 1;

insert into work_items (id, job_id, iteration_id, phase, ordinal, kind, class, payload, state, max_attempts, finished_at)
select size.id(4, i * 8 + k), s.id, size.id(1, i), case when k < 4 then 'collect' else 'annotate' end, k,
    case when k < 4 then 'collect' else 'annotate' end, 'engine', '{}', 'done', 3, now()
from size.job s, generate_series(1, s.iterations) i, generate_series(0, 7) k;

insert into spending (iteration_id, env_steps, generated_tokens)
select size.id(1, i), s.per, s.per * 5 from size.job s, generate_series(1, s.iterations) i;

insert into events (place, job_id, kind, message, data)
select nextval('events_place'), e.job_id, e.kind, e.message, e.data
from size.job s, generate_series(1, s.iterations) i, events e where e.job_id = s.id and e.kind = 'phase_started';

insert into train_steps (job_id, iteration_id, step, state, attempt, examples, tokens, critic_loss, learning_rate)
select s.id, size.id(1, i), i * 4 + k, 'applied', 1, '{0,1,2,3,4,5,6,7}', 1000, 0.5, 0.001
from size.job s, generate_series(1, s.iterations) i, generate_series(0, 3) k;
