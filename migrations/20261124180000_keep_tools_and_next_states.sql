-- Logged episodes keep their messages as they are, and the tools that the agent could call.
alter table dataset_episodes
    add column tools jsonb not null default '[]',
    drop column opening;
alter table episodes add column tools jsonb not null default '[]';
alter table transitions add column next_len integer;    -- messages of the episode that the next state has
update transitions set next_len = state_len + 2;
alter table transitions alter column next_len set not null;
