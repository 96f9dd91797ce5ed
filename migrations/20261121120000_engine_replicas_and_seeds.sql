-- Some builds of engines die of a request with a seed; what was not sent is not recorded.
alter table engines add column seeds boolean not null default true;
alter table generations alter column seed drop not null;

-- An engine has replicas.
alter table engines add column urls text[] check (cardinality(urls) > 0);
update engines set urls = array[url];
alter table engines alter column urls set not null, drop column url;
