-- Makes many jobs of one: every row again, with ids that are as far apart in time. $per of the copies are one
-- long job. Nothing here is checked by foreign keys: the copies refer to each other as the originals do.
create function pg_temp.later(id uuid, n bigint) returns uuid language sql immutable strict as $$
    select (lpad(to_hex(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint + n * 3600000), 12, '0')
        || substr(translate(id::text, '-', ''), 13))::uuid
$$;

create procedure pg_temp.multiply(copies int, per int, iterations int) language plpgsql as $$
declare
    part text; columns text; made text; each record; steps int;
begin
    select coalesce(max(step), 0) into steps from train_steps;
    foreach part in array array['jobs', 'iterations', 'work_items', 'events', 'metrics', 'checkpoints', 'generations',
        'episodes', 'transitions', 'replay', 'predictions', 'targets', 'critiques', 'refinements', 'train_steps',
        'transition_search']
    loop
        columns := ''; made := '';
        for each in
            select column_name as name, udt_name as kind, is_identity from information_schema.columns
            where table_name = part and table_schema = 'public' and is_generated = 'NEVER'
        loop
            continue when each.is_identity = 'YES';
            columns := columns || ', ' || quote_ident(each.name);
            made := made || ', ' || case
                when part = 'jobs' and each.name = 'id' or each.name = 'job_id'
                    then format('pg_temp.later(o.%I, n - n %% %s)', each.name, per)
                when part = 'jobs' and each.name = 'name' then format('o.name || '' '' || n / %s', per)
                when each.name = 'idempotency_key' then 'null'
                when part = 'checkpoints' and each.name = 'name' then 'o.name || ''-'' || n'
                when each.name in ('index', 'iteration', 'version', 'base')
                    then format('o.%I + n %% %s * %s', each.name, per, iterations)
                when part = 'train_steps' and each.name = 'step' then format('o.step + n %% %s * %s', per, steps)
                when each.kind = 'uuid' then format('pg_temp.later(o.%I, n)', each.name)
                when each.kind = '_uuid'
                    then format('array(select pg_temp.later(id, n) from unnest(o.%I) id)', each.name)
                else format('o.%I', each.name)
            end;
        end loop;
        execute format(
            'insert into %I (%s) select %s from (select * from %I) o, generate_series(%s::bigint, %s) n %s',
            part, substr(columns, 3), substr(made, 3), part, per, per + copies - 1,
            case when part = 'jobs' then format('where n %% %s = 0', per) else '' end);
        commit;
    end loop;
end
$$;
