-- What peers are called in specs, what they can do, and what they need to be asked.
alter table engines
    add column model         text,                    -- name in specs
    add column draining      text[] not null default '{}',
    add column adapter_dir   text,                    -- adapters as the engine sees them
    add column api_key_env   text,                    -- an environment variable: never the key
    add column hedge_ms      int check (hedge_ms > 0),
    add column capabilities  jsonb,                   -- null: never reached
    add column trouble       text,                    -- why it did not answer when last asked
    add column checked_at    timestamptz,
    alter column model_dir drop not null;
update engines set model = base_model;
alter table engines alter column model set not null;

alter table trainers
    add column model         text,
    add column api_key_env   text,
    add column capabilities  jsonb,
    add column trouble       text,
    add column checked_at    timestamptz;
update trainers set model = base_model;
alter table trainers alter column model set not null;

-- Parts that are played by a model that is never trained.
alter table generations drop constraint generations_weights_check, drop constraint generations_check,
    add constraint generations_weights_check check (weights in ('online', 'target', 'base', 'frozen')),
    add constraint generations_checkpoint_check check ((weights in ('base', 'frozen')) = (checkpoint_id is null));
