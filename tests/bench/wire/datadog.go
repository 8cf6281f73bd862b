package wire

import (
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"google.golang.org/protobuf/encoding/protowire"
)

// newDatadog builds messages of version 2 of Datadog's API: each series has one point, all labels
// but the name are tags, and times are in whole seconds.
func newDatadog(series []Series) *Template {
	t := &Template{line: func(dst []byte, r *record, ts int64, v float64) []byte {
		var buf [32]byte
		point := protowire.AppendFixed64(protowire.AppendTag(buf[:0], 1, protowire.Fixed64Type), math.Float64bits(v))
		point = protowire.AppendVarint(protowire.AppendTag(point, 2, protowire.VarintType), uint64(ts/1000))
		dst = protowire.AppendTag(dst, 1, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(len(r.before)+2+len(point)))
		dst = protowire.AppendTag(append(dst, r.before...), 4, protowire.BytesType)
		return protowire.AppendBytes(dst, point)
	}}
	for _, s := range series {
		var r record
		r.before = protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), s.Labels.Get(model.MetricNameLabel))
		s.Labels.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				r.before = protowire.AppendString(protowire.AppendTag(r.before, 3, protowire.BytesType), l.Name+":"+l.Value)
			}
		})
		t.records = append(t.records, r)
	}
	return t
}
