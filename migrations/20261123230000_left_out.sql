-- What an engine refused to speak of is never learnt, and is not to come first for that.
alter table replay add column left_out boolean not null default false;
