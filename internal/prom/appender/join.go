package appender

import (
	"fmt"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// Join returns messages of Encode as one: that of the transactions of all of them.
func Join(messages [][]byte) ([]byte, error) {
	symbols := writev2.NewSymbolTable()
	var all writev2.Request
	for i, m := range messages {
		var req writev2.Request
		if err := req.Unmarshal(m); err != nil {
			return nil, fmt.Errorf("join message %d of %d: %w", i+1, len(messages), err)
		}
		refs := make(references, len(req.Symbols))
		for ref, s := range req.Symbols {
			refs[ref] = symbols.Symbolize(s)
		}
		for j := range req.Timeseries {
			if err := refs.translate(&req.Timeseries[j]); err != nil {
				return nil, fmt.Errorf("join message %d of %d: %w", i+1, len(messages), err)
			}
		}
		all.Timeseries = append(all.Timeseries, req.Timeseries...)
	}
	all.Symbols = symbols.Symbols()
	b, err := all.Marshal()
	if err != nil {
		return nil, fmt.Errorf("join %d messages: %w", len(messages), err)
	}
	return b, nil
}

// references are the symbols of one message in the table of another one.
type references []uint32

// translate makes the references of a series those of the other table.
func (r references) translate(ts *writev2.TimeSeries) error {
	lists := [][]uint32{ts.LabelsRefs}
	for _, e := range ts.Exemplars {
		lists = append(lists, e.LabelsRefs)
	}
	for _, refs := range lists {
		for i := range refs {
			if err := r.one(&refs[i]); err != nil {
				return err
			}
		}
	}
	if err := r.one(&ts.Metadata.HelpRef); err != nil {
		return err
	}
	return r.one(&ts.Metadata.UnitRef)
}

func (r references) one(ref *uint32) error {
	if int(*ref) >= len(r) {
		return fmt.Errorf("there is no symbol %d of %d", *ref, len(r))
	}
	*ref = r[*ref]
	return nil
}
