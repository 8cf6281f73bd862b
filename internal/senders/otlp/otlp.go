// Package otlp reads metrics in the OpenTelemetry protocol
// (https://opentelemetry.io/docs/specs/otlp/, opentelemetry-proto's metrics/v1/metrics.proto).
// Names and labels are those of Prometheus' translation
// (https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
//
// The decoder walks the protobuf message in place: a data point whose attributes were seen before
// with its metric and resource costs a hash and a look-up.
package otlp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// ErrMalformed marks messages that cannot be decoded at all.
var ErrMalformed = errors.New("malformed OTLP message")

// Translator turns OTLP messages into samples. It is safe for concurrent use.
type Translator struct {
	set   Settings
	salt  string // of keys: other settings make other series of the same data points
	names names
}

// NewTranslator returns a translator for valid settings.
func NewTranslator(s Settings) *Translator {
	salt := sha256.Sum256(fmt.Appendf(nil, "%+v", s))
	return &Translator{set: s, salt: string(salt[:8]), names: names{namer: otlptranslator.NewMetricNamer("", s.strategy()), known: map[string]*family{}}}
}

// Decode turns an ExportMetricsServiceRequest into a batch of the generation g (see
// remotewrite.Collect). Data points that break a rule are left out and reported as offences;
// rejected is the number of those of which nothing, or not all, is in the batch. The error is
// ErrMalformed if the message cannot be decoded.
func (t *Translator) Decode(msg []byte, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (b *remotewrite.Batch, rejected int64, err error) {
	d := decoder{Translator: t, rules: rules}
	b, err = remotewrite.Collect(g, rules, room, func(c *remotewrite.Collector) error {
		d.c = c
		return each(msg, 1, "ExportMetricsServiceRequest", d.resourceMetrics)
	})
	return b, d.rejected, err
}

// decoder decodes one message.
type decoder struct {
	*Translator
	c        *remotewrite.Collector
	rules    remotewrite.Rules
	rejected int64 // data points

	resource  resource
	scope     scope
	metric    metric
	point     point
	described map[string]segment.Metadata // what the batch has, by family

	text    []byte // of keys
	labels  []series.Label
	counts  []uint64  // of the buckets at hand
	bounds  []float64 // of the buckets at hand
	scratch labels.ScratchBuilder
}

// resourceMetrics reads a ResourceMetrics: resource = 1, scope_metrics = 2. The resource, whose
// attributes = 1, may stand behind the metrics.
func (d *decoder) resourceMetrics(msg []byte) error {
	var attributes span
	err := each(msg, 1, "ResourceMetrics", func(resource []byte) error {
		var own span
		r := read(resource, "Resource")
		for r.next() {
			if r.num == 1 {
				own.add(&r)
			}
		}
		attributes.join(own.bytes)
		return r.err
	})
	if err != nil {
		return err
	}
	d.text = append(remotewrite.AppendKey(append(d.text[:0], remotewrite.KeysOfOTLP, 'r'), d.salt), attributes.bytes...)
	d.resource = resource{attributes: attributes.bytes, key: d.c.Key(d.text), from: ^uint64(0)}
	if err := each(msg, 2, "ResourceMetrics", d.scopeMetrics); err != nil {
		return err
	}
	return d.targetInfo()
}

// scopeMetrics reads a ScopeMetrics: scope = 1, metrics = 2, schema_url = 3.
func (d *decoder) scopeMetrics(msg []byte) error {
	d.scope = scope{}
	if d.set.PromoteScopeMetadata {
		if err := d.readScope(msg); err != nil {
			return err
		}
	}
	return each(msg, 2, "ScopeMetrics", d.readMetric)
}

// reject records that n data points break a rule.
func (d *decoder) reject(err error, n int) error {
	d.rejected += int64(n)
	return d.c.Reject(err, n)
}

// millis converts a time of OTLP (ns since 1970) to ms.
func millis(ns uint64) int64 { return int64(min(ns, math.MaxInt64) / 1e6) }
