// Package appender implements the storage interfaces of Prometheus to which scrapes and rules
// append. An appender collects a transaction, refuses the samples that Prometheus refuses, and
// passes the transaction on when it is committed.
package appender

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// Appendable makes appenders. It is safe for concurrent use; each of its appenders is used by one
// goroutine.
type Appendable struct {
	order *order
	add   func(*Transaction) error
}

var (
	_ storage.AppendableV2 = (*Appendable)(nil)
	_ storage.Appendable   = V1{}
)

// New returns an appendable that passes committed transactions, which are not empty, to add. add
// must not block for long: a scrape waits for it. Its error is that of the commit.
func New(add func(*Transaction) error) *Appendable {
	return &Appendable{order: newOrder(), add: add}
}

// SetOutOfOrderWindow sets how far (ms) behind the newest sample of all series a sample may be that
// is older than its predecessor. 0 refuses them all.
func (a *Appendable) SetOutOfOrderWindow(ms int64) { a.order.setWindow(ms) }

// AppenderV2 implements storage.AppendableV2.
func (a *Appendable) AppenderV2(context.Context) storage.AppenderV2 {
	return &transactionAppender{appendable: a, tx: &Transaction{}, appended: appendedPool.Get().(*[]appended)}
}

// transactionAppender implements storage.AppenderV2.
type transactionAppender struct {
	appendable *Appendable
	tx         *Transaction
	appended   *[]appended // of appendedPool, aligned with tx.Samples
}

// appendedPool keeps the memory of transactions that are done.
var appendedPool = sync.Pool{New: func() any { return new([]appended) }}

// appended is what a commit needs to know of a sample in addition.
type appended struct {
	state   *state
	inOrder bool // reject it if it is out of order at the commit, whatever the window
}

// Append implements storage.AppenderV2.
func (a *transactionAppender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options) (storage.SeriesRef, error) {
	var err error
	switch {
	case fh != nil:
		err = fh.Validate()
	case h != nil:
		err = h.Validate()
	}
	if err != nil {
		return 0, err
	}
	s, err := a.appendable.order.find(ref, ls)
	if err != nil {
		return 0, err
	}
	sample := Sample{Labels: s.labels, ST: st, T: t, V: v, H: h, FH: fh}
	if err := a.appendable.order.check(s, &sample, opts.RejectOutOfOrder); err != nil {
		return 0, err
	}
	*a.appended = append(*a.appended, appended{s, opts.RejectOutOfOrder})
	a.tx.Samples = append(a.tx.Samples, sample)
	for _, e := range opts.Exemplars {
		if !e.HasTs {
			e.Ts, e.HasTs = t, true
		}
		a.tx.Exemplars = append(a.tx.Exemplars, Exemplar{len(a.tx.Samples) - 1, e})
	}
	// The names of a scrape's own families (up, scrape_duration_seconds, …) end with this byte,
	// which keeps them apart from scraped ones in the scrape's cache.
	if family := strings.TrimSuffix(opts.MetricFamilyName, "\xff"); !opts.Metadata.IsEmpty() && family != "" {
		a.tx.describe(family, string(opts.Metadata.Type), opts.Metadata.Help, opts.Metadata.Unit)
	}
	return s.ref, nil
}

// Commit implements storage.AppenderTransaction. It drops the samples that another transaction has
// overtaken since they were appended, as Prometheus does.
func (a *transactionAppender) Commit() error {
	if a.tx == nil {
		return errDone
	}
	tx := a.tx
	a.appendable.order.commit(tx, *a.appended)
	a.done()
	if len(tx.Samples) > 0 || len(tx.Metadata) > 0 {
		return a.appendable.add(tx)
	}
	return nil
}

// Rollback implements storage.AppenderTransaction.
func (a *transactionAppender) Rollback() error {
	if a.tx == nil {
		return errDone
	}
	a.done()
	return nil
}

// done ends the transaction.
func (a *transactionAppender) done() {
	clear(*a.appended)
	*a.appended = (*a.appended)[:0]
	appendedPool.Put(a.appended)
	a.tx, a.appended = nil, nil
}

var errDone = errors.New("the appender was already committed or rolled back")

// validate returns a label set without empty values, or an error if it identifies no series.
func validate(ls labels.Labels) (labels.Labels, error) {
	ls = ls.WithoutEmpty()
	if ls.IsEmpty() {
		return ls, errors.New("empty labelset: invalid sample")
	}
	if name, dup := ls.HasDuplicateLabelNames(); dup {
		return ls, fmt.Errorf("label name %q is not unique: invalid sample", name)
	}
	return ls, nil
}

// asHistogram makes a stale marker of a series of histograms a histogram, as Prometheus stores it.
func asHistogram(s *Sample, last *Sample) {
	if s.H != nil || s.FH != nil || !value.IsStaleNaN(s.V) {
		return
	}
	stale := math.Float64frombits(value.StaleNaN)
	switch {
	case last.H != nil:
		s.V, s.H = 0, &histogram.Histogram{Sum: stale}
	case last.FH != nil:
		s.V, s.FH = 0, &histogram.FloatHistogram{Sum: stale}
	}
}
