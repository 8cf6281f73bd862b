-- Macros through which plain DuckDB (1.3 or later) reads Promlake rollups. `files` is a path, a pattern or a list of paths of one step:
--
--     .read schemas/sql/rollups.sql
--     SELECT bucket, max FROM promlake_rollup('data/v1/anonymous/blocks/24h/*/*/rollup-1h.parquet') WHERE metric = 'up' ORDER BY bucket;
--
-- bucket is the start of a bucket and does not belong to it; its end does: (bucket, bucket + step]. Read the blocks that are live according
-- to the manifest: where two files overlap, a bucket may come twice, and neither row stands for both.

-- One row per series and bucket. What there is no sample for is NULL. increase is corrected for counter resets and not extrapolated.
CREATE OR REPLACE MACRO promlake_rollup(files) AS TABLE
SELECT metric, series_id, bucket, count,
       CASE WHEN count > 0 THEN first END AS first,
       CASE WHEN count > 0 THEN last END AS last,
       CASE WHEN count > 0 THEN min END AS min,
       CASE WHEN count > 0 THEN max END AS max,
       CASE WHEN count > 0 THEN CASE WHEN isinf(sum) THEN sum ELSE sum + sum_c END END AS sum,
       CASE WHEN count > 0 THEN CASE WHEN isinf(sum) THEN sum ELSE sum / count + sum_c / count END END AS avg,
       CASE WHEN count > 0 THEN CASE WHEN resets > 0 THEN last - first + reset_sum ELSE last - first END END AS increase,
       resets, changes, nans,
       CASE WHEN count > 0 THEN first_ts END AS first_ts,
       CASE WHEN count > 0 THEN last_ts END AS last_ts,
       stale,
       CASE WHEN stale > 0 THEN stale_ts END AS stale_ts
FROM (
    SELECT * REPLACE (
               CASE WHEN flags & 4 = 0 THEN min WHEN last < first THEN last ELSE first END AS min,
               CASE WHEN flags & 8 = 0 THEN max WHEN last > first AND NOT isnan(last) THEN last ELSE first END AS max,
               CASE WHEN flags & 64 = 0 THEN sum ELSE sum - sum_c END AS sum)
    FROM (
        SELECT metric, series_id, bucket, flags, count, first_ts, last_ts, nans, changes, resets, stale, stale_ts, sum_c,
               (first_int + ends) / first_div AS first, last_int / last_div AS last,
               (min_int + CASE WHEN flags & 128 = 0 THEN 0 ELSE last_int END) / min_div AS min,
               (max_int + CASE WHEN flags & 8 = 0 THEN ends ELSE 0 END) / max_div AS max,
               (sum_int + count * sums) / sum_div AS sum, (reset_sum_int + resets * sums) / reset_sum_div AS reset_sum
        FROM (
            SELECT *, CASE WHEN flags & 16 = 0 THEN 0 ELSE last_int END AS ends, CASE WHEN flags & 32 = 0 THEN 0 ELSE last_int END AS sums
            FROM read_parquet(files, hive_partitioning = false)
        )
    )
);
