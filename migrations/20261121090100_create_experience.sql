-- What was generated, what happened, and what was derived from it. Nothing here is overwritten
-- except replay priorities and an example's measured loss.

create table checkpoints (
    id              uuid primary key,
    job_id          uuid not null references jobs on delete cascade,
    iteration_id    uuid not null references iterations on delete cascade,
    role            text not null check (role in ('online', 'target')),
    version         integer not null,
    name            text not null unique,   -- never used before, never used again
    path            text not null,
    sha256          text not null,
    parents         uuid[] not null,
    trainer_state   text,
    optimizer_steps integer not null,
    created_at      timestamptz not null default now(),
    published_at    timestamptz,
    unique (job_id, role, version)
);

create table generations (
    id            uuid primary key,
    job_id        uuid not null references jobs on delete cascade,
    iteration_id  uuid not null references iterations on delete cascade,
    role          text not null,
    weights       text not null check (weights in ('online', 'target', 'base')),
    checkpoint_id uuid references checkpoints,
    model         text not null,
    engine        text not null,
    prompt_hash   text not null,
    seed          bigint not null,
    temperature   real not null,
    max_tokens    integer not null,
    prompt_tokens integer not null,
    token_ids     integer[] not null,
    logprobs      real[],
    text          text not null,
    finish_reason text not null,
    created_at    timestamptz not null default now(),
    check ((weights = 'base') = (checkpoint_id is null))
);
create index generations_of_job on generations (job_id);

create table episodes (
    id             uuid primary key,
    job_id         uuid not null references jobs on delete cascade,
    iteration_id   uuid not null references iterations on delete cascade,
    purpose        text not null check (purpose in ('collect', 'evaluate')),
    ordinal        integer not null,
    task           text not null,
    seed           bigint not null,
    checkpoint_id  uuid not null references checkpoints,
    temperature    real not null,
    messages       jsonb not null,
    turns          integer not null,
    end_reason     text not null check (end_reason in ('terminated', 'truncated', 'failed')),
    episode_return double precision,
    reward_status  text not null check (reward_status in ('observed', 'pending', 'failed', 'truncated')),
    success        boolean,
    error          text,
    created_at     timestamptz not null default now(),
    unique (iteration_id, purpose, temperature, ordinal),
    check ((reward_status = 'observed') = (episode_return is not null))
);
create index episodes_of_job on episodes (job_id, id);

create table transitions (
    id            uuid primary key,
    job_id        uuid not null references jobs on delete cascade,
    iteration_id  uuid not null references iterations on delete cascade,
    episode_id    uuid not null references episodes on delete cascade,
    step          integer not null,
    state_len     integer not null,
    action        text not null,
    env_action    text,
    observation   text not null,
    reward        double precision,
    reward_status text not null check (reward_status in ('observed', 'pending', 'failed', 'truncated')),
    done          boolean not null,
    truncated     boolean not null,
    generation_id uuid not null references generations,
    created_at    timestamptz not null default now(),
    unique (episode_id, step),
    check ((reward_status = 'observed') = (reward is not null)),
    check (not (done and truncated))
);
create index transitions_of_job on transitions (job_id, id);

-- Narrow, because sampling reads it whole.
create table replay (
    transition_id uuid primary key references transitions on delete cascade,
    job_id        uuid not null references jobs on delete cascade,
    iteration     integer not null,         -- with episode and step: an order that does not depend on time
    episode       integer not null,
    step          integer not null,
    done          boolean not null,
    loss          real,                     -- critic loss per token when last learnt; null = never, sampled first
    uses          integer not null default 0
);
create index replay_of_job on replay (job_id, iteration, episode, step);

create table predictions (
    id            uuid primary key,
    job_id        uuid not null references jobs on delete cascade,
    iteration_id  uuid not null references iterations on delete cascade,
    transition_id uuid not null references transitions on delete cascade,
    purpose       text not null check (purpose in ('critique', 'bootstrap')),
    round         integer not null,
    ordinal       integer not null,
    action        text not null,
    generation_id uuid not null references generations,
    unique (iteration_id, transition_id, purpose, round, ordinal)
);
create index predictions_of_transition on predictions (transition_id);

create table targets (
    id                        uuid primary key,
    job_id                    uuid not null references jobs on delete cascade,
    iteration_id              uuid not null references iterations on delete cascade,
    transition_id             uuid not null references transitions on delete cascade,
    next_action_generation_id uuid references generations,
    next_prediction_id        uuid references predictions,
    generation_id             uuid not null references generations,
    status                    text not null check (status in ('accepted', 'misquoted', 'unparseable')),
    unique (iteration_id, transition_id)
);
create index targets_of_transition on targets (transition_id);

create table critiques (
    id             uuid primary key,
    job_id         uuid not null references jobs on delete cascade,
    iteration_id   uuid not null references iterations on delete cascade,
    transition_id  uuid not null references transitions on delete cascade,
    round          integer not null,
    action         text not null,
    prediction_ids uuid[] not null,
    generation_id  uuid not null references generations,
    verdict        text not null check (verdict in ('yes', 'no', 'unparseable')),
    unique (iteration_id, transition_id, round)
);
create index critiques_of_transition on critiques (transition_id);

create table refinements (
    id            uuid primary key,
    job_id        uuid not null references jobs on delete cascade,
    iteration_id  uuid not null references iterations on delete cascade,
    transition_id uuid not null references transitions on delete cascade,
    round         integer not null,
    critique_id   uuid not null references critiques on delete cascade,
    generation_id uuid not null references generations,
    valid         boolean not null,
    changed       boolean not null,
    unique (iteration_id, transition_id, round)
);
create index refinements_of_transition on refinements (transition_id);

create table training_examples (
    id                uuid primary key,
    job_id            uuid not null references jobs on delete cascade,
    iteration_id      uuid not null references iterations on delete cascade,
    ordinal           integer not null,
    transition_id     uuid not null references transitions on delete cascade,
    objective         text not null check (objective in ('critic', 'policy')),
    source            text not null check (source in ('target', 'refinement', 'action')),
    prompt_hash       text not null,
    prompt_tokens     integer[] not null,
    completion_tokens integer[] not null,
    weight            real not null,
    loss              real,
    unique (iteration_id, ordinal)
);

create table train_steps (
    job_id        uuid not null references jobs on delete cascade,
    iteration_id  uuid not null references iterations on delete cascade,
    step          integer not null,         -- of the job, from 1
    state         text not null check (state in ('sent', 'applied')),
    attempt       integer not null,
    examples      integer[] not null,
    tokens        integer not null,
    critic_loss   real,
    policy_loss   real,
    grad_norm     real,
    learning_rate real not null,
    at            timestamptz not null default now(),
    primary key (job_id, step)
);
