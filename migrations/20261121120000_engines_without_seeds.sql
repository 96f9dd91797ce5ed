-- Some builds of engines die of a request with a seed; what was not sent is not recorded.
alter table engines add column seeds boolean not null default true;
alter table generations alter column seed drop not null;
