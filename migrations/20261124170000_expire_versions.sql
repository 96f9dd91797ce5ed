-- Versions whose files a retention rule deletes. The row stays: provenance names it.
alter table checkpoints
    add column expired_at timestamptz,      -- nothing may use the version any more
    add column files_gone_at timestamptz;   -- its files and its trainer state are deleted
create index checkpoints_to_delete on checkpoints (id) where expired_at is not null and files_gone_at is null;
create index checkpoints_kept on checkpoints (job_id) where role = 'online' and expired_at is null;
