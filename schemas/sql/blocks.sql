-- Macros through which plain DuckDB (1.3 or later) reads Promlake blocks. `block` is the path of a block, without a slash at its end, or a
-- pattern of such paths:
--
--     .read schemas/sql/blocks.sql
--     SELECT metric, count(*), avg(value) FROM promlake_block_samples('data/v1/anonymous/blocks/24h/20231114T0000Z/*') GROUP BY metric;
--     SELECT l_instance, max(value) FROM promlake_block_labelled('data/v1/anonymous/blocks/*/*/*') WHERE metric = 'up' GROUP BY ALL;
--
-- A block that a larger one has replaced stays in the store for a while: the blocks that count are those that manifest.json names (field
-- `blocks`). Several live blocks may hold a sample of the same series and time; then the one with the higher `rank` (meta.json) counts.
-- These macros return both.
--
-- series_id is that of segments and of other blocks, so results join on (metric, series_id). Two label sets may share an id by
-- accident (64 bits); in the block where they meet, one of them has another. Within a block an id is one series.
-- A label that a series lacks is '' or NULL. Stale markers are NaN. Values nearer to 0 than 5e-293 may be 0.

-- One row per series and block: series_id, metric, a column l_<name> per label, the MAP `labels` of the labels without a column, if any,
-- samples, histograms and exemplars (how many), min_ts and max_ts (over all three), and block, the block's path.
CREATE OR REPLACE MACRO promlake_block_series(block) AS TABLE
SELECT series_id, COLUMNS('^(metric|l_.*|labels)$'), row_count AS samples, hist_count AS histograms, ex_count AS exemplars,
       min_ts, max_ts, parse_dirpath(filename) AS block
FROM read_parquet(block || '/series.parquet', union_by_name = true, hive_partitioning = false, filename = true);

-- One row per float sample: metric, series_id, ts (TIMESTAMP WITH TIME ZONE, ms), value (DOUBLE).
CREATE OR REPLACE MACRO promlake_block_samples(block) AS TABLE
SELECT metric, series_id, ts, v_int / v_div AS value
FROM read_parquet(block || '/samples-*.parquet', union_by_name = true, hive_partitioning = false);

-- One row per float sample with the labels of its series: all columns of promlake_block_samples, and l_<name> ..., labels.
CREATE OR REPLACE MACRO promlake_block_labelled(block) AS TABLE
SELECT samples.metric, series_id, ts, v_int / v_div AS value, series.* EXCLUDE (series_id, metric, block)
FROM (
    SELECT *, parse_dirpath(filename) AS block
    FROM read_parquet(block || '/samples-*.parquet', union_by_name = true, hive_partitioning = false, filename = true)
) AS samples
JOIN (
    SELECT series_id, COLUMNS('^(metric|l_.*|labels)$'), parse_dirpath(filename) AS block
    FROM read_parquet(block || '/series.parquet', union_by_name = true, hive_partitioning = false, filename = true)
) AS series USING (block, metric, series_id);

-- One row per native histogram sample: count and sum of observations, and `histogram`, the sample as an
-- io.prometheus.write.v2.Histogram message (remote-write 2.0). For blocks that hold histograms.
CREATE OR REPLACE MACRO promlake_block_histograms(block) AS TABLE
SELECT metric, series_id, ts, count, sum, h AS histogram
FROM read_parquet(block || '/histograms-*.parquet', union_by_name = true, hive_partitioning = false);

-- One row per exemplar: ts, value, and its labels as a JSON object. For blocks that hold exemplars.
CREATE OR REPLACE MACRO promlake_block_exemplars(block) AS TABLE
SELECT metric, series_id, ts, value, labels
FROM read_parquet(block || '/exemplars.parquet', union_by_name = true, hive_partitioning = false);

-- One row per metric family: metric, type, unit, help. For blocks that hold metadata.
CREATE OR REPLACE MACRO promlake_block_metadata(block) AS TABLE
SELECT metric, type, unit, help
FROM read_parquet(block || '/metadata.parquet', union_by_name = true, hive_partitioning = false);
