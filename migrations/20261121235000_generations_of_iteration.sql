-- What an iteration generated is summed up at its end, and again for estimates.
create index generations_of_iteration on generations (iteration_id, role);
