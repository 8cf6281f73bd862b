package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/query/api/respond"
)

// federate answers /federate: for every series that a match[] selects, the latest sample within the
// lookback delta, in the exposition format that the client accepts. Errors are plain text. All
// samples are read before the first byte is sent, so that a failure cannot truncate an answer.
func (s *server) federate(w http.ResponseWriter, r *http.Request) {
	matchers, err := s.federateMatchers(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	samples, err := s.latest(r.Context(), matchers)
	if err != nil {
		http.Error(w, err.Error(), respond.FailureOf(err).Code)
		return
	}
	format := expfmt.NegotiateAccept(r.Header,
		expfmt.NewFormat(expfmt.TypeProtoDelim), expfmt.NewFormat(expfmt.TypeProtoText),
		expfmt.NewFormat(expfmt.TypeProtoCompact), expfmt.NewFormat(expfmt.TypeTextPlain))
	w.Header().Set("Content-Type", string(format))
	enc := expfmt.NewEncoder(w, format)
	for _, family := range Families(samples, s.externalLabels(r.Context()), CarriesNativeHistograms(format)) {
		if err := enc.Encode(family); err != nil {
			s.logger.Warn("write federation response", "family", family.GetName(), "err", err)
			return
		}
	}
}

func (s *server) federateMatchers(r *http.Request) ([][]*labels.Matcher, error) {
	if err := r.ParseForm(); err != nil {
		return nil, fmt.Errorf("error parsing form values: %w", err)
	}
	selectors := r.Form["match[]"]
	// Without match[] the answer is empty, as upstream's is.
	sets, err := s.parser.ParseMetricSelectors(selectors)
	if err != nil {
		return nil, err // upstream's text unchanged: "1:2: parse error: …"
	}
	// {} selects nothing, as in upstream's TSDB.
	return slices.DeleteFunc(sets, func(ms []*labels.Matcher) bool { return len(ms) == 0 }), nil
}

// latest returns the latest samples of the series that any of the matcher sets selects, sorted by
// name, floats before histograms, then by labels. It omits series without a name, which no format
// can express, and stale series.
func (s *server) latest(ctx context.Context, matchers [][]*labels.Matcher) ([]Sample, error) {
	now := s.now()
	mint, maxt := timestamp.FromTime(now.Add(-s.settings.LookbackDelta)), timestamp.FromTime(now)
	var samples []Sample
	memo := storage.NewMemoizedEmptyIterator(maxt - mint)
	ws, err := s.selected(ctx, mint, maxt, matchers, func(lset labels.Labels, it chunkenc.Iterator) error {
		sample, ok := lastSample(memo, it, maxt)
		sample.Labels, sample.Name = lset, lset.Get(model.MetricNameLabel)
		if ok && sample.Name != "" {
			samples = append(samples, sample)
		}
		return it.Err()
	})
	if err != nil {
		return nil, respond.Classify(ctx, err)
	}
	if len(ws) > 0 {
		s.logger.Debug("federation has warnings", "warnings", ws.AsErrors())
	}
	slices.SortFunc(samples, func(a, b Sample) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Kind(), b.Kind()), labels.Compare(a.Labels, b.Labels))
	})
	return samples, nil
}

// lastSample returns the last sample at or before maxt; ok is false if there is none or it is a
// stale marker.
func lastSample(memo *storage.MemoizedSeriesIterator, it chunkenc.Iterator, maxt int64) (s Sample, ok bool) {
	memo.Reset(it)
	switch memo.Seek(maxt) {
	case chunkenc.ValNone:
		if _, s.T, s.V, s.H, ok = memo.PeekPrev(); !ok {
			return s, false
		}
	case chunkenc.ValFloat:
		s.T, s.V = memo.At()
	default:
		s.T, s.H = memo.AtFloatHistogram()
	}
	stale := value.IsStaleNaN(s.V) || s.H != nil && value.IsStaleNaN(s.H.Sum)
	return s, !stale
}
