-- The version of a job that people chose to use.
alter table jobs
    add column promoted_checkpoint_id uuid references checkpoints on delete set null,
    add column promoted_at timestamptz;
