package appender

import (
	"context"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
)

// V1 is an Appendable by the older interface, which the rules of this version of Prometheus still
// take.
type V1 struct{ *Appendable }

// Appender implements storage.Appendable.
func (a V1) Appender(ctx context.Context) storage.Appender {
	return &v1Appender{AppenderV2: a.AppenderV2(ctx)}
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
