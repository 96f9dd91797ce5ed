-- Transitions are found by one annotation: the newest critique, and what that iteration refined. A refinement of an
-- earlier iteration answers an earlier critique.
update transition_search s
set changed = (
    select btrim(g.text) <> btrim(t.action) from transitions t, refinements r
    join generations g on g.id = r.generation_id
    where t.id = s.transition_id and r.transition_id = s.transition_id and r.iteration_id = newest.iteration_id
    order by r.round desc limit 1)
from (select distinct on (transition_id) transition_id, iteration_id from critiques
      where round = 0 order by transition_id, id desc) newest
where newest.transition_id = s.transition_id and s.changed is not null;
