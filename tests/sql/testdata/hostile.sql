-- Statements that must be refused, one a line. {file} is a CSV file with a secret, {parquet}, {json} and {db} are files of these
-- formats, {dir} is their directory, {out} is a file that must not appear. Lines of comments are headings.
-- Files as tables
SELECT * FROM '{file}'
SELECT * FROM "{file}"
FROM '{file}'
FROM '{parquet}'
FROM '{json}'
FROM '{dir}/*'
FROM '{dir}/**/*.csv'
FROM 'file://{file}'
FROM '/etc/passwd'
FROM '/proc/self/environ'
FROM '/proc/self/cmdline'
SELECT (SELECT count(*) FROM '{file}')
SELECT * FROM samples JOIN '{file}' ON true
SELECT * FROM samples WHERE metric IN (SELECT column0 FROM '{file}')
WITH x AS (FROM '{file}') FROM x
WITH x AS (SELECT 1) FROM '{file}'
WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT 1 FROM '{file}') FROM x
SELECT EXISTS (FROM '{file}')
VALUES ((SELECT column0 FROM '{file}'))
DESCRIBE '{file}'
DESCRIBE SELECT * FROM '{file}'
SUMMARIZE '{file}'
SUMMARIZE FROM '{file}'
SHOW '{file}'
EXPLAIN FROM '{file}'
EXPLAIN ANALYZE FROM '{file}'
SELECT * FROM (VALUES (1)) t, LATERAL (FROM '{file}')
SELECT 1 UNION ALL FROM '{file}'
SELECT 1 EXCEPT SELECT column0 FROM '{file}'
SELECT 1 ORDER BY (SELECT count(*) FROM '{file}')
SELECT count(*) FILTER (WHERE EXISTS (FROM '{file}')) FROM samples
SELECT [x FOR x IN (SELECT list(column0) FROM '{file}')]
-- Functions that read files
SELECT * FROM read_csv('{file}')
SELECT * FROM read_csv_auto('{file}')
SELECT * FROM read_csv(['{file}', '{file}'])
SELECT * FROM read_parquet('{parquet}')
SELECT * FROM parquet_scan('{parquet}')
SELECT * FROM parquet_metadata('{parquet}')
SELECT * FROM parquet_schema('{parquet}')
SELECT * FROM parquet_file_metadata('{parquet}')
SELECT * FROM parquet_kv_metadata('{parquet}')
SELECT * FROM parquet_full_metadata('{parquet}')
SELECT * FROM parquet_bloom_probe('{parquet}', 'a', 1)
SELECT * FROM read_json('{json}')
SELECT * FROM read_json_auto('{json}')
SELECT * FROM read_json_objects('{json}')
SELECT * FROM read_json_objects_auto('{json}')
SELECT * FROM read_ndjson('{json}')
SELECT * FROM read_ndjson_auto('{json}')
SELECT * FROM read_ndjson_objects('{json}')
SELECT * FROM read_ndjson_objects_auto('{json}')
SELECT * FROM read_text('{file}')
SELECT * FROM read_text('/proc/self/environ')
SELECT * FROM read_blob('{file}')
SELECT * FROM read_duckdb('{db}')
SELECT * FROM sniff_csv('{file}')
SELECT * FROM glob('{dir}/*')
SELECT * FROM glob('/etc/*')
SELECT * FROM arrow_scan(1, 2, 3)
SELECT * FROM arrow_scan_dumb(1, 2, 3)
SELECT * FROM seq_scan('samples')
SELECT * FROM READ_TEXT('{file}')
SELECT * FROM "read_text"('{file}')
SELECT * FROM main.read_text('{file}')
SELECT * FROM system.main.read_text('{file}')
SELECT (SELECT content FROM read_text('{file}'))
SELECT * FROM samples, read_text('{file}')
WITH x AS (FROM read_text('{file}')) FROM x
DESCRIBE FROM read_text('{file}')
SUMMARIZE FROM read_csv('{file}')
EXPLAIN ANALYZE FROM read_text('{file}')
SELECT * FROM query('SELECT * FROM read_text(''{file}'')')
SELECT * FROM query_table('{file}')
SELECT * FROM query_table(['samples', '{file}'])
SELECT * FROM query('COPY samples TO ''{out}''')
SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))
PRAGMA json_execute_serialized_sql('{}')
SELECT json_serialize_sql('SELECT 1')
SELECT json_deserialize_sql('{}')
SELECT json_serialize_plan('FROM read_text(''{file}'')')
-- Network and object stores
FROM 'http://127.0.0.1:1/x.csv'
FROM 'https://example.com/x.parquet'
FROM 's3://bucket/x.parquet'
FROM 'gcs://bucket/x.parquet'
FROM 'r2://bucket/x.parquet'
FROM 'hf://datasets/a/b.csv'
FROM 'azure://container/x.parquet'
SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')
SELECT * FROM read_parquet('s3://bucket/x')
SELECT * FROM read_text('http://169.254.169.254/latest/meta-data/')
SELECT * FROM delta_scan('s3://x')
SELECT * FROM iceberg_scan('s3://x')
SELECT * FROM postgres_scan('host=localhost', 'public', 't')
SELECT * FROM postgres_query('db', 'SELECT 1')
SELECT * FROM sqlite_scan('{db}', 't')
SELECT * FROM mysql_query('db', 'SELECT 1')
SELECT * FROM st_read('{file}')
SELECT http_get('http://127.0.0.1:1/')
-- Writing
COPY samples TO '{out}'
COPY (SELECT 1) TO '{out}' (FORMAT csv)
COPY (SELECT 1) TO '{out}' (FORMAT parquet)
COPY (SELECT 1) TO '/dev/stdout'
COPY samples FROM '{file}'
COPY FROM DATABASE memory TO x
EXPORT DATABASE '{out}'
IMPORT DATABASE '{dir}'
CREATE TABLE t AS SELECT 1
CREATE TABLE t (i INTEGER)
CREATE TEMP TABLE t AS SELECT 1
CREATE OR REPLACE TABLE samples AS SELECT 1
CREATE VIEW v AS SELECT 1
CREATE OR REPLACE VIEW samples AS SELECT 1
CREATE TEMP VIEW samples AS SELECT 1
CREATE MACRO f(x) AS x
CREATE OR REPLACE MACRO abs(x) AS 1
CREATE MACRO g() AS TABLE FROM '{file}'
CREATE FUNCTION f(x) AS x
CREATE SCHEMA s
CREATE SEQUENCE s
CREATE TYPE e AS ENUM ('a')
CREATE INDEX i ON samples (metric)
CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b')
CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')
DROP VIEW samples
DROP VIEW IF EXISTS series
DROP SECRET s
DROP SCHEMA main CASCADE
ALTER VIEW samples RENAME TO x
ALTER TABLE samples ADD COLUMN x INTEGER
COMMENT ON VIEW samples IS 'x'
INSERT INTO samples VALUES (1)
INSERT INTO samples SELECT * FROM '{file}'
UPDATE samples SET value = 1
DELETE FROM samples
TRUNCATE samples
MERGE INTO samples USING (SELECT 1) x ON true WHEN MATCHED THEN DELETE
WITH x AS (INSERT INTO samples VALUES (1) RETURNING *) FROM x
WITH x AS (SELECT 1) INSERT INTO samples SELECT * FROM x
WITH x AS (SELECT 1) DELETE FROM samples
SELECT 1 INTO x
EXPLAIN INSERT INTO samples VALUES (1)
EXPLAIN COPY samples TO '{out}'
EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'
EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1
EXPLAIN ANALYZE DELETE FROM samples
EXPLAIN EXPLAIN SELECT 1
-- Databases, extensions, settings
ATTACH '{db}'
ATTACH '{db}' AS x (READ_ONLY)
ATTACH ':memory:' AS x
ATTACH 'http://127.0.0.1:1/x.db'
ATTACH IF NOT EXISTS '{db}'
ATTACH OR REPLACE '{db}' AS memory
DETACH memory
USE memory
USE x.main
INSTALL httpfs
FORCE INSTALL httpfs
INSTALL httpfs FROM community
INSTALL httpfs FROM 'http://127.0.0.1:1'
LOAD httpfs
LOAD '{file}'
UPDATE EXTENSIONS
SET memory_limit = '100GB'
SET enable_external_access = true
SET GLOBAL enable_external_access = true
SET lock_configuration = false
SET temp_directory = '{dir}'
SET home_directory = '{dir}'
SET secret_directory = '{dir}'
SET allowed_directories = ['{dir}']
SET allowed_paths = ['{file}']
SET threads = 1000
SET custom_user_agent = 'x'
SET logging_level = 'trace'
SET profiling_output = '{out}'
SET SESSION search_path = 'system'
SET VARIABLE x = 1
SET VARIABLE x = (SELECT content FROM read_text('{file}'))
RESET memory_limit
RESET GLOBAL lock_configuration
RESET VARIABLE x
PRAGMA memory_limit = '100GB'
PRAGMA enable_profiling
PRAGMA profiling_output = '{out}'
PRAGMA enable_logging
PRAGMA database_list
PRAGMA database_size
PRAGMA version
PRAGMA platform
PRAGMA user_agent
PRAGMA storage_info('samples')
PRAGMA table_info('samples')
PRAGMA show_tables
PRAGMA functions
PRAGMA import_database('{dir}')
PRAGMA extension_versions
PRAGMA metadata_info
PRAGMA disable_optimizer
PRAGMA disable_verification
PRAGMA force_checkpoint
PRAGMA add_parquet_key('a', 'b')
CALL pragma_version()
CALL enable_logging()
CALL duckdb_settings()
CALL truncate_duckdb_logs()
CALL read_text('{file}')
CHECKPOINT
FORCE CHECKPOINT
VACUUM
ANALYZE
BEGIN
BEGIN TRANSACTION
COMMIT
ROLLBACK
ABORT
PREPARE p AS SELECT 1
EXECUTE p
DEALLOCATE p
KILL 1
-- What the process is
SELECT * FROM duckdb_settings()
SELECT * FROM duckdb_extensions()
SELECT * FROM duckdb_secrets()
SELECT * FROM duckdb_databases()
SELECT * FROM duckdb_functions()
SELECT * FROM duckdb_memory()
SELECT * FROM duckdb_temporary_files()
SELECT * FROM duckdb_external_file_cache()
SELECT * FROM duckdb_logs
SELECT * FROM duckdb_logs()
SELECT * FROM duckdb_log_contexts()
SELECT * FROM duckdb_variables()
SELECT * FROM duckdb_views()
SELECT * FROM duckdb_tables
SELECT * FROM duckdb_columns
SELECT * FROM duckdb_prepared_statements()
SELECT * FROM duckdb_connection_count()
SELECT * FROM duckdb_profiling_settings()
SELECT * FROM which_secret('s3://x', 's3')
SELECT * FROM pragma_version()
SELECT * FROM pragma_user_agent()
SELECT * FROM pragma_database_size()
SELECT * FROM pragma_platform()
SELECT * FROM pragma_database_list
SELECT * FROM pragma_table_info('samples')
SELECT * FROM pragma_storage_info('samples')
SELECT * FROM pragma_metadata_info()
SELECT * FROM sqlite_master
SELECT * FROM pg_catalog.pg_settings
SELECT * FROM pg_settings
SELECT * FROM pg_catalog.pg_tables
SELECT * FROM system.main.duckdb_tables
SELECT * FROM information_schema.character_sets
SELECT * FROM information_schema.views
SELECT * FROM temp.information_schema.tables
SELECT * FROM sql_auto_complete('SEL')
SELECT * FROM check_peg_parser('SELECT 1')
SELECT * FROM test_all_types()
SELECT * FROM test_vector_types(1)
SELECT * FROM icu_calendar_names()
SELECT * FROM pg_timezone_names()
SELECT getenv('HOME')
SELECT getenv('PROMLAKE_TEST_SECRET')
SELECT current_setting('temp_directory')
SELECT current_setting('memory_limit')
SELECT getvariable('x')
SELECT current_query()
SELECT current_connection_id()
SELECT current_transaction_id()
SELECT txid_current()
SELECT write_log('x')
SELECT parse_duckdb_log_message('x', 'y')
SELECT pg_sleep(1000)
SELECT sleep_ms(1000000)
SELECT pg_postmaster_start_time()
SELECT inet_server_addr()
SELECT nextval('s')
SELECT setseed(0.5)
SELECT get_block_size('memory')
SELECT pg_catalog.current_setting('temp_directory')
SELECT "current_setting"('temp_directory')
SELECT Current_Setting('temp_directory')
SELECT list_transform(['temp_directory'], x -> current_setting(x))
SELECT list_transform(['temp_directory'], lambda x: current_setting(x))
SELECT 'temp_directory'.current_setting()
SELECT max(current_setting('temp_directory')) OVER () FROM samples
SELECT 1 FROM samples GROUP BY current_setting('temp_directory')
SELECT 1 FROM samples HAVING current_setting('temp_directory') > ''
SELECT 1 FROM samples QUALIFY current_setting('temp_directory') > ''
SELECT 1 LIMIT (SELECT length(current_setting('temp_directory')))
SHOW DATABASES
SHOW SCHEMAS
SHOW memory_limit
SHOW VARIABLES
SELECT __internal_compress_string_utinyint('a')
SELECT * FROM promlake_scan('samples#1')
SELECT * FROM promlake_scan('series')
SELECT * FROM promlake_view_samples
SELECT * FROM prom_rows(1)
SELECT * FROM prom_rate(1, 2, 3, 4)
SELECT system.main.prom_rate(0::UBIGINT, ts::TIMESTAMP, value, 'start=0 step=1 n=16777216 range=1') FROM samples
SELECT main.prom_rate(ts, value, ts, ts) FROM samples
SELECT prom_rate(ts, value, ts, ts) OVER (ORDER BY ts) FROM samples
SELECT system.main.prom_rate(ts, value, INTERVAL 1 MINUTE) OVER (ORDER BY ts) FROM samples
SELECT prom_rate(ts, value, INTERVAL 1 MINUTE) OVER () FROM samples
SELECT metric, prom_rate(ts, value, INTERVAL 1 MINUTE ORDER BY ts) FROM samples GROUP BY metric
SELECT prom_rate(ts, value, INTERVAL 1 MINUTE) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM samples
SELECT prom_binary('+', [1.0::DOUBLE], [value]) OVER (ORDER BY ts) FROM samples
SELECT prom_sum([value]) OVER (ORDER BY ts) FROM samples
SELECT prom_sum([value] ORDER BY ts) FROM samples
SELECT prom_grid('2026-01-01', '2026-01-02', INTERVAL 1 DAY) OVER (ORDER BY ts) FROM samples
SELECT prom_unpack(''::BLOB)
SELECT prom_at(1::UINTEGER, 'x'::BLOB)
SELECT prom_rate(0::UBIGINT, ts::TIMESTAMP, 1, 1.0, 'start=0 step=1 n=1 range=1 budget=1') FROM samples
-- More than one statement, and none
SELECT 1; SELECT 2
SELECT 1; COPY samples TO '{out}'
SELECT 1; ATTACH '{db}'
SET threads = 1; SELECT 1
SELECT 1 /* ; */ ; DROP VIEW samples --
;
--
/* nothing */
EXPLAIN
SELECT
SELEC 1
SELECT * FROM
SELECT (1
.read {file}
.shell ls
\copy samples to '{out}'
-- Names that pretend to be something else
WITH duckdb_settings AS (SELECT 1) SELECT * FROM duckdb_settings
WITH pg_settings AS (SELECT 1) FROM pg_settings
SELECT * FROM memory.main."{file}"
SELECT * FROM main."{file}"
SELECT * FROM x.samples
SELECT * FROM temp.samples
SELECT * FROM system.samples
FROM samples AT (VERSION => 1)
FROM samples AT (TIMESTAMP => now())
-- Values of any size
SELECT repeat('x', 4000000000)
SELECT lpad('x', 2000000000, 'y')
SELECT rpad('x', 2000000000, 'y')
SELECT range(1000000000000)
SELECT generate_series(1, 1000000000000)
SELECT list_resize([1], 1000000000000)
SELECT format('{:1000000000}', 1)
SELECT printf('%1000000000d', 1)
SELECT bar(1, 0, 1, 1000000000)
SELECT ((((((((((((((((((((1))))))))))))))))))) FROM samples
-- Arguments of Promlake's functions
FROM promql('up[', now(), now(), '1m')
FROM promql(NULL, now(), now(), '1m')
FROM promql('up', 'yesterday', now(), '1m')
FROM promql('up', now(), now() - INTERVAL 1 HOUR, '1m')
FROM promql('up', now(), now(), 0)
FROM promql('up', now(), now(), '-1m')
FROM promql('up', now(), now(), INTERVAL 1 MONTH)
FROM promql('up')
FROM promql((SELECT content FROM read_text('{file}')), now(), now(), '1m')
FROM promql(getenv('PROMLAKE_TEST_SECRET'), now(), now(), '1m')
FROM promlake_metric(NULL, NULL, NULL)
FROM promlake_metric('up', 'soon', NULL)
FROM promlake_metric('up')
SELECT promql('up', now(), now(), '1m')
-- Functions that nothing interrupts
SELECT levenshtein(s, s) FROM (SELECT string_agg('a', '') AS s FROM range(100000000))
SELECT damerau_levenshtein(s, s) FROM (SELECT string_agg('a', '') AS s FROM range(100000000))
SELECT jaro_winkler_similarity(s, s) FROM (SELECT string_agg('a', '') AS s FROM range(100000000))
SELECT s LIKE p FROM (SELECT string_agg('a', '') AS s FROM range(100000000)), (VALUES ('%a%a%a%a%a%a%a%b')) p(p)
SELECT s LIKE s FROM (SELECT string_agg('%a', '') AS s FROM range(100000000))
SELECT s LIKE '%a_%a%a%a%a%a%a%b' FROM (SELECT string_agg('a', '') AS s FROM range(100000000))
SELECT s NOT LIKE '%a%' || '_a%b' FROM (SELECT string_agg('a', '') AS s FROM range(100000000))
SELECT s ILIKE '%a%a%b' FROM (SELECT string_agg('a', '') AS s FROM range(100000000))
SELECT s LIKE '%a%a%b' ESCAPE '\' FROM (SELECT string_agg('a', '') AS s FROM range(100000000))
SELECT s GLOB '*a*a*b' FROM (SELECT string_agg('a', '') AS s FROM range(100000000))
-- Types whose fields double
WITH a0 AS (SELECT 1 AS x), a1 AS (SELECT {'a': x, 'b': x} AS x FROM a0), a2 AS (SELECT {'a': x, 'b': x} AS x FROM a1), a3 AS (SELECT {'a': x, 'b': x} AS x FROM a2), a4 AS (SELECT {'a': x, 'b': x} AS x FROM a3), a5 AS (SELECT {'a': x, 'b': x} AS x FROM a4), a6 AS (SELECT {'a': x, 'b': x} AS x FROM a5), a7 AS (SELECT {'a': x, 'b': x} AS x FROM a6), a8 AS (SELECT {'a': x, 'b': x} AS x FROM a7), a9 AS (SELECT {'a': x, 'b': x} AS x FROM a8), a10 AS (SELECT {'a': x, 'b': x} AS x FROM a9), a11 AS (SELECT {'a': x, 'b': x} AS x FROM a10), a12 AS (SELECT {'a': x, 'b': x} AS x FROM a11), a13 AS (SELECT {'a': x, 'b': x} AS x FROM a12), a14 AS (SELECT {'a': x, 'b': x} AS x FROM a13), a15 AS (SELECT {'a': x, 'b': x} AS x FROM a14), a16 AS (SELECT {'a': x, 'b': x} AS x FROM a15), a17 AS (SELECT {'a': x, 'b': x} AS x FROM a16), a18 AS (SELECT {'a': x, 'b': x} AS x FROM a17), a19 AS (SELECT {'a': x, 'b': x} AS x FROM a18), a20 AS (SELECT {'a': x, 'b': x} AS x FROM a19) FROM a20
WITH a0 AS (SELECT 1 AS x), a1 AS (SELECT t AS x, t AS y FROM a0 t), a2 AS (SELECT t AS x, t AS y FROM a1 t), a3 AS (SELECT t AS x, t AS y FROM a2 t), a4 AS (SELECT t AS x, t AS y FROM a3 t), a5 AS (SELECT t AS x, t AS y FROM a4 t), a6 AS (SELECT t AS x, t AS y FROM a5 t), a7 AS (SELECT t AS x, t AS y FROM a6 t), a8 AS (SELECT t AS x, t AS y FROM a7 t), a9 AS (SELECT t AS x, t AS y FROM a8 t), a10 AS (SELECT t AS x, t AS y FROM a9 t), a11 AS (SELECT t AS x, t AS y FROM a10 t), a12 AS (SELECT t AS x, t AS y FROM a11 t), a13 AS (SELECT t AS x, t AS y FROM a12 t), a14 AS (SELECT t AS x, t AS y FROM a13 t), a15 AS (SELECT t AS x, t AS y FROM a14 t), a16 AS (SELECT t AS x, t AS y FROM a15 t), a17 AS (SELECT t AS x, t AS y FROM a16 t), a18 AS (SELECT t AS x, t AS y FROM a17 t), a19 AS (SELECT t AS x, t AS y FROM a18 t), a20 AS (SELECT t AS x, t AS y FROM a19 t) FROM a20
WITH a0 AS (SELECT 1 AS x), a1 AS (SELECT row(y, y) AS x FROM a0 t(y)), a2 AS (SELECT row(y, y) AS x FROM a1 t(y)), a3 AS (SELECT row(y, y) AS x FROM a2 t(y)), a4 AS (SELECT row(y, y) AS x FROM a3 t(y)), a5 AS (SELECT row(y, y) AS x FROM a4 t(y)), a6 AS (SELECT row(y, y) AS x FROM a5 t(y)), a7 AS (SELECT row(y, y) AS x FROM a6 t(y)), a8 AS (SELECT row(y, y) AS x FROM a7 t(y)), a9 AS (SELECT row(y, y) AS x FROM a8 t(y)), a10 AS (SELECT row(y, y) AS x FROM a9 t(y)), a11 AS (SELECT row(y, y) AS x FROM a10 t(y)), a12 AS (SELECT row(y, y) AS x FROM a11 t(y)), a13 AS (SELECT row(y, y) AS x FROM a12 t(y)), a14 AS (SELECT row(y, y) AS x FROM a13 t(y)), a15 AS (SELECT row(y, y) AS x FROM a14 t(y)), a16 AS (SELECT row(y, y) AS x FROM a15 t(y)), a17 AS (SELECT row(y, y) AS x FROM a16 t(y)), a18 AS (SELECT row(y, y) AS x FROM a17 t(y)), a19 AS (SELECT row(y, y) AS x FROM a18 t(y)), a20 AS (SELECT row(y, y) AS x FROM a19 t(y)) SELECT count(*) FROM a20
WITH a0 AS (SELECT value AS x FROM samples), a1 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a0), a2 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a1), a3 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a2), a4 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a3), a5 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a4), a6 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a5), a7 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a6), a8 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a7), a9 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a8), a10 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a9), a11 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a10), a12 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a11), a13 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a12), a14 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a13), a15 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a14), a16 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a15), a17 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a16), a18 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a17), a19 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a18), a20 AS (SELECT * REPLACE (map([x], [x]) AS x) FROM a19) SELECT count(x) FROM a20
EXPLAIN WITH a0 AS (SELECT 1 AS x), a1 AS (SELECT {'a': x, 'b': x} AS x FROM a0 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a0), a2 AS (SELECT {'a': x, 'b': x} AS x FROM a1 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a1), a3 AS (SELECT {'a': x, 'b': x} AS x FROM a2 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a2), a4 AS (SELECT {'a': x, 'b': x} AS x FROM a3 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a3), a5 AS (SELECT {'a': x, 'b': x} AS x FROM a4 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a4), a6 AS (SELECT {'a': x, 'b': x} AS x FROM a5 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a5), a7 AS (SELECT {'a': x, 'b': x} AS x FROM a6 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a6), a8 AS (SELECT {'a': x, 'b': x} AS x FROM a7 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a7), a9 AS (SELECT {'a': x, 'b': x} AS x FROM a8 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a8), a10 AS (SELECT {'a': x, 'b': x} AS x FROM a9 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a9), a11 AS (SELECT {'a': x, 'b': x} AS x FROM a10 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a10), a12 AS (SELECT {'a': x, 'b': x} AS x FROM a11 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a11), a13 AS (SELECT {'a': x, 'b': x} AS x FROM a12 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a12), a14 AS (SELECT {'a': x, 'b': x} AS x FROM a13 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a13), a15 AS (SELECT {'a': x, 'b': x} AS x FROM a14 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a14), a16 AS (SELECT {'a': x, 'b': x} AS x FROM a15 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a15), a17 AS (SELECT {'a': x, 'b': x} AS x FROM a16 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a16), a18 AS (SELECT {'a': x, 'b': x} AS x FROM a17 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a17), a19 AS (SELECT {'a': x, 'b': x} AS x FROM a18 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a18), a20 AS (SELECT {'a': x, 'b': x} AS x FROM a19 UNION ALL SELECT {'a': max(x), 'b': any_value(x)} FROM a19) FROM a20
SELECT {'a': 1, 'b': 2} AS a0, {'a': a0, 'b': a0} AS a1, {'a': a1, 'b': a1} AS a2, {'a': a2, 'b': a2} AS a3, {'a': a3, 'b': a3} AS a4, {'a': a4, 'b': a4} AS a5, {'a': a5, 'b': a5} AS a6, {'a': a6, 'b': a6} AS a7, {'a': a7, 'b': a7} AS a8, {'a': a8, 'b': a8} AS a9, {'a': a9, 'b': a9} AS a10, {'a': a10, 'b': a10} AS a11, {'a': a11, 'b': a11} AS a12, {'a': a12, 'b': a12} AS a13, {'a': a13, 'b': a13} AS a14, {'a': a14, 'b': a14} AS a15, {'a': a15, 'b': a15} AS a16, {'a': a16, 'b': a16} AS a17, {'a': a17, 'b': a17} AS a18, {'a': a18, 'b': a18} AS a19
DESCRIBE FROM (SELECT 1 AS x) t0, LATERAL (SELECT {'a': t0.x, 'b': t0.x} AS x) t1, LATERAL (SELECT {'a': t1.x, 'b': t1.x} AS x) t2, LATERAL (SELECT {'a': t2.x, 'b': t2.x} AS x) t3, LATERAL (SELECT {'a': t3.x, 'b': t3.x} AS x) t4, LATERAL (SELECT {'a': t4.x, 'b': t4.x} AS x) t5, LATERAL (SELECT {'a': t5.x, 'b': t5.x} AS x) t6, LATERAL (SELECT {'a': t6.x, 'b': t6.x} AS x) t7, LATERAL (SELECT {'a': t7.x, 'b': t7.x} AS x) t8, LATERAL (SELECT {'a': t8.x, 'b': t8.x} AS x) t9, LATERAL (SELECT {'a': t9.x, 'b': t9.x} AS x) t10, LATERAL (SELECT {'a': t10.x, 'b': t10.x} AS x) t11, LATERAL (SELECT {'a': t11.x, 'b': t11.x} AS x) t12, LATERAL (SELECT {'a': t12.x, 'b': t12.x} AS x) t13, LATERAL (SELECT {'a': t13.x, 'b': t13.x} AS x) t14, LATERAL (SELECT {'a': t14.x, 'b': t14.x} AS x) t15, LATERAL (SELECT {'a': t15.x, 'b': t15.x} AS x) t16, LATERAL (SELECT {'a': t16.x, 'b': t16.x} AS x) t17, LATERAL (SELECT {'a': t17.x, 'b': t17.x} AS x) t18, LATERAL (SELECT {'a': t18.x, 'b': t18.x} AS x) t19
