-- A job goes with all that belongs to it. For that every reference is looked up from the other side, each row once:
-- by an index, or the whole table is read for it. Ids grow with time, so most of these grow at their end.
create index transitions_of_iteration on transitions (iteration_id);
create index transitions_of_generation on transitions (generation_id);
create index predictions_of_generation on predictions (generation_id);
create index targets_of_generation on targets (generation_id);
create index targets_of_next_action on targets (next_action_generation_id);
create index targets_of_next_prediction on targets (next_prediction_id);
create index critiques_of_generation on critiques (generation_id);
create index refinements_of_generation on refinements (generation_id);
create index refinements_of_critique on refinements (critique_id);
create index training_examples_of_transition on training_examples (transition_id);
create index replay_draws_of_transition on replay_draws (transition_id);
create index train_steps_of_iteration on train_steps (iteration_id);
create index generations_of_checkpoint on generations (checkpoint_id);
create index episodes_of_checkpoint on episodes (checkpoint_id);
create index checkpoints_of_iteration on checkpoints (iteration_id);
create index jobs_of_promoted_checkpoint on jobs (promoted_checkpoint_id);
create index webhooks_of_job on webhooks (job_id);
create index sessions_of_key on sessions (key_id);

-- What belongs to an iteration belongs to its job: that the job is there need not be looked up for each row again.
alter table predictions drop constraint predictions_job_id_fkey;
alter table targets drop constraint targets_job_id_fkey;
alter table critiques drop constraint critiques_job_id_fkey;
alter table refinements drop constraint refinements_job_id_fkey;
alter table training_examples drop constraint training_examples_job_id_fkey;
