-- Some hosted models take no temperature and sample by their own.
alter table generations alter column temperature drop not null;
