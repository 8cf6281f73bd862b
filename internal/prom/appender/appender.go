// Package appender implements the storage interfaces of Prometheus to which scrapes and rules
// append. An appender collects a transaction, refuses the samples that Prometheus refuses, and
// passes the transaction on when it is committed.
package appender

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/format/segment"
)

// Appendable makes appenders. It is safe for concurrent use; each of its appenders is used by one
// goroutine.
type Appendable struct {
	order    *order
	families families
	add      func(*Transaction) error
}

var (
	_ storage.AppendableV2 = (*Appendable)(nil)
	_ storage.Appendable   = V1{}
)

// New returns an appendable that passes committed transactions, which are not empty, to add, which
// owns them then. add must not block for long: a scrape waits for it. Its error is that of the
// commit.
func New(add func(*Transaction) error) *Appendable {
	return &Appendable{order: &order{series: newTable(), hists: map[*state]Histogram{}, newest: map[*state]newest{}, maxT: math.MinInt64, swept: math.MinInt64}, add: add}
}

// SetOutOfOrderWindow sets how far (ms) behind the newest sample of all series a sample may be that
// is older than its predecessor. 0 refuses them all.
func (a *Appendable) SetOutOfOrderWindow(ms int64) {
	a.order.mu.Lock()
	defer a.order.mu.Unlock()
	a.order.window = ms
}

// AppenderV2 implements storage.AppendableV2.
func (a *Appendable) AppenderV2(context.Context) storage.AppenderV2 {
	return &transactionAppender{appendable: a, tx: transactions.Get().(*Transaction)}
}

// Described returns an appender whose transaction has all metadata that list adds, in addition to
// that of its samples, if it has a new series or is the first one in five minutes: most scrapes have
// what an earlier one described. The texts that list adds must not change.
func (a *Appendable) Described(list func(add func(family string, m metadata.Metadata))) storage.AppenderV2 {
	return &transactionAppender{appendable: a, tx: transactions.Get().(*Transaction), list: list}
}

// transactionAppender implements storage.AppenderV2.
type transactionAppender struct {
	appendable *Appendable
	tx         *Transaction // nil when it is committed or rolled back
	list       func(add func(family string, m metadata.Metadata))
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
	n := len(a.tx.Samples)
	sample := Sample{T: t, V: v}
	if rare := (Rare{Histogram{h, fh}, st, opts.RejectOutOfOrder}); n > 0 {
		sample.Rare = rare.after(a.tx.Samples[n-1].Rare)
	} else {
		sample.Rare = rare.after(nil)
	}
	if err := a.appendable.order.admit(ref, ls, &sample); err != nil {
		return 0, err
	}
	a.tx.Samples = append(a.tx.Samples, sample)
	for _, e := range opts.Exemplars {
		if !e.HasTs { // which order.commit needs to know
			e.Ts = t
		}
		a.tx.Exemplars = append(a.tx.Exemplars, Exemplar{n, e})
	}
	// The names of a scrape's own families (up, scrape_duration_seconds, …) end with this byte,
	// which keeps them apart from scraped ones in the scrape's cache.
	if family := strings.TrimSuffix(opts.MetricFamilyName, "\xff"); !opts.Metadata.IsEmpty() && family != "" {
		m := segment.Metadata{Metric: family, Type: string(opts.Metadata.Type), Help: opts.Metadata.Help, Unit: opts.Metadata.Unit}
		// Neighbouring series mostly share their family.
		if n := len(a.tx.Metadata); n == 0 || a.tx.Metadata[n-1].Metadata != m {
			a.tx.Metadata = append(a.tx.Metadata, a.appendable.families.of(&m))
		}
	}
	return storage.SeriesRef(sample.series.ref), nil
}

// Commit implements storage.AppenderTransaction. It drops the samples that another transaction has
// overtaken since they were appended, as Prometheus does.
func (a *transactionAppender) Commit() error {
	if a.tx == nil {
		return errDone
	}
	tx := a.tx
	a.tx = nil
	if a.appendable.order.commit(tx) && a.list != nil {
		a.list(func(family string, m metadata.Metadata) {
			if !m.IsEmpty() && family != "" {
				tx.Metadata = append(tx.Metadata, a.appendable.families.of(&segment.Metadata{Metric: family, Type: string(m.Type), Help: m.Help, Unit: m.Unit}))
			}
		})
	}
	if len(tx.Samples) > 0 || len(tx.Metadata) > 0 {
		return a.appendable.add(tx)
	}
	tx.Release()
	return nil
}

// Rollback implements storage.AppenderTransaction.
func (a *transactionAppender) Rollback() error {
	if a.tx == nil {
		return errDone
	}
	a.tx.Release()
	a.tx = nil
	return nil
}

var errDone = errors.New("the appender was already committed or rolled back")

// asHistogram makes a stale marker a histogram if the last sample of its series is one, as
// Prometheus stores it.
func asHistogram(s *Sample, last Histogram) {
	if s.Histogram() != (Histogram{}) || !value.IsStaleNaN(s.V) {
		return
	}
	r, stale := s.rare(), math.Float64frombits(value.StaleNaN)
	if last.H != nil {
		r.H = &histogram.Histogram{Sum: stale}
	} else {
		r.FH = &histogram.FloatHistogram{Sum: stale}
	}
	s.V, s.Rare = 0, &r
}

// V1 is an Appendable by the older interface, which the rules of this version of Prometheus still
// take.
type V1 struct{ *Appendable }

// Appender implements storage.Appendable.
func (a V1) Appender(context.Context) storage.Appender {
	return &v1Appender{AppenderV2: &transactionAppender{appendable: a.Appendable, tx: new(Transaction)}}
}

// v1Appender implements storage.Appender. Rules append neither exemplars nor metadata nor start
// timestamps.
type v1Appender struct {
	storage.AppenderV2
	inOrder bool
}

// SetOptions implements storage.Appender.
func (a *v1Appender) SetOptions(opts *storage.AppendOptions) {
	a.inOrder = opts != nil && opts.DiscardOutOfOrder
}

// Append implements storage.Appender.
func (a *v1Appender) Append(ref storage.SeriesRef, l labels.Labels, t int64, v float64) (storage.SeriesRef, error) {
	return a.AppenderV2.Append(ref, l, 0, t, v, nil, nil, storage.AppendV2Options{RejectOutOfOrder: a.inOrder})
}

// AppendHistogram implements storage.HistogramAppender.
func (a *v1Appender) AppendHistogram(ref storage.SeriesRef, l labels.Labels, t int64, h *histogram.Histogram, fh *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return a.AppenderV2.Append(ref, l, 0, t, 0, h, fh, storage.AppendV2Options{RejectOutOfOrder: a.inOrder})
}

// AppendExemplar implements storage.ExemplarAppender.
func (*v1Appender) AppendExemplar(ref storage.SeriesRef, _ labels.Labels, _ exemplar.Exemplar) (storage.SeriesRef, error) {
	return ref, nil
}

// UpdateMetadata implements storage.MetadataUpdater.
func (*v1Appender) UpdateMetadata(ref storage.SeriesRef, _ labels.Labels, _ metadata.Metadata) (storage.SeriesRef, error) {
	return ref, nil
}

// AppendSTZeroSample implements storage.StartTimestampAppender.
func (*v1Appender) AppendSTZeroSample(ref storage.SeriesRef, _ labels.Labels, _, _ int64) (storage.SeriesRef, error) {
	return ref, nil
}

// AppendHistogramSTZeroSample implements storage.HistogramAppender.
func (*v1Appender) AppendHistogramSTZeroSample(ref storage.SeriesRef, _ labels.Labels, _, _ int64, _ *histogram.Histogram, _ *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return ref, nil
}
