package admission_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/store/replica"
)

func defaults() *admission.Document {
	return admission.Defaults(settings.Default[admission.Limits]())
}

const everything = `
overrides:
  team-a:
    ingestion_rate: 1000.5
    ingestion_burst_size: 20000
    ingestion_bytes_rate: 1000000
    ingestion_bytes_burst_size: 5000000
    request_rate: 10
    request_burst_size: 20
    max_hourly_series: 5000
    max_daily_series: 9000
    max_label_names_per_series: 30
    max_label_name_length: 64
    max_label_value_length: 4096
    creation_grace_period: 1m
    past_grace_period: 2d
    compactor_block_upload_max_pending_blocks: 7
    accept_ha_samples: false
    ha_replica_label: replica
    ha_cluster_label: prometheus
    ha_tracker_failover_timeout: 1m
    metric_relabel_configs:
      - source_labels: [__name__]
        regex: debug_.*
        action: drop
  team-b: {}
  team-c:
`

func TestParse(t *testing.T) {
	base := defaults()
	d, err := admission.Parse([]byte(everything), base)
	require.NoError(t, err)
	require.Equal(t, 3, d.Overrides())
	a := *d.Of("team-a")
	require.Len(t, a.Relabel, 1)
	require.Equal(t, relabel.Drop, a.Relabel[0].Action)
	a.Relabel = nil
	require.Equal(t, admission.Limits{
		Limits: remotewrite.Limits{
			MaxLabelNames: 30, MaxLabelNameBytes: 64, MaxLabelValueBytes: 4096, CreationGracePeriod: time.Minute, PastGracePeriod: 48 * time.Hour, NameScheme: "utf8",
		},
		IngestionRate: 1000.5, IngestionBurst: 20000, BytesRate: 1_000_000, BytesBurst: 5_000_000, RequestRate: 10, RequestBurst: 20, MaxHourlySeries: 5000, MaxDailySeries: 9000,
		HA: replica.Settings{ReplicaLabel: "replica", ClusterLabel: "prometheus", FailoverTimeout: time.Minute}, PendingUploads: 7,
	}, a)
	require.True(t, a.CountsSeries())
	for _, id := range []string{"team-b", "team-c", "other"} {
		require.Equal(t, base.Of("anybody"), d.Of(id), id)
	}
	require.Same(t, base.Of("x"), d.Of("other"))

	next, err := admission.Parse([]byte(strings.Replace(everything, "team-b: {}", "team-b: {ingestion_rate: 5}", 1)), d)
	require.NoError(t, err)
	require.Same(t, d.Of("team-a"), next.Of("team-a"), "what has not changed keeps its pointer")
	require.NotSame(t, d.Of("team-b"), next.Of("team-b"))
	for _, empty := range []string{"", "overrides:\n", "# nothing\n"} {
		d, err := admission.Parse([]byte(empty), next)
		require.NoError(t, err)
		require.Same(t, base.Of("x"), d.Of("team-a"))
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"overrides: 5":                                                    "cannot unmarshal",
		"override: {}":                                                    "field override not found",
		"overrides: {a: {ingestion_rat: 5}}":                              "field ingestion_rat not found",
		"overrides: {a: {ingestion_rate: fast}}":                          "cannot unmarshal",
		"overrides: {a: {ingestion_bytes_rate: -1}}":                      "tenant a: ingestion_bytes_rate: want 0 (no limit) to 1e12, got -1",
		"overrides: {a: {ingestion_bytes_burst_size: 0}}":                 "tenant a: ingestion_bytes_burst_size: want 1 to 1099511627776, got 0",
		"overrides: {a: {ingestion_rate: -1}}":                            "tenant a: ingestion_rate: want 0 (no limit) to 1e12, got -1",
		"overrides: {a: {ingestion_rate: .nan}}":                          "tenant a: ingestion_rate: want 0",
		"overrides: {a: {ingestion_burst_size: 0}}":                       "tenant a: ingestion_burst_size: want 1 to 1000000000, got 0",
		"overrides: {a: {request_burst_size: 0}}":                         "request_burst_size: want 1",
		"overrides: {a: {max_label_names_per_series: 1001}}":              "max_label_names_per_series: want 1 to 1000, got 1001",
		"overrides: {a: {max_hourly_series: -1}}":                         "max_hourly_series: want 0 to 50000000, got -1",
		"overrides: {a: {compactor_block_upload_max_pending_blocks: -1}}": "compactor_block_upload_max_pending_blocks: want 0 to 1000000, got -1",
		"overrides: {a: {creation_grace_period: 200y}}":                   "creation_grace_period: want 0 to 100y",
		"overrides: {a: {max_global_series_per_user: 5}}":                 "use max_hourly_series",
		"overrides: {a: {ha_replica_label: cluster}}":                     `tenant a: ha_replica_label: want another label than ha_cluster_label, got "cluster" for both`,
		"overrides: {a: {ha_replica_label: ''}}":                          "ha_replica_label: want the name of a label",
		"overrides: {a: {ha_replica_label: __name__}}":                    "ha_replica_label: want the name of a label",
		"overrides: {a: {ha_cluster_label: ''}}":                          "ha_cluster_label: want the name of a label",
		"overrides: {a: {ha_tracker_failover_timeout: 10m}}":              "ha_tracker_failover_timeout: want 1s to 5m0s, got 10m0s",
		"overrides: {a|b: {}}":                                            `"a|b" is no name of a tenant`,
		"overrides: {'': {}}":                                             `"" is no name of a tenant`,
		"overrides: {a: {}}\n---\noverrides: {}":                          "want one YAML document, got several",
		"overrides: {a: {metric_relabel_configs: [null]}}":                "rule 1 is empty",
		"overrides: {a: {metric_relabel_configs: [{}]}}":                  "rule 1: relabel configuration for replace action requires 'target_label' value",
		"overrides: {a: {metric_relabel_configs: [{regex: '('}]}}":        "missing closing )",
		"overrides: {a: {}, a: {}}":                                       "already defined",
		strings.Repeat("#", admission.MaxBytes+1):                         "1048577 bytes, at most 1048576 are allowed",
	} {
		_, err := admission.Parse([]byte(text), defaults())
		require.ErrorContains(t, err, want, "%.100s", text)
		require.ErrorContains(t, err, "runtime configuration: ")
	}
	_, err := admission.Parse([]byte("overrides: {b: {ingestion_rate: -1}, a: {request_rate: -2}}"), defaults())
	require.ErrorContains(t, err, "tenant a: request_rate")
	require.ErrorContains(t, err, "tenant b: ingestion_rate")
}

// TestDocumentation: the example in the documentation is valid and names every limit.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../../docs/admission.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "```yaml\n")
	require.True(t, ok)
	example, _, _ := strings.Cut(rest, "```")
	d, err := admission.Parse([]byte(example), defaults())
	require.NoError(t, err)
	require.Len(t, d.Of("team-a").Relabel, 2)
	for line := range strings.Lines(everything) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "     ") {
			require.Contains(t, example, name+":")
			require.Contains(t, rest, "`"+name+"`")
		}
	}
}

// TestAcceptedRefusesNothing: a consumer's limits are at least those that any tenant can have.
func TestAcceptedRefusesNothing(t *testing.T) {
	l := settings.Default[admission.Limits]()
	l.PastGracePeriod, l.MaxLabelValueBytes = time.Hour, 5<<20
	got := l.Accepted()
	require.Equal(t, 1000, got.MaxLabelNames)
	require.Equal(t, 5<<20, got.MaxLabelValueBytes, "the flag is higher")
	require.Zero(t, got.PastGracePeriod)
	require.NoError(t, got.TimeRange(time.Now()).Check(time.Now().Add(90*365*24*time.Hour).UnixMilli()))
}

// FuzzParse holds that a document is refused with a text that names it, or has valid limits for
// every tenant, which stay the same objects when it is read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("overrides: {a: {metric_relabel_configs: [{regex: '('}]}, b: {past_grace_period: 1y}}"))
	f.Add([]byte("overrides: {a: &x {ingestion_rate: .inf}, b: *x, c: {<<: *x}}"))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\noverrides: {t: {metric_relabel_configs: *b}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		base := defaults()
		d, err := admission.Parse(text, base)
		if err != nil {
			require.ErrorContains(t, err, "runtime configuration: ")
			return
		}
		again, err := admission.Parse(text, d)
		require.NoError(t, err)
		require.Equal(t, d.Overrides(), again.Overrides())
		for _, id := range []string{"team-a", "team-b", "a", "b", "t"} {
			require.Same(t, d.Of(id), again.Of(id))
			l := d.Of(id)
			require.GreaterOrEqual(t, l.IngestionRate, 0.0)
			require.Positive(t, l.MaxLabelNames)
			require.NotNil(t, l.TimeRange(time.Now()))
		}
	})
}
