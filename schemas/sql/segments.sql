-- Macros through which plain DuckDB (1.3 or later) reads Promlake segments. `files` is a path, a pattern or a list of paths:
--
--     .read schemas/sql/segments.sql
--     SELECT job, count(*) FROM (SELECT l_job AS job FROM promlake_series('data/v1/anonymous/segments/*/*.parquet')) GROUP BY job;
--     SELECT ts, value FROM promlake_samples('data/v1/anonymous/segments/*/*.parquet') WHERE metric = 'up' ORDER BY ts;
--
-- series_id is the same for a series in every file, so results join on (metric, series_id). Two label sets may share an id by
-- accident (64 bits); Promlake's own queries tell them apart, these macros do not. A label that a series lacks is '' or NULL.
-- Stale markers are the NaN 0x7ff0000000000002. If two files hold the same timestamp of a series, the
-- sample of the file with the higher rank counts, as package live (internal/store/live) defines it. The
-- macros do not apply deletions, and they count floats and histograms apart.

-- The rank of each file (schemas/manifest.md): when the store received it, or the write queue if its
-- name ends in -q; its name decides between files of one time. Times of the store are whole seconds
-- here, so in a directory the name may decide between files of one second. A copy must keep the times
-- of the files.
CREATE OR REPLACE MACRO promlake_ranks(files) AS TABLE
SELECT file, {'ms': CASE WHEN ends_with(name, '-q')
                         THEN list_sum([(strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(name, i + 1, 1)) - 1)::BIGINT << (45 - 5 * i) FOR i IN range(10)])::BIGINT
                         ELSE epoch_ms(last_modified) END, 'name': name} AS rank
FROM (SELECT filename AS file, parse_filename(filename, true) AS name, last_modified FROM read_blob(files));

-- One row per series: series_id, metric, a column l_<name> per label, and the MAP `labels` of the labels without a column, if any.
CREATE OR REPLACE MACRO promlake_series(files) AS TABLE
SELECT series_id, any_value(COLUMNS('^(metric|l_.*|labels)$')) AS '\0'
FROM read_parquet(files, union_by_name = true, hive_partitioning = false)
GROUP BY metric, series_id;

-- One row per float sample: metric, series_id, ts (TIMESTAMP WITH TIME ZONE, ms), value (DOUBLE).
CREATE OR REPLACE MACRO promlake_samples(files) AS TABLE
SELECT metric, series_id, ts, arg_max(value, rank) AS value
FROM (
    SELECT metric, series_id, filename AS file, unnest(ts) AS ts, unnest(value) AS value
    FROM read_parquet(files, union_by_name = true, hive_partitioning = false, filename = true)
)
JOIN promlake_ranks(files) USING (file)
GROUP BY metric, series_id, ts;

-- One row per native histogram sample: count and sum of observations, and `histogram`, the sample as an
-- io.prometheus.write.v2.Histogram message (remote-write 2.0). For files that hold histograms.
CREATE OR REPLACE MACRO promlake_histograms(files) AS TABLE
SELECT metric, series_id, ts, arg_max(h_count, rank) AS count, arg_max(h_sum, rank) AS sum, arg_max(h, rank) AS histogram
FROM (
    SELECT metric, series_id, filename AS file, unnest(h_ts) AS ts, unnest(h_count) AS h_count, unnest(h_sum) AS h_sum, unnest(h) AS h
    FROM read_parquet(files, union_by_name = true, hive_partitioning = false, filename = true)
)
JOIN promlake_ranks(files) USING (file)
GROUP BY metric, series_id, ts;

-- One row per exemplar: ts, value, and its labels as a JSON object. For files that hold exemplars.
CREATE OR REPLACE MACRO promlake_exemplars(files) AS TABLE
SELECT DISTINCT metric, series_id, unnest(ex_ts) AS ts, unnest(ex_value) AS value, unnest(ex_labels) AS labels
FROM read_parquet(files, union_by_name = true, hive_partitioning = false);
