-- Budgets, replay draws that are kept, ablations, corrected reasoning.

alter table iterations
    add column last boolean not null default false,         -- a budget is spent: nothing follows it
    add column branch_env_steps bigint not null default 0;  -- environment steps taken by annotation

alter table targets drop constraint targets_status_check;
alter table targets add constraint targets_status_check
    check (status in ('accepted', 'misquoted', 'unparseable', 'leaked'));

alter table replay add column refused boolean not null default false; -- the last verdict was No

-- What an iteration replays, drawn once, so that every slice and every attempt works on the same batch.
create table replay_draws (
    iteration_id  uuid not null references iterations on delete cascade,
    position      integer not null,
    transition_id uuid not null references transitions on delete cascade,
    importance    real not null,
    primary key (iteration_id, position)
);

-- An imported action was written by nobody whom we asked: it has tokens, but no generation.
alter table transitions alter column generation_id drop not null;
alter table transitions add column action_tokens integer[];
alter table transitions add constraint transitions_action_check
    check ((generation_id is null) = (action_tokens is not null));

-- Guards may send a job back to an earlier version.
alter table iterations
    add column base integer not null default -1,  -- the version that it starts from
    add column roll_back_to integer;              -- the next iteration starts from this version instead
alter table iterations drop constraint iterations_phase_check;
alter table iterations add constraint iterations_phase_check
    check (phase in ('collect', 'annotate', 'learn', 'publish', 'evaluate', 'assess', 'done'));

-- Answers of the base model to general prompts are learnt beside the rest; no transition made them.
alter table training_examples alter column transition_id drop not null;
alter table training_examples drop constraint training_examples_objective_check;
alter table training_examples add constraint training_examples_objective_check
    check (objective in ('critic', 'policy', 'rehearsal'));
alter table training_examples drop constraint training_examples_source_check;
alter table training_examples add constraint training_examples_source_check
    check (source in ('target', 'refinement', 'action', 'candidate', 'base'));
alter table training_examples add constraint training_examples_transition_check
    check ((transition_id is null) = (objective = 'rehearsal'));

-- Logged episodes of others, to learn from without rollouts of our own.
create table datasets (
    name       text primary key,
    created_at timestamptz not null default now()
);
create table dataset_episodes (
    dataset    text not null references datasets on delete cascade,
    ordinal    integer not null,            -- order of arrival, from 0
    key        text not null,               -- the line's own id, or the hash of its content
    task       text not null,
    messages   jsonb not null,
    opening    integer not null,            -- messages before the first action
    rewards    double precision[] not null, -- one per action
    success    boolean,
    truncated  boolean not null,
    created_at timestamptz not null default now(),
    primary key (dataset, ordinal),
    unique (dataset, key)
);

alter table episodes drop constraint episodes_purpose_check;
alter table episodes add constraint episodes_purpose_check
    check (purpose in ('collect', 'evaluate', 'import'));
alter table episodes alter column checkpoint_id drop not null;
alter table episodes add constraint episodes_checkpoint_check
    check ((checkpoint_id is null) = (purpose = 'import'));

-- What earlier versions wrote, as this one reads it.
update jobs set spec = jsonb_set(spec #- '{algorithm,target_rate}', '{algorithm,target}',
        jsonb_build_object('kind', 'moving_average', 'rate', spec #> '{algorithm,target_rate}'))
    where spec #> '{algorithm,target_rate}' is not null;
update iterations set base = index - 1;
update work_items w set payload = w.payload || jsonb_build_object('version', i.index - 1)
    from iterations i
    where i.id = w.iteration_id and w.payload ->> 'kind' in ('collect', 'annotate', 'learn');
