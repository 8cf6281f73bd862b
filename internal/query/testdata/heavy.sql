-- Statements that are admitted and need more than any limit, one a line. Each ends with an error of a limit. Lines of comments are headings.
-- Recursion
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r
WITH RECURSIVE r(i) AS (SELECT 1 UNION SELECT i + 1 FROM r) SELECT max(i) FROM r
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT r.i FROM r, range(100)) SELECT count(*) FROM r
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT 1 FROM r) FROM r
WITH RECURSIVE r(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM r) SELECT max(length(s)) FROM r
WITH RECURSIVE r(l) AS (SELECT [1] UNION ALL SELECT list_concat(l, l) FROM r) SELECT max(len(l)) FROM r
WITH RECURSIVE r(s) AS (SELECT 'x' UNION ALL SELECT replace(s, 'x', 'xxxxxxxx') FROM r) SELECT max(length(s)) FROM r
WITH RECURSIVE r(s) AS (SELECT 'x' UNION ALL SELECT replace(s, 'x', s || 'x') FROM r) SELECT max(length(s)) FROM r
WITH RECURSIVE a(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM a WHERE i < 100000), b(i) AS (SELECT a.i FROM a UNION ALL SELECT b.i + 1 FROM a, b) SELECT count(*) FROM b
-- Products
SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1
SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b WHERE a.range % 7 = b.range % 5
SELECT count(*) FROM samples a, samples b, samples c WHERE a.value + b.value > c.value
SELECT count(*) FROM samples a JOIN samples b ON a.value > b.value JOIN samples c ON b.value > c.value
SELECT count(*) FROM samples a, LATERAL (SELECT count(*) AS n FROM range(1000000000) r WHERE hash(r.range) % 1000 = a.value) n
SELECT max((SELECT count(*) FROM range(1000000000) b WHERE hash(b.range + a.range) = 1)) FROM range(1000) a
-- Values of any size
SELECT list(range) FROM range(1000000000)
SELECT string_agg(range, ',') FROM range(1000000000)
SELECT histogram(range) FROM range(1000000000)
SELECT map_from_entries(list((range, range))) FROM range(1000000000)
SELECT array_agg(x || x) FROM (SELECT string_agg(range, '') AS x FROM range(10000)), range(1000000)
SELECT json_group_array(range) FROM range(1000000000)
SELECT max(length(concat(a.s, b.s, c.s))) FROM (SELECT string_agg(range, '') AS s FROM range(1000000)) a, (SELECT string_agg(range, '') AS s FROM range(1000000)) b, (SELECT string_agg(range, '') AS s FROM range(1000000)) c, range(1000000000)
-- Values in one call
SELECT length(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace('xxxxxxxxxx', 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'))
SELECT max(length(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(range::VARCHAR || 'xxxxxxxx', '.', '\0\0\0\0\0\0\0\0\0\0', 'g'), '.', '\0\0\0\0\0\0\0\0\0\0', 'g'), '.', '\0\0\0\0\0\0\0\0\0\0', 'g'), '.', '\0\0\0\0\0\0\0\0\0\0', 'g'), '.', '\0\0\0\0\0\0\0\0\0\0', 'g'), '.', '\0\0\0\0\0\0\0\0\0\0', 'g'))) FROM range(1000000000)
SELECT max(length(replace(s, 'a', s))) FROM (SELECT string_agg('a', '') AS s FROM range(100000)), range(1000000000)
SELECT max(length(array_to_string(list_transform(l, x -> array_to_string(l, ',')), ','))) FROM (SELECT list(range) AS l FROM range(100000)), range(1000000000)
SELECT max(len(flatten(list_transform(l, x -> l)))) FROM (SELECT list(range) AS l FROM range(100000)), range(1000000000)
SELECT max(len(string_split(s, 'a'))) FROM (SELECT string_agg('a', '') AS s FROM range(1000000)), range(1000000000)
SELECT max(len(regexp_extract_all(s, '.'))) FROM (SELECT string_agg('a', '') AS s FROM range(1000000)), range(1000000000)
-- Lambdas and lists
SELECT max(len(list_transform(l, x -> list_sum(list_transform(l, y -> list_sum(list_transform(l, z -> x + y + z))))))) FROM (SELECT list(range) AS l FROM range(20000))
SELECT max(list_reduce(l, (a, b) -> a || b)) FROM (SELECT list(range::VARCHAR) AS l FROM range(10000000))
SELECT sum(list_aggregate(list_transform(l, x -> x * r.range), 'sum')) FROM (SELECT list(range) AS l FROM range(1000000)), range(1000000000) r
SELECT max(list_sort(list_transform(l, x -> hash(x + r.range)))[1]) FROM (SELECT list(range) AS l FROM range(1000000)), range(1000000000) r
SELECT max(list_distinct(list_transform(l, x -> x + r.range))[1]) FROM (SELECT list(range) AS l FROM range(1000000)), range(1000000000) r
SELECT max(len(list_filter(l, x -> len(list_filter(l, y -> y > x)) > 10))) FROM (SELECT list(range) AS l FROM range(1000000))
-- Sorts, groups and windows
SELECT max(r) FROM (SELECT range AS r FROM range(1000000000) ORDER BY hash(range) LIMIT 500000000)
FROM range(1000000000) ORDER BY hash(range)
SELECT count(DISTINCT range) FROM range(1000000000)
SELECT max(n) FROM (SELECT hash(range) AS h, count(*) AS n FROM range(1000000000) GROUP BY h)
SELECT median(hash(range)) FROM range(1000000000)
SELECT mode(range) FROM range(1000000000)
SELECT max(n) FROM (SELECT count(*) OVER (ORDER BY hash(range) RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n FROM range(1000000000))
SELECT max(n) FROM (SELECT mode(value) OVER (ORDER BY ts ROWS BETWEEN 1000000 PRECEDING AND 1000000 FOLLOWING) AS n FROM (SELECT * FROM samples, range(1000000)))
SELECT max(len(n)) FROM (SELECT list(range) OVER (ROWS BETWEEN 10000 PRECEDING AND CURRENT ROW) AS n FROM range(10000000))
SELECT sum(n) FROM (SELECT prom_rate(ts, value, ts - INTERVAL 1 HOUR, ts) AS n FROM (SELECT ts + to_milliseconds(range) AS ts, value FROM samples, range(1000000000)) GROUP BY ts)
SELECT prom_quantile_over_time(0.5, make_timestamptz(range), range, make_timestamptz(0), make_timestamptz(1000000000000)) FROM range(1000000000)
SELECT max(r) FROM (SELECT prom_rate(make_timestamptz(range), range, INTERVAL 100 DAY) OVER (ORDER BY range RANGE BETWEEN 1000000 PRECEDING AND CURRENT ROW) AS r FROM range(1000000000))
SELECT max(r) FROM (SELECT prom_quantile_over_time(0.5, make_timestamptz(range * 1000), range, INTERVAL 100 DAY) OVER (ORDER BY 1 ROWS UNBOUNDED PRECEDING) AS r FROM range(1000000000))
SELECT max(r) FROM (SELECT prom_mad_over_time(make_timestamptz(-1000 * range), range, INTERVAL 1 MINUTE) OVER (ORDER BY range % 7, random() ROWS BETWEEN 10000 PRECEDING AND 10000 FOLLOWING) AS r FROM range(1000000))
-- Regular expressions and texts
SELECT count(*) FROM range(1000000000) WHERE regexp_matches(range::VARCHAR || 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '(a|aa|aaa)*(b|c|(d*e)*)*$x')
SELECT count(*) FROM range(1000000000) WHERE range::VARCHAR LIKE '%1%2%3%4%5%6%7%8%9%'
SELECT count(*) FROM (SELECT string_agg('a', '') AS s FROM range(100000)), range(1000000000) r WHERE s || r.range LIKE '%a_a'
SELECT max(length(s || s)) FROM (SELECT s || s AS s FROM (SELECT s || s AS s FROM (SELECT s || s AS s FROM (SELECT s || s AS s FROM (SELECT s || s AS s FROM (SELECT s || s AS s FROM (SELECT string_agg(a.range, '') || b.range AS s FROM range(1000) a, range(100000) b GROUP BY b.range)))))))
-- Pivots, series and JSON
FROM (PIVOT (SELECT range % 1000000 AS i, range AS v FROM range(1000000000)) ON i IN (1, 2, 3) USING count(v))
SELECT count(*) FROM generate_series(TIMESTAMPTZ '1970-01-01', TIMESTAMPTZ '9999-01-01', INTERVAL 1 MICROSECOND)
SELECT max(len(j::VARCHAR)) FROM (SELECT json_group_object(range::VARCHAR, range) AS j FROM range(1000000000))
SELECT count(*) FROM (SELECT unnest(l) AS u FROM (SELECT list(range) AS l FROM range(1000000)), range(1000000000)) WHERE hash(u) = 2
SELECT count(*) FROM promql('count(count_over_time({__name__=~".+"}[1h:1ms]))', now() - INTERVAL 1 HOUR, now(), '1m')
