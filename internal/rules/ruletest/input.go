package ruletest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
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

// store is a TSDB in a temporary directory, in which every test begins anew.
type store struct {
	*tsdb.DB
	input []*input
}

// headRange is how much time the TSDB keeps in memory. Samples may be half of it late, which is
// what a query_offset makes of them.
const headRange = 24 * time.Hour

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
