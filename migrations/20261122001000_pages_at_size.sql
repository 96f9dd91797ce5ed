-- What pages look up where there is much of something else: held-out episodes, who did what to a thing, and
-- transitions of some iterations, of the few that were solved, of the few whose target was not accepted.
create index episodes_of_purpose on episodes (job_id, purpose, id);
create index checkpoints_newest on checkpoints (job_id, id);
create index audit_of_resource on audit (resource, id desc);
create index transition_search_iteration on transition_search (iteration, transition_id desc);
create index transition_search_solved on transition_search (transition_id desc) where success;
create index transition_search_refused on transition_search (target_status, transition_id desc)
    where target_status <> 'accepted';
