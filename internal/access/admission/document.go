// Package admission holds the limits and the relabeling of tenants: the defaults, which are
// settings, and the runtime configuration, a document that overrides them for single tenants while
// the process runs.
package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v3"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/store/replica"
)

// MaxBytes is the size of the largest document.
const MaxBytes = 1 << 20

// Document is a runtime configuration. It is immutable.
type Document struct {
	defaults *Limits
	tenants  map[string]*Limits
	texts    map[string]string // what the document has of each tenant
}

// Of returns the limits of a tenant. Equal pointers mean equal limits, also between documents that
// replace one another.
func (d *Document) Of(tenantID string) *Limits {
	if l, ok := d.tenants[tenantID]; ok {
		return l
	}
	return d.defaults
}

// Overrides is the number of tenants with limits of their own.
func (d *Document) Overrides() int { return len(d.tenants) }

// Defaults returns the document without overrides.
func Defaults(l Limits) *Document { return &Document{defaults: &l} }

// overrides is a tenant's part of a document, in Mimir's names where it has the limit. What is
// missing is the default's.
type overrides struct {
	IngestionRate   *float64          `yaml:"ingestion_rate"`
	IngestionBurst  *int              `yaml:"ingestion_burst_size"`
	BytesRate       *int64            `yaml:"ingestion_bytes_rate"`
	BytesBurst      *int64            `yaml:"ingestion_bytes_burst_size"`
	RequestRate     *float64          `yaml:"request_rate"`
	RequestBurst    *int              `yaml:"request_burst_size"`
	MaxHourlySeries *int              `yaml:"max_hourly_series"`
	MaxDailySeries  *int              `yaml:"max_daily_series"`
	LabelNames      *int              `yaml:"max_label_names_per_series"`
	LabelNameBytes  *int              `yaml:"max_label_name_length"`
	LabelValueBytes *int              `yaml:"max_label_value_length"`
	CreationGrace   *model.Duration   `yaml:"creation_grace_period"`
	PastGrace       *model.Duration   `yaml:"past_grace_period"`
	Relabel         []*relabel.Config `yaml:"metric_relabel_configs"`
	PendingUploads  *int              `yaml:"compactor_block_upload_max_pending_blocks"`

	HADedup    *bool           `yaml:"accept_ha_samples"`
	HAReplica  *string         `yaml:"ha_replica_label"`
	HACluster  *string         `yaml:"ha_cluster_label"`
	HAFailover *model.Duration `yaml:"ha_tracker_failover_timeout"`

	DollarsPerDay   *float64 `yaml:"max_query_dollars_per_day"`
	DollarsPerMonth *float64 `yaml:"max_query_dollars_per_month"`

	GlobalSeries *int `yaml:"max_global_series_per_user"` // not supported
}

// Parse reads a document that replaces old. It is strict, because a limit that is misspelt would be
// no limit. The error names all tenants whose limits are invalid.
func Parse(text []byte, old *Document) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("runtime configuration: %d bytes, at most %d are allowed", len(text), MaxBytes)
	}
	var d struct {
		Overrides map[string]*overrides `yaml:"overrides"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("runtime configuration: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("runtime configuration: want one YAML document, got several")
	}
	out := &Document{defaults: old.defaults, tenants: map[string]*Limits{}, texts: map[string]string{}}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(d.Overrides)) {
		if _, err := tenant.Parse(id); err != nil || id == "" {
			errs = append(errs, fmt.Errorf("runtime configuration: overrides: %q is no name of a tenant", id))
			continue
		}
		same, err := yaml.Marshal(d.Overrides[id])
		if err != nil {
			return nil, fmt.Errorf("runtime configuration: tenant %s: %w", id, err)
		}
		out.texts[id] = string(same)
		if l, ok := old.tenants[id]; ok && old.texts[id] == string(same) {
			out.tenants[id] = l
			continue
		}
		l, err := d.Overrides[id].over(*old.defaults)
		if err != nil {
			errs = append(errs, fmt.Errorf("runtime configuration: tenant %s: %w", id, err))
			continue
		}
		out.tenants[id] = l
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// over returns the limits with o's in place of the defaults.
func (o *overrides) over(l Limits) (*Limits, error) {
	if o == nil {
		return &l, nil
	}
	set(&l.IngestionRate, o.IngestionRate)
	set(&l.IngestionBurst, o.IngestionBurst)
	set(&l.BytesRate, o.BytesRate)
	set(&l.BytesBurst, o.BytesBurst)
	set(&l.RequestRate, o.RequestRate)
	set(&l.RequestBurst, o.RequestBurst)
	set(&l.MaxHourlySeries, o.MaxHourlySeries)
	set(&l.MaxDailySeries, o.MaxDailySeries)
	set(&l.MaxLabelNames, o.LabelNames)
	set(&l.MaxLabelNameBytes, o.LabelNameBytes)
	set(&l.MaxLabelValueBytes, o.LabelValueBytes)
	set(&l.CreationGracePeriod, (*time.Duration)(o.CreationGrace))
	set(&l.PastGracePeriod, (*time.Duration)(o.PastGrace))
	set(&l.HA.Dedup, o.HADedup)
	set(&l.HA.ReplicaLabel, o.HAReplica)
	set(&l.HA.ClusterLabel, o.HACluster)
	set(&l.HA.FailoverTimeout, (*time.Duration)(o.HAFailover))
	set(&l.PendingUploads, o.PendingUploads)
	set(&l.Queries.Day, o.DollarsPerDay)
	set(&l.Queries.Month, o.DollarsPerMonth)
	l.Relabel = o.Relabel
	scheme := model.UTF8Validation
	if l.NameScheme == remotewrite.LegacyNames {
		scheme = model.LegacyValidation
	}
	errs := []error{l.check()}
	for i, c := range o.Relabel {
		if c == nil {
			errs = append(errs, fmt.Errorf("metric_relabel_configs: rule %d is empty", i+1))
		} else if err := c.Validate(scheme); err != nil {
			errs = append(errs, fmt.Errorf("metric_relabel_configs: rule %d: %w", i+1, err))
		}
	}
	if o.GlobalSeries != nil {
		errs = append(errs, errors.New("max_global_series_per_user: writers do not count series together; use max_hourly_series, which each process counts for itself"))
	}
	return &l, errors.Join(errs...)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Limits bound what one tenant may write to one process. The flags are the defaults of all tenants;
// names are Mimir's where it has the limit. A zero rate or number of series is no limit.
// The tags are those of package settings.
type Limits struct {
	remotewrite.Limits `embed:""`

	IngestionRate   float64 `name:"distributor.ingestion-rate-limit" basic:"" default:"0" min:"0" help:"Samples a second that a tenant may write to this process. 0 is no limit." when:"In a service that several teams share. The runtime configuration sets it for single tenants."`
	IngestionBurst  int     `name:"distributor.ingestion-burst-size" default:"200000" min:"1" help:"Samples that a tenant may write at once under --distributor.ingestion-rate-limit. A larger request is refused for good." when:"Raise it above the largest request of the senders."`
	BytesRate       int64   `name:"distributor.ingestion-bytes-rate-limit" type:"bytes" default:"0" min:"0" help:"Bytes a second that a tenant may write to this process, as request bodies after decompression. 0 is no limit." when:"In a service that several teams share, if samples are of very different sizes: long labels, native histograms."`
	BytesBurst      int64   `name:"distributor.ingestion-bytes-burst-size" type:"bytes" default:"128MiB" min:"1" help:"Bytes that a tenant may write at once under --distributor.ingestion-bytes-rate-limit. A larger request is refused for good." when:"Raise it above the largest request of the senders."`
	RequestRate     float64 `name:"distributor.request-rate-limit" default:"0" min:"0" help:"Write requests a second that a tenant may send to this process. 0 is no limit." when:"If senders send very many small requests."`
	RequestBurst    int     `name:"distributor.request-burst-size" default:"100" min:"1" help:"Write requests that a tenant may send at once under --distributor.request-rate-limit." when:"Raise it if a tenant has many senders that write at the same moment."`
	MaxHourlySeries int     `name:"ingest.max-hourly-series" default:"0" min:"0" max:"50000000" help:"Series that a tenant may write to this process in one hour of the clock (UTC). 0 is no limit. Up to 0.4 % more may pass, because they are counted by a Bloom filter." when:"To bound active series in a shared service."`
	MaxDailySeries  int     `name:"ingest.max-daily-series" default:"0" min:"0" max:"50000000" help:"Like --ingest.max-hourly-series, in one day (UTC)." when:"To bound the churn of series: label values that change all the time."`

	// HA says which series of the tenant are replicas of one another. Its flags belong to the query
	// stage.
	HA replica.Settings `kong:"-"`

	// Queries bounds what the tenant's queries take. Its flags belong to the query stage.
	Queries auth.Allowance `kong:"-"`

	// PendingUploads bounds the blocks that the tenant uploads at once; 0 is no limit. Its flag
	// belongs to block uploads.
	PendingUploads int `kong:"-"`

	// Relabel are the rules that series pass before they are checked: metric_relabel_configs of the
	// runtime configuration.
	Relabel []*relabel.Config `kong:"-"`
}

// The highest limits that a tenant can have. A consumer of the write queue checks by these what a
// front has accepted.
const (
	mostLabelNames      = 1000
	mostLabelNameBytes  = 16 << 10
	mostLabelValueBytes = 1 << 20
	mostGrace           = 100 * 365 * 24 * time.Hour
	mostSeries          = 50_000_000

	leastFailover, mostFailover = time.Second, 5 * time.Minute // as --query.ha-failover-timeout
)

// Accepted returns limits that refuse nothing which the limits of any tenant accept.
func (l Limits) Accepted() remotewrite.Limits {
	out := l.Limits
	out.MaxLabelNames, out.MaxLabelNameBytes = max(out.MaxLabelNames, mostLabelNames), max(out.MaxLabelNameBytes, mostLabelNameBytes)
	out.MaxLabelValueBytes = max(out.MaxLabelValueBytes, mostLabelValueBytes)
	out.CreationGracePeriod, out.PastGracePeriod = max(out.CreationGracePeriod, mostGrace), 0
	return out
}

// CountsSeries reports whether the number of series is limited.
func (l *Limits) CountsSeries() bool { return l.MaxHourlySeries > 0 || l.MaxDailySeries > 0 }

// check reports each limit that is out of range, by its name in the document.
func (l *Limits) check() error {
	var errs []error
	within := func(name string, value, least, most int) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("%s: want %d to %d, got %d", name, least, most, value))
		}
	}
	rate := func(name string, value float64) {
		if !(value >= 0 && value <= 1e12) {
			errs = append(errs, fmt.Errorf("%s: want 0 (no limit) to 1e12, got %v", name, value))
		}
	}
	grace := func(name string, value time.Duration) {
		if value < 0 || value > mostGrace {
			errs = append(errs, fmt.Errorf("%s: want 0 to 100y, got %s", name, value))
		}
	}
	rate("ingestion_rate", l.IngestionRate)
	within("ingestion_burst_size", l.IngestionBurst, 1, 1_000_000_000)
	rate("ingestion_bytes_rate", float64(l.BytesRate))
	within("ingestion_bytes_burst_size", int(l.BytesBurst), 1, 1<<40)
	rate("request_rate", l.RequestRate)
	within("request_burst_size", l.RequestBurst, 1, 1_000_000_000)
	within("max_hourly_series", l.MaxHourlySeries, 0, mostSeries)
	within("max_daily_series", l.MaxDailySeries, 0, mostSeries)
	within("max_label_names_per_series", l.MaxLabelNames, 1, mostLabelNames)
	within("max_label_name_length", l.MaxLabelNameBytes, 1, mostLabelNameBytes)
	within("max_label_value_length", l.MaxLabelValueBytes, 1, mostLabelValueBytes)
	within("compactor_block_upload_max_pending_blocks", l.PendingUploads, 0, 1_000_000)
	grace("creation_grace_period", l.CreationGracePeriod)
	grace("past_grace_period", l.PastGracePeriod)
	rate("max_query_dollars_per_day", l.Queries.Day)
	rate("max_query_dollars_per_month", l.Queries.Month)
	if t := l.HA.FailoverTimeout; t < leastFailover || t > mostFailover {
		errs = append(errs, fmt.Errorf("ha_tracker_failover_timeout: want %s to %s, got %s", leastFailover, mostFailover, t))
	}
	errs = append(errs, l.HA.Validate("ha_replica_label", "ha_cluster_label"))
	return errors.Join(errs...)
}
