-- What cut an episode that did not come to its end. Episodes that were truncated before this column existed were cut
-- by their environment or their log; nothing else could truncate one.
alter table episodes add column truncated_by text
    check (truncated_by in ('context', 'steps', 'deadline', 'environment'));
update episodes set truncated_by = 'environment' where end_reason = 'truncated';
alter table episodes add check ((end_reason = 'truncated') = (truncated_by is not null));
