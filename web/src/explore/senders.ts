// Sender is a collector of metrics, and what makes it write to this server.
export interface Sender {
  name: string;
  file: string; // where the text belongs
  text: string;
}

// senders lists the collectors. url is the server's address without a slash at its end. With token,
// the texts have TOKEN where the token belongs; a tenant is in a header.
export function senders(url: string, token: boolean, tenant: string): Sender[] {
  const id = JSON.stringify(tenant);
  const auth = (text: string) => (token ? text : "");
  const org = (text: string) => (tenant ? text : "");
  return [
    {
      name: "Prometheus",
      file: "prometheus.yml",
      text: `remote_write:
  - url: ${url}/api/v1/write
${auth("    authorization:\n      credentials: TOKEN\n")}${org(`    headers:\n      X-Scope-OrgID: ${id}\n`)}`,
    },
    {
      name: "OpenTelemetry Collector",
      file: "the Collector's configuration; applications send to its port 4318",
      text: `receivers:
  otlp:
    protocols:
      http:
        endpoint: 0.0.0.0:4318
exporters:
  otlphttp/promlake:
    endpoint: ${url}/otlp
    compression: zstd
${token || tenant ? "    headers:\n" : ""}${auth("      Authorization: Bearer TOKEN\n")}${org(`      X-Scope-OrgID: ${id}\n`)}service:
  pipelines:
    metrics:
      receivers: [otlp]
      exporters: [otlphttp/promlake]
`,
    },
    {
      name: "Telegraf",
      file: "telegraf.conf",
      text: `[[outputs.influxdb_v2]]
  urls = ["${url}"]
${auth('  token = "TOKEN"\n')}  organization = "any"
  bucket = "telegraf"
  content_encoding = "gzip"
${org(`  http_headers = {"X-Scope-OrgID" = ${id}}\n`)}`,
    },
    {
      name: "Grafana Alloy",
      file: "config.alloy; it collects the metrics of Alloy's machine",
      text: `prometheus.exporter.unix "machine" { }

prometheus.scrape "machine" {
  targets    = prometheus.exporter.unix.machine.targets
  forward_to = [prometheus.remote_write.promlake.receiver]
}

prometheus.remote_write "promlake" {
  endpoint {
    url = "${url}/api/v1/write"
${auth('    bearer_token = "TOKEN"\n')}${org(`    headers = { "X-Scope-OrgID" = ${id} }\n`)}  }
}
`,
    },
  ];
}
