-- A phrase of common words is looked up by its pairs of neighbours: the words alone would leave every transition that
-- has them all to be read. A row need not hold its pairs, the index does. Dear to compute: nothing for a filter.
create function word_pairs(words tsvector) returns text[] language sql immutable strict parallel safe cost 1000 as $$
    select array(select lexeme || ' ' || next from (
        select lexeme, at, lead(lexeme) over (order by at) as next, lead(at) over (order by at) as next_at
        from unnest(words), unnest(positions) at) word
    where next_at = at + 1)
$$;
create index transition_search_pairs on transition_search using gin (word_pairs(words));
-- Without it nothing is known yet of how common each pair is.
analyze transition_search;
