-- How the pages find the jobs that use a dataset or a prompt set, and those that only evaluate.

create index jobs_of_dataset on jobs using gin ((spec -> 'datasets'));
create index jobs_of_prompts on jobs ((spec #>> '{model,prompts}'), id desc);
create index jobs_that_evaluate on jobs (id desc) where spec #>> '{algorithm,kind}' = 'evaluation';
