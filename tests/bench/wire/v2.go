package wire

import (
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of io.prometheus.write.v2.Request, TimeSeries and Metadata.
const (
	v2Symbols      protowire.Number = 4
	v2Timeseries   protowire.Number = 5
	v2Metadata     protowire.Number = 5
	v2MetadataType protowire.Number = 1
)

func newV2(series []Series) *Template {
	var (
		t     = &Template{field: v2Timeseries, records: make([]record, 0, len(series))}
		table = writev2.NewSymbolTable()
		refs  []uint32
	)
	for _, s := range series {
		refs = table.SymbolizeLabels(s.Labels, refs)
		t.records = append(t.records, record{before: appendRefs(nil, refs), after: metadata(s.Counter)})
	}
	for _, s := range table.Symbols() {
		t.head = protowire.AppendTag(t.head, v2Symbols, protowire.BytesType)
		t.head = protowire.AppendString(t.head, s)
	}
	return t
}

// appendRefs encodes labels_refs, a packed list.
func appendRefs(dst []byte, refs []uint32) []byte {
	var packed []byte
	for _, r := range refs {
		packed = protowire.AppendVarint(packed, uint64(r))
	}
	if len(packed) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, fieldLabels, protowire.BytesType), packed)
}

func metadata(counter bool) []byte {
	typ := writev2.Metadata_METRIC_TYPE_GAUGE
	if counter {
		typ = writev2.Metadata_METRIC_TYPE_COUNTER
	}
	msg := protowire.AppendTag(nil, v2MetadataType, protowire.VarintType)
	msg = protowire.AppendVarint(msg, uint64(typ))
	return protowire.AppendBytes(protowire.AppendTag(nil, v2Metadata, protowire.BytesType), msg)
}
