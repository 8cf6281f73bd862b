// The series that the dashboards of this folder ask for. Those whose name says that they count grow
// with time.

const each = (names, labels) => names.map((name) => `${name}{${labels}}`);
const buckets = (name, labels, ...bounds) => [...bounds, "+Inf"].map((le) => `${name}_bucket{${labels},le="${le}"}`).concat(`${name}_sum{${labels}}`, `${name}_count{${labels}}`);

const prometheus = 'job="prom",instance="prom-1:9090"';
const alertmanager = 'job="alertmanager",instance="am-1:9093"';
const probe = 'job="blackbox",instance="https://example.com"';
const docker = 'job="cadvisor",instance="docker-1:8080"';
const postgres = 'instance="pg-1:9187"';
const mysql = 'instance="mysql-1:9104"';
const redis = 'namespace="shop",instance="redis-1:9121"';
const nginx = 'instance="nginx-1:9113"';

const all = [
  `prometheus_build_info{${prometheus},version="3.5.0"}`,
  ...each(["process_start_time_seconds", "prometheus_target_scrapes_exceeded_body_size_limit_total", "prometheus_target_scrapes_sample_out_of_order_total", "prometheus_tsdb_head_samples_appended_total", "prometheus_tsdb_head_series"], prometheus),
  `prometheus_target_sync_length_seconds_sum{${prometheus},scrape_job="node"}`,
  `prometheus_sd_discovered_targets{${prometheus},config="node"}`,
  ...["inner_eval", "queue_time"].map((slice) => `prometheus_engine_query_duration_seconds{${prometheus},slice="${slice}",quantile="0.9"}`),
  ...buckets("prometheus_http_response_size_bytes", `${prometheus},handler="/api/v1/query"`, 100, 10_000, 1_000_000),
  ...["/api/v1/query", "/metrics"].map((handler) => `prometheus_http_requests_total{${prometheus},handler="${handler}",code="200"}`),

  `alertmanager_alerts{${alertmanager},state="active"}`,
  ...each(["alertmanager_alerts_received_total", "alertmanager_alerts_invalid_total"], alertmanager),
  ...["email", "webhook"].flatMap((integration) => [...each(["alertmanager_notifications_total", "alertmanager_notifications_failed_total"], `${alertmanager},integration="${integration}"`), ...buckets("alertmanager_notification_latency_seconds", `${alertmanager},integration="${integration}"`, 1, 5, 10)]),

  ...each(["probe_success", "probe_duration_seconds", "probe_http_status_code", "probe_ssl_earliest_cert_expiry", "probe_http_ssl", "probe_dns_lookup_time_seconds"], probe),
  ...["connect", "processing", "tls"].map((phase) => `probe_http_duration_seconds{${probe},phase="${phase}"}`),

  ...["web", "db"].flatMap((name) => each(["container_cpu_usage_seconds_total", "container_last_seen", "container_memory_rss", "container_memory_cache", "container_network_receive_bytes_total", "container_network_transmit_bytes_total", "container_start_time_seconds"], `${docker},name="${name}",image="${name}:1"`)),

  `pg_static{${postgres},short_version="17.2.0"}`,
  ...each(["pg_up", "pg_postmaster_start_time_seconds", "pg_settings_max_connections", "pg_settings_shared_buffers_bytes", "pg_settings_work_mem_bytes", "process_cpu_seconds_total"], postgres),
  ...["shop", "billing"].flatMap((datname) => [...each(["pg_stat_database_tup_fetched", "pg_stat_database_blks_hit", "pg_stat_database_blks_read", "pg_stat_database_xact_commit", "pg_stat_database_xact_rollback"], `${postgres},datname="${datname}"`), `pg_stat_activity_count{${postgres},datname="${datname}",state="active"}`, `pg_locks_count{${postgres},datname="${datname}",mode="accesssharelock"}`]),

  ...each(["mysql_up", "mysql_global_status_uptime", "mysql_global_status_queries", "mysql_global_variables_innodb_buffer_pool_size", "node_memory_MemTotal_bytes", "mysql_global_status_threads_connected", "mysql_global_status_max_used_connections", "mysql_global_variables_max_connections", "mysql_global_status_threads_running"], mysql),
  ...["select", "insert"].map((command) => `mysql_global_status_commands_total{${mysql},command="${command}"}`),

  ...each(["redis_up", "redis_uptime_in_seconds", "redis_connected_clients", "redis_memory_used_bytes", "redis_memory_max_bytes", "redis_keyspace_hits_total", "redis_keyspace_misses_total", "redis_net_input_bytes_total", "redis_net_output_bytes_total"], redis),
  ...each(["redis_db_keys", "redis_db_keys_expiring"], `${redis},db="db0"`),
  ...["get", "set"].map((cmd) => `redis_commands_total{${redis},cmd="${cmd}"}`),

  ...each(["nginx_up", "nginx_connections_accepted", "nginx_connections_handled", "nginx_connections_active", "nginx_connections_reading", "nginx_connections_waiting", "nginx_connections_writing", "nginx_http_requests_total"], nginx),
];

const counts = /(_total|_sum|_seconds_count|_bucket|_uptime|_queries|_accepted|_handled|_commit|_rollback|_fetched|_hit|_read)\{/;
const fixed = [[/_start_time_seconds\{/, (now) => now / 1000 - 86_400], [/cert_expiry\{/, (now) => now / 1000 + 30 * 86_400], [/_up\{|success|_ssl\{/, () => 1], [/status_code\{/, () => 200], [/memory_max|MemTotal|db_keys\{/, () => 1000]];

// exposition is the text of all series for the four minutes before now (in ms).
export function exposition(now) {
  const lines = [];
  all.forEach((series, i) => {
    const value = fixed.find(([name]) => name.test(series))?.[1];
    for (let t = now - 240_000; t <= now; t += 15_000) lines.push(`${series} ${value ? value(now) : counts.test(series) ? Math.floor((t / 1000) % 1e6) * (i + 1) : 10 + (i % 7)} ${t}`);
  });
  return lines.join("\n") + "\n";
}
