-- The newest that was said of a transition is one end of its range. By transition alone, a plan made while tables are
-- small walks a whole table backwards for each transition of which nothing has been said yet.
create index critiques_of_transition_newest on critiques (transition_id, id);
create index refinements_of_transition_newest on refinements (transition_id, id);
create index targets_of_transition_newest on targets (transition_id, id);
drop index critiques_of_transition;
drop index refinements_of_transition;
drop index targets_of_transition;

-- What belongs to an iteration or a transition belongs to its job: that the job is there need not be looked up for
-- each row again, nor need texts be found by it.
alter table generations drop constraint generations_job_id_fkey;
alter table episodes drop constraint episodes_job_id_fkey;
alter table transitions drop constraint transitions_job_id_fkey;
alter table replay drop constraint replay_job_id_fkey;
alter table transition_search drop constraint transition_search_job_id_fkey;
drop index generations_of_job;
