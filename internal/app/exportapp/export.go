// Package exportapp writes samples of a store or a server as files that other systems read.
package exportapp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	config_util "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/format/key"
)

// Settings say what is exported.
type Settings struct {
	Match []string  // selectors; none: all series
	Start time.Time // inclusive
	End   time.Time // inclusive
	// Timeout bounds one request, which reads two hours.
	Timeout time.Duration
}

// Sink takes the samples of one window of two hours after the other. Series of a window are in the
// order of labels.
type Sink interface {
	// Window takes the samples of a window. The set is read once.
	Window(ctx context.Context, set storage.SeriesSet) error
	Close() error
}

// Report counts what was exported.
type Report struct {
	Series  int64 // of each window
	Floats  int64
	Hists   int64 // native histograms
	Skipped int64 // samples that the format has no place for
}

// each gives the series of a set to f, and counts them.
func (r *Report) each(ctx context.Context, set storage.SeriesSet, f func(labels.Labels, chunkenc.Iterator) error) error {
	var it chunkenc.Iterator
	for set.Next() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.Series++
		one := set.At()
		it = one.Iterator(it)
		if err := cmp.Or(f(one.Labels(), it), it.Err()); err != nil {
			return fmt.Errorf("series %s: %w", one.Labels(), err)
		}
	}
	return set.Err()
}

// Run reads the samples from a server at an address, through its remote read API, and writes them
// to sink. It does not close sink.
func Run(ctx context.Context, client *http.Client, address string, s Settings, sink Sink) error {
	if len(s.Match) == 0 {
		s.Match = []string{`{__name__=~".+"}`}
	}
	sets, err := parser.NewParser(parser.Options{}).ParseMetricSelectors(s.Match)
	if err != nil {
		return fmt.Errorf("export: --match: %w", err)
	}
	u, err := url.Parse(address + "/api/v1/read")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	read, err := remote.NewReadClient("export", &remote.ClientConfig{
		URL: &config_util.URL{URL: u}, Timeout: model.Duration(s.Timeout), ChunkedReadLimit: config.DefaultChunkedReadLimit,
	})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if c, ok := read.(*remote.Client); ok {
		c.Client = client
	}
	first, last := s.Start.UnixMilli(), s.End.UnixMilli()
	if first > last || first < key.MinTime || last > key.MaxTime {
		return fmt.Errorf("export: from %s to %s: want a start before the end, and years 0 to 9999", s.Start.UTC().Format(time.RFC3339), s.End.UTC().Format(time.RFC3339))
	}
	for day := int64(key.L24h.WindowOf(first)); day <= last; day += key.L24h.Millis() {
		from, to := max(first, day), min(last, day+key.L24h.Millis()-1)
		some, err := s.occupied(ctx, client, address, from, to)
		if err != nil {
			return err
		}
		for w := int64(key.WindowOf(from)); some && w <= to; w += key.WindowMillis {
			from := max(from, w)
			to := min(to, w+key.WindowMillis-1)
			found := make([]storage.SeriesSet, len(sets))
			for i, ms := range sets {
				q, err := remote.ToQuery(from, to, ms, nil)
				if err == nil {
					found[i], err = read.Read(ctx, q, true)
				}
				if err != nil {
					return fmt.Errorf("export window %s: %w", key.Window(w), err)
				}
			}
			if err := sink.Window(ctx, storage.NewMergeSeriesSet(found, 0, storage.ChainedSeriesMerge)); err != nil {
				return fmt.Errorf("export window %s: %w", key.Window(w), err)
			}
		}
	}
	return nil
}

// maxAnswer bounds the answer to the question for a series, bytes.
const maxAnswer = 1 << 20

// occupied reports whether there are series in a range (ms, inclusive).
func (s Settings) occupied(ctx context.Context, client *http.Client, address string, from, to int64) (bool, error) {
	form := url.Values{"match[]": s.Match, "start": {ask.Seconds(from)}, "end": {ask.Seconds(to)}, "limit": {"1"}}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	var answer struct{ Data []json.RawMessage }
	if err := ask.PostJSON(ctx, client, address+"/api/v1/series", form, maxAnswer, &answer); err != nil {
		return false, fmt.Errorf("ask for series: %w", err)
	}
	return len(answer.Data) > 0, nil
}
