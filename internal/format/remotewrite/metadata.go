package remotewrite

import (
	"strings"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/promlake/promlake/internal/format/segment"
)

// noSymbol stands for "not given".
const noSymbol = ^uint32(0)

// family is the metadata that was seen last, by symbol: neighbouring series mostly share theirs.
type family struct{ metric, kind, help, unit uint32 }

// metadataV2 decodes an io.prometheus.write.v2.Metadata: type = 1, help_ref = 3, unit_ref = 4. Its
// metric is that of the series in d.refs.
func (d *decoder) metadataV2(b []byte, last *family) error {
	cur := family{metric: noSymbol}
	m := fields{rest: b}
	for m.next() {
		switch {
		case m.num == 1 && m.wire == wireVarint:
			cur.kind = uint32(m.val)
		case m.num == 3 && m.wire == wireVarint:
			cur.help = uint32(m.val)
		case m.num == 4 && m.wire == wireVarint:
			cur.unit = uint32(m.val)
		case m.num <= 4 && m.num != 2:
			return errWire("Metadata", m.field)
		}
	}
	if m.err != nil {
		return m.err
	}
	for i := 0; i < len(d.refs); i += 2 {
		if d.symbols.text[d.refs[i]] == "__name__" {
			cur.metric = d.refs[i+1]
		}
	}
	if cur == *last || cur.metric == noSymbol {
		return nil
	}
	*last = cur
	help, okHelp := d.symbols.at(cur.help)
	unit, okUnit := d.symbols.at(cur.unit)
	if !okHelp || !okUnit {
		d.reject(rejectf(ReasonSymbolRef, "metadata references %d, %d of %d symbols", cur.help, cur.unit, len(d.symbols.text)), 0)
		return nil
	}
	if cur.kind == 0 && help == "" && unit == "" {
		return nil
	}
	kind := unknownKind
	if int64(cur.kind) < int64(len(kindNames)) {
		kind = kindNames[cur.kind]
	}
	d.AddMetadata(segment.Metadata{Metric: familyName(d.symbols.text[cur.metric], kind), Type: kind, Help: help, Unit: unit})
	return nil
}

// kindNames are the metric types of 2.0 in the words of the Prometheus API, by number.
var kindNames = func() []string {
	names := make([]string, len(writev2.Metadata_MetricType_name))
	for i := range names {
		names[i] = strings.ToLower(strings.TrimPrefix(writev2.Metadata_MetricType_name[int32(i)], "METRIC_TYPE_"))
	}
	names[writev2.Metadata_METRIC_TYPE_UNSPECIFIED] = unknownKind
	return names
}()

const unknownKind = "unknown"

// familyName removes the suffixes that the series of a classic histogram or summary add to their
// family's name (Prometheus text format).
func familyName(metric, kind string) string {
	var suffixes []string
	switch kind {
	case "histogram", "gaugehistogram":
		suffixes = []string{"_bucket", "_count", "_sum"}
	case "summary":
		suffixes = []string{"_count", "_sum"}
	}
	for _, s := range suffixes {
		if base, ok := strings.CutSuffix(metric, s); ok && base != "" {
			return base
		}
	}
	return metric
}
