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

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/remotewrite"
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
