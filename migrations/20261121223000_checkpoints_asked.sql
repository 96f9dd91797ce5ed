-- When people last asked something of a checkpoint: for a while its files stay beside the engine.
alter table checkpoints add column asked_at timestamptz;
