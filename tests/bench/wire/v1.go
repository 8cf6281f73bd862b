package wire

import (
	"github.com/prometheus/prometheus/model/labels"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of prometheus.WriteRequest and prometheus.Label.
const (
	v1Timeseries protowire.Number = 1
	v1Name       protowire.Number = 1
	v1Value      protowire.Number = 2
)

func newV1(series []Series) *Template {
	t := &Template{field: v1Timeseries, records: make([]record, 0, len(series))}
	var label []byte
	for _, s := range series {
		var r record
		s.Labels.Range(func(l labels.Label) {
			label = appendString(label[:0], v1Name, l.Name)
			label = appendString(label, v1Value, l.Value)
			r.before = protowire.AppendTag(r.before, fieldLabels, protowire.BytesType)
			r.before = protowire.AppendBytes(r.before, label)
		})
		t.records = append(t.records, r)
	}
	return t
}

func appendString(dst []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return dst // proto3 leaves empty strings out
	}
	return protowire.AppendString(protowire.AppendTag(dst, field, protowire.BytesType), s)
}
