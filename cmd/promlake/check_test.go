package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented returns the first block of YAML of a page with a text.
func documented(t *testing.T, page, text string) string {
	t.Helper()
	all, err := os.ReadFile(filepath.Join("..", "..", "docs", page+".md"))
	require.NoError(t, err)
	for _, rest := range strings.Split(string(all), "\n```yaml\n")[1:] {
		if block, _, _ := strings.Cut(rest, "\n```"); strings.Contains(block, text) {
			return block
		}
	}
	require.FailNow(t, "no block with "+text)
	return ""
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := file("good_rules.yml", "groups: [{name: g, rules: [{record: a, expr: sum(b)}, {alert: A, expr: b > 1}]}]")
	twice := file("twice.yml", "groups: [{name: g, rules: [{record: a, expr: b}, {record: a, expr: c}, {record: a, expr: d}]}]")
	broken := file("broken.yml", "groups: [{name: g, rules: [{record: a, expr: 'sum('}]}]")
	unknown := file("unknown.yml", "groups: [{name: g, owner: me, rules: [{record: a, expr: b}]}]")
	file("targets.json", `[{"targets": ["host:1"], "labels": {"a": "b"}}]`)
	file("field_targets.json", `[{"targets": ["host:1"], "label": {"a": "b"}}]`)
	file("yaml_targets.yml", "[{targets: [host:1], label: {a: b}}]")
	file("no_json.json", "[{targets: [host:1]}]")
	file("bad_targets.json", `[{"targets": ["http://host:1/"]}]`)

	config := func(name, more string) string {
		return file(name, "rule_files: [good_*.yml]\nscrape_configs: [{job_name: j, static_configs: [{targets: [host:1]}]"+more+"}]\n")
	}
	sections := file("sections.yml", `
remote_write: [{url: "http://x/"}]
tracing: {endpoint: "x:1"}
otlp: {promote_scope_metadata: true}
storage: {tsdb: {out_of_order_time_window: 1h, retention: {time: 1d}}}
global: {query_log_file: q.log}
`)
	for _, tc := range []struct {
		name string
		args []string
		code int
		out  []string
		errs []string
	}{
		{"rules", []string{"rules", good}, 0, []string{"Checking " + good, "  SUCCESS: 2 rules found"}, nil},
		{"duplicate rules", []string{"rules", twice}, 0, nil, []string{"lint error 1 duplicate rule(s) found.", "Metric: a"}},
		{"fatal", []string{"rules", twice, "--lint-fatal"}, 3, nil, []string{"duplicate"}},
		{"without lint", []string{"rules", twice, "--lint", "none", "--lint-fatal"}, 0, []string{"3 rules found"}, nil},
		{"broken expression", []string{"rules", good, broken}, 1, []string{"2 rules found"}, []string{"  FAILED:", "could not parse expression"}},
		{"unknown field", []string{"rules", unknown}, 1, nil, []string{"field owner not found"}},
		{"unknown field ignored", []string{"rules", unknown, "--ignore-unknown-fields"}, 0, []string{"1 rules found"}, nil},
		{"no file", []string{"rules", filepath.Join(dir, "none")}, 1, nil, []string{"no such file"}},
		{"config", []string{"config", config("good.yml", "")}, 0, []string{"SUCCESS: 1 rule files found", "good.yml is valid prometheus config file syntax", "2 rules found"}, nil},
		{"missing rules", []string{"config", file("missing.yml", "rule_files: [none.yml]")}, 1, nil, []string{"does not point to an existing file"}},
		{"missing rules, syntax", []string{"config", "--syntax-only", filepath.Join(dir, "missing.yml")}, 0, nil, nil},
		{"file_sd", []string{"config", config("fsd.yml", ", file_sd_configs: [{files: [targets.json, none.json]}]")}, 0, []string{`none.json" for file_sd in scrape job "j" does not exist`}, nil},
		{"rule files in a row", []string{"config", file("rows.yml", "rule_files: ['good_rule[s].yml', 'none_rule[s].yml']")}, 1, nil, []string{`none_rule[s].yml" does not point to an existing file`}},
		{"misspelled label of file_sd", []string{"config", config("field.yml", ", file_sd_configs: [{files: [field_targets.json]}]")}, 1, nil, []string{"field_targets.json", `unknown field "label"`}},
		{"misspelled label of file_sd, YAML", []string{"config", config("yaml_field.yml", ", file_sd_configs: [{files: [yaml_targets.yml]}]")}, 1, nil, []string{"yaml_targets.yml", "field label not found"}},
		{"YAML in a JSON file", []string{"config", config("no_json.yml", ", file_sd_configs: [{files: [no_json.json]}]")}, 1, nil, []string{"no_json.json", "invalid character"}},
		{"bad file_sd, syntax", []string{"config", "--syntax-only", filepath.Join(dir, "field.yml")}, 0, nil, nil},
		{"bad file_sd", []string{"config", config("bad_fsd.yml", ", file_sd_configs: [{files: [bad_targets.json]}]")}, 1, nil, []string{"bad_targets.json", `"http://host:1/" is not a valid hostname`}},
		{"missing certificate", []string{"config", config("tls.yml", ", tls_config: {ca_file: none.pem}")}, 1, nil, []string{"none.pem"}},
		{"missing certificate, syntax", []string{"config", "--syntax-only", filepath.Join(dir, "tls.yml")}, 0, nil, nil},
		{"certificate with a key in a file", []string{"config", config("key.yml", ", tls_config: {cert: PEM, key_file: good_rules.yml}")}, 0, nil, nil},
		{"certificate of kubernetes_sd", []string{"config", config("k8s_tls.yml", ", kubernetes_sd_configs: [{role: pod, api_server: 'https://k8s.example.com', tls_config: {cert_file: none.pem, key_file: none.key}}]")}, 1, nil, []string{"error checking client cert file", "none.pem"}},
		{"CA of kubernetes_sd", []string{"config", config("k8s_ca.yml", ", kubernetes_sd_configs: [{role: pod, api_server: 'https://k8s.example.com', tls_config: {ca_file: none.pem}}]")}, 0, []string{"k8s_ca.yml is valid"}, nil},
		{"bad target, syntax", []string{"config", "--syntax-only", file("url.yml", "scrape_configs: [{job_name: j, static_configs: [{targets: ['http://host:1/']}]}]")}, 1, nil, []string{`"http://host:1/" is not a valid hostname`}},
		{"bad Alertmanager, syntax", []string{"config", "--syntax-only", file("alertmanager.yml", "alerting: {alertmanagers: [{static_configs: [{targets: ['http://host:1/']}]}]}")}, 1, nil, []string{`"http://host:1/" is not a valid hostname`}},
		{"bad scrape_config_files", []string{"config", file("others.yml", "scrape_config_files: [unknown.yml]")}, 1, nil, []string{"unknown.yml", "field groups not found"}},
		{"bad scrape_config_files, syntax", []string{"config", "--syntax-only", filepath.Join(dir, "others.yml")}, 0, nil, nil},
		{"rules before certificates", []string{"config", file("both.yml", "rule_files: [none.yml]\nscrape_configs: [{job_name: j, tls_config: {ca_file: none.pem}}]")}, 1, nil, []string{`none.yml" does not point to an existing file`}},
		{"long interval", []string{"config", "--lint", "all", "--lint-fatal", config("long.yml", ", scrape_interval: 6m")}, 3, nil, []string{"too long scrape interval found"}},
		{"kubernetes_sd", []string{"config", config("k8s.yml", ", kubernetes_sd_configs: [{role: pod}, {role: endpointslice, api_server: 'https://k8s.example.com', namespaces: {names: [a]}, selectors: [{role: endpointslice, label: 'a=b'}]}]")}, 0, []string{"k8s.yml is valid"}, nil},
		{"bad kubernetes_sd", []string{"config", config("bad_k8s.yml", ", kubernetes_sd_configs: [{role: pods}]")}, 1, nil, []string{`unknown Kubernetes SD role "pods"`}},
		{"absent discovery", []string{"config", config("gce.yml", ", gce_sd_configs: [{project: p, zone: z}]")}, 1, nil, []string{"this program has no gce_sd_configs; build it with make build TAGS=all_sd"}},
		{"absent discoveries", []string{"config", file("many.yml", "scrape_configs: [{job_name: j, gce_sd_configs: [{project: p, zone: z}], ec2_sd_configs: [{region: r}]}, {job_name: k, azure_sd_configs: [{}], gce_sd_configs: [{}]}]\nalerting: {alertmanagers: [{nomad_sd_configs: [{}]}]}")}, 1, nil, []string{"this program has no gce_sd_configs, ec2_sd_configs, azure_sd_configs, nomad_sd_configs; build it"}},
		{"no effect", []string{"config", sections}, 0, []string{
			"WARNING: no effect: global.query_log_file", "WARNING: no effect: remote_write: samples are stored in Promlake's store only",
			"WARNING: no effect: storage.tsdb.retention: there is no TSDB; see --compactor.blocks-retention-period", "WARNING: no effect: tracing",
		}, nil},
		{"signatures as docs/deploy.md has them", []string{"config", file("signed.yml", documented(t, "deploy", "sigv4:"))}, 0, []string{"signed.yml is valid"}, nil},
		{"nonsense", []string{"config", file("nonsense.yml", "a: b")}, 1, nil, []string{"field a not found"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, errs := command(append([]string{"check"}, tc.args...)...)
			require.Equal(t, tc.code, code, "%s%s", out, errs)
			for _, want := range tc.out {
				require.Contains(t, out, want)
			}
			for _, want := range tc.errs {
				require.Contains(t, errs, want)
			}
			if tc.errs == nil {
				require.Empty(t, errs)
			}
		})
	}
	_, _, errs := command("check", "config", file("misspelled.yml", "scrape_configs: [{job_name: j, consull_sd_configs: [{server: 's:1'}]}]"))
	require.Contains(t, errs, "field consull_sd_configs not found")
	require.NotContains(t, errs, "this program has no", "no build has it")
	_, out, _ := command("check", "config", sections)
	require.NotContains(t, out, "out_of_order_time_window")
	require.NotContains(t, out, "otlp")
}
