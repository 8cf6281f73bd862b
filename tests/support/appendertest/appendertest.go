// Package appendertest makes samples as appenders do.
package appendertest

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/prom/appender"
)

// Sample returns a sample of a series at t (ms), as a new appendable commits it. It panics if the
// labels or the value are invalid.
func Sample(ls labels.Labels, t int64, v float64) (out appender.Sample) {
	app := appender.New(func(tx *appender.Transaction) error {
		out = tx.Samples[0]
		return nil
	}).AppenderV2(context.Background())
	if _, err := app.Append(0, ls, 0, t, v, nil, nil, storage.AppendV2Options{}); err != nil {
		panic(err)
	}
	if err := app.Commit(); err != nil {
		panic(err)
	}
	return out
}
