package ruletest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// input is a series whose samples are not all stored yet.
type input struct {
	labels labels.Labels
	rest   []inputSample // ascending
}

type inputSample struct {
	t  int64 // ms
	v  float64
	fh *histogram.FloatHistogram
}

// parse reads the input series of a test. Of equal series, the last one counts.
func (t *test) parse(p parser.Parser) ([]*input, error) {
	var out []*input
	for _, s := range t.Input {
		ls, values, err := p.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			return nil, fmt.Errorf("input_series %s: %w", s.Series, err)
		}
		in, at := &input{labels: ls}, t.origin()
		for _, v := range values {
			if !v.Omitted {
				in.rest = append(in.rest, inputSample{at.UnixMilli(), v.Value, v.Histogram})
			}
			at = at.Add(time.Duration(t.Interval))
		}
		out = slices.DeleteFunc(out, func(other *input) bool { return labels.Equal(other.labels, ls) })
		out = append(out, in)
	}
	return out, nil
}

// store is a TSDB in a temporary directory, in which every test begins anew.
type store struct {
	*tsdb.DB
	dir   string
	input []*input
}

// headRange is how much time the TSDB keeps in memory. Samples may be half of it late, which is
// what a query_offset makes of them.
const headRange = 24 * time.Hour

func newStore(in []*input) (*store, error) {
	dir, err := os.MkdirTemp("", "promlake-rules-test-*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for samples: %w", err)
	}
	o := tsdb.DefaultOptions()
	o.MinBlockDuration, o.MaxBlockDuration = headRange.Milliseconds(), headRange.Milliseconds()
	o.RetentionDuration, o.OutOfOrderTimeWindow = 0, 0
	o.WALSegmentSize = -1 // nothing outlives the test
	db, err := tsdb.Open(dir, nil, nil, o, tsdb.NewDBStats())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a TSDB: %w", err), os.RemoveAll(dir))
	}
	return &store{DB: db, dir: dir, input: in}, nil
}

// until stores the samples of the input up to a time.
func (s *store) until(ctx context.Context, at time.Time) error {
	app := s.AppenderV2(ctx)
	for _, in := range s.input {
		for len(in.rest) > 0 && in.rest[0].t <= at.UnixMilli() {
			x := in.rest[0]
			if _, err := app.Append(0, in.labels, 0, x.t, x.v, nil, x.fh, storage.AppendV2Options{}); err != nil {
				return errors.Join(fmt.Errorf("input_series %s at %s: %w", in.labels, time.UnixMilli(x.t).UTC().Format(time.RFC3339), err), app.Rollback())
			}
			in.rest = in.rest[1:]
		}
	}
	return app.Commit()
}

// Close removes the samples.
func (s *store) Close() error {
	return errors.Join(s.DB.Close(), os.RemoveAll(s.dir))
}
