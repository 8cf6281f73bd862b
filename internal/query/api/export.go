package api

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/httputil"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/api/guard"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// histogramsSkipped is the trailer with the number of native histogram samples that an export left
// out.
const histogramsSkipped = "X-Promlake-Histograms-Skipped"

// Counter counts stored samples before they are read. A Backend may be one.
type Counter interface {
	// Count returns what series that match one of sets have in [mint, maxt] (ms, inclusive). It may
	// count a sample several times.
	Count(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64) (series, samples, bytes int64, err error)
}

// exporting serves the paths of VictoriaMetrics' exports. It answers with the samples of the series
// that match[] selects, between start and end. The samples of a piece of time are in memory at
// once; the series of each piece are in order.
func (s *server) exporting(format func(*http.Request) (Format, error)) http.Handler {
	return s.shared(s.tracked(s.withAsOf(httputil.CompressionHandler{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &export{server: s, w: w, ctx: r.Context()}
		mint, maxt, err := e.parse(r)
		if err == nil {
			e.format, err = format(r)
		}
		if err != nil {
			s.respond.Error(w, r, respond.BadData, err)
			return
		}
		httputil.SetCORS(w, s.cors, r)
		w.Header().Set("Trailer", histogramsSkipped)
		if err = e.read(mint, maxt); err == nil {
			err = e.flush(0)
		}
		switch {
		case err == nil:
			w.Header().Set(histogramsSkipped, strconv.Itoa(e.histograms))
		case e.began:
			s.logger.Warn("export ended early", "path", r.URL.Path, "err", err)
			panic(http.ErrAbortHandler) // so that the client notices that the answer is incomplete
		default:
			w.Header().Del("Trailer")
			s.respond.StorageError(w, r, err)
		}
	})})))
}

// The formats of exportPath and exportCSVPath.
func jsonFormat(*http.Request) (Format, error)  { return JSON(), nil }
func csvFormat(r *http.Request) (Format, error) { return CSV(r.FormValue("format")) }

// export is one export.
type export struct {
	*server
	w      http.ResponseWriter
	ctx    context.Context
	format Format
	sets   [][]*labels.Matcher

	began      bool // something was written
	out        []byte
	t          []int64 // of the series at hand
	v          []float64
	histograms int // samples left out
}

// parse reads the parameters match[], start and end. The default is all of the time (ms).
func (e *export) parse(r *http.Request) (mint, maxt int64, err error) {
	if err := r.ParseForm(); err != nil {
		return 0, 0, fmt.Errorf("error parsing form values: %w", err)
	}
	if e.sets, err = e.parser.ParseMetricSelectors(slices.Concat(r.Form["match[]"], r.Form["match"])); err != nil {
		return 0, 0, err
	}
	e.sets = slices.DeleteFunc(e.sets, func(ms []*labels.Matcher) bool { return len(ms) == 0 })
	if len(e.sets) == 0 {
		return 0, 0, respond.BadRequest(`no match[] parameter provided: match[]={__name__=~".+"} selects all series`)
	}
	start, err := moment(r, "start", time.UnixMilli(key.MinTime))
	if err != nil {
		return 0, 0, err
	}
	end, err := moment(r, "end", time.UnixMilli(key.MaxTime))
	if err != nil {
		return 0, 0, err
	}
	within := func(t time.Time) int64 { return min(max(t.UnixMilli(), key.MinTime), key.MaxTime) }
	if mint, maxt = within(start), within(end); mint > maxt {
		return 0, 0, respond.BadRequest(`invalid parameter "end": end timestamp must not be before start time`)
	}
	return mint, maxt, nil
}

// Bounds of an export.
const (
	pieceSamples = 1 << 20 // samples that are in memory at once
	maxParts     = 64      // parts of a range that has more
)

// read writes the samples of a range, in parts if they are too many.
func (e *export) read(mint, maxt int64) error {
	counter, ok := e.backend.(watched).Backend.(Counter)
	if !ok {
		return e.piece(mint, maxt)
	}
	_, n, _, err := counter.Count(e.ctx, e.sets, mint, maxt)
	if err != nil || n == 0 {
		return err
	}
	if n <= pieceSamples || mint == maxt {
		return e.piece(mint, maxt)
	}
	for from, end := range parts(mint, maxt, n) {
		if err := e.read(from, end); err != nil {
			return err
		}
	}
	return nil
}

// parts yields the parts of a range with n samples, each shorter than the range. They are windows
// where they are long enough, so that few blocks and segments are read for two parts.
func parts(mint, maxt, n int64) iter.Seq2[int64, int64] {
	count := min(maxParts, max(2, 2*n/pieceSamples))
	width := (maxt-mint)/count + 1
	return func(yield func(from, end int64) bool) {
		for from := mint; from <= maxt; {
			next := from + width
			if aligned := int64(key.WindowOf(next-1)) + key.WindowMillis; width >= key.WindowMillis && aligned <= maxt {
				next = aligned
			}
			if !yield(from, min(next-1, maxt)) {
				return
			}
			from = next
		}
	}
}

// piece writes the samples of a range, which are in memory at once.
func (e *export) piece(mint, maxt int64) error {
	ctx, work, err := e.guard.Begin(e.ctx)
	if err != nil {
		return err
	}
	defer work.End()
	_, err = e.selected(ctx, mint, maxt, e.sets, e.series)
	return err
}

// selected calls visit with the series that match one of sets, sorted and merged, in [mint, maxt]
// (ms).
func (s *server) selected(ctx context.Context, mint, maxt int64, matchers [][]*labels.Matcher, visit func(labels.Labels, chunkenc.Iterator) error) (annotations.Annotations, error) {
	q, err := s.backend.Querier(mint, maxt)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := q.Close(); err != nil {
			s.logger.Warn("close querier", "err", err)
		}
	}()
	hints := &storage.SelectHints{Start: mint, End: maxt}
	sets := make([]storage.SeriesSet, len(matchers))
	for i, ms := range matchers {
		sets[i] = q.Select(ctx, true, hints, ms...)
	}
	set := storage.NewMergeSeriesSet(sets, 0, storage.ChainedSeriesMerge)
	var it chunkenc.Iterator
	for set.Next() {
		one := set.At()
		it = one.Iterator(it)
		if err := visit(one.Labels(), it); err != nil {
			return nil, err
		}
	}
	return set.Warnings(), set.Err()
}

// lineSamples is how many samples of a series are gathered before they are written.
const lineSamples = 10_000

func (e *export) series(lset labels.Labels, it chunkenc.Iterator) error {
	e.t, e.v = e.t[:0], e.v[:0]
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		if kind != chunkenc.ValFloat {
			e.histograms++
			continue
		}
		t, v := it.At()
		e.t, e.v = append(e.t, t), append(e.v, v)
		if len(e.t) == lineSamples {
			if err := e.lines(lset); err != nil {
				return err
			}
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	return e.lines(lset)
}

// lines writes the samples of a series that were gathered.
func (e *export) lines(lset labels.Labels) error {
	if len(e.t) == 0 {
		return nil
	}
	e.out = e.format.Append(e.out, lset, e.t, e.v)
	e.t, e.v = e.t[:0], e.v[:0]
	return e.flush(guard.PieceBytes)
}

// flush writes what was gathered if it is at least size bytes.
func (e *export) flush(size int) error {
	if len(e.out) < size {
		return nil
	}
	if !e.began {
		e.began = true
		e.w.Header().Set("Content-Type", e.format.ContentType())
	}
	if _, err := e.w.Write(e.out); err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	e.out = e.out[:0]
	return nil
}
