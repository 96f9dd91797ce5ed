-- What the job's agents went through.
insert into transitions (id, episode_id, step, context, state_len, next_context, next_len, state_hash, action,
    env_action, observation, reward, reward_status, done, truncated, generation_id)
select size.id(5, n), size.id(6, n / 4), n % 4, 0, 1 + 2 * (n % 4), 0, 3 + 2 * (n % 4), sha256(int8send(n)),
    size.action(n), size.action(n), 'the desk says ' || size.word(n * 3) || ' ' || n % 1000,
    case when n % 4 = 3 and n / 4 % 3 = 0 then 1 else 0 end, 'observed', n % 4 = 3, false,
    case when n / 4 % 10 <> 0 then size.id(7, n) end
from size.job s, generate_series(0, s.transitions - 1) n;

insert into episodes (id, source, environment, task, seed, checkpoint_id, state, turns, unreadable, end_reason,
    episode_return, reward_status, success)
select size.id(6, e), case when e % 10 = 0 then 'dataset' else 'rollout' end, 'help_desk', 'task ' || e % 97, e,
    case when e % 10 <> 0 then size.id(2, 1 + e * 4 / s.per) end, 'closed', 4, 0,
    'terminated', case when e % 3 = 0 then 1 else 0 end, 'observed', e % 3 = 0
from size.job s, generate_series(0, s.transitions / 4 - 1) e;

insert into contexts (episode_id, ordinal, shared, messages)
select size.id(6, e), 0, 0, jsonb_build_array(
    jsonb_build_object('role', 'user', 'content', 'i want a refund form empty left ' || e),
    jsonb_build_object('role', 'assistant', 'content', size.action(e * 4)),
    jsonb_build_object('role', 'user', 'content', 'the desk says ' || size.word(e * 12)),
    jsonb_build_object('role', 'assistant', 'content', size.action(e * 4 + 1)),
    jsonb_build_object('role', 'user', 'content', 'the desk says ' || size.word(e * 12 + 3)),
    jsonb_build_object('role', 'assistant', 'content', size.action(e * 4 + 2)),
    jsonb_build_object('role', 'user', 'content', 'the desk says ' || size.word(e * 12 + 6)),
    jsonb_build_object('role', 'assistant', 'content', size.action(e * 4 + 3)),
    jsonb_build_object('role', 'user', 'content', 'the desk says ' || size.word(e * 12 + 9)))
from size.job s, generate_series(0, s.transitions / 4 - 1) e;

insert into rollouts (iteration_id, purpose, temperature, ordinal, job_id, episode_id)
select size.id(1, 1 + e * 4 / s.per), 'collect', 1, e % (s.per / 4), s.id, size.id(6, e)
from size.job s, generate_series(0, s.transitions / 4 - 1) e where e % 10 <> 0;

-- A tenth of the episodes comes from a dataset.
insert into datasets (id, name) values (size.id(8, 0), 'logs');
insert into dataset_versions (dataset_id, version, episodes, transitions)
select size.id(8, 0), 1, s.transitions / 40, s.transitions / 40 * 4 from size.job s;
insert into dataset_episodes (dataset_id, ordinal, key, content, episode_id)
select size.id(8, 0), e, 'line ' || e, sha256(int8send(e)), size.id(6, e * 10)
from size.job s, generate_series(0, s.transitions / 40 - 1) e;
