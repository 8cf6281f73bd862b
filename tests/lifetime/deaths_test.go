package lifetime

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
)

// book is what a world must have.
type book struct {
	acknowledged map[model.Time]time.Time // when each sample of the series written was
	pending      model.Time               // sent and not acknowledged; 0: none
	seen         samples                  // what a query has found
}

// write sends a sample, or the last one once more if it was not acknowledged.
func (b *book) write(w *world) {
	if b.pending == 0 {
		b.pending = model.Now()
	}
	body, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: model.MetricNameLabel, Value: "written"}},
		Samples: []prompb.Sample{{Timestamp: int64(b.pending), Value: float64(b.pending)}},
	}}}).Marshal()
	require.NoError(w.t, err)
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/api/v1/write", bytes.NewReader(snappy.Encode(nil, body)))
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "snappy")
	rec := httptest.NewRecorder()
	if w.handler.ServeHTTP(rec, r); rec.Code == http.StatusNoContent {
		b.acknowledged[b.pending] = time.Now()
		b.pending = 0
	}
}

// look notes what a query finds, which is never less than before.
func (b *book) look(w *world) {
	w.t.Helper()
	now, _ := divided(w.matrix(`{__name__=~"written|c_total|v:twice",i!~"..+"}[3h]`, time.Now()))
	for name, values := range b.seen {
		for at, v := range values {
			got, ok := now[name][at]
			require.True(w.t, ok && got == v, "%s at %d: %g, and before %g", name, at, got, v)
		}
	}
	b.seen = now
	for at, when := range b.acknowledged {
		if time.Since(when) < 2*time.Second { // the query may share a listing with one from before
			continue
		}
		require.Equal(w.t, model.SampleValue(at), now["written"][at])
	}
}

// fromHead is the age from which on a process merges the segments that wait in its head: those from
// before it was born are merged by then.
const fromHead = 11 * time.Minute

// deaths: the process dies at any point of flushes, of merges from the head, of commits and of the
// removal of garbage, before or after a request to the store took effect. Nothing that was
// acknowledged or seen is lost, and nothing is there twice.
func deaths(t *testing.T, x *target) {
	w := newWorld(t, x, true)
	w.set.Compact.DeletionDelay, w.set.Query.Query.Timeout = 3*time.Minute, time.Minute
	begin := time.Now()
	b := &book{acknowledged: map[model.Time]time.Time{}}
	rng := rand.New(rand.NewPCG(1, 9))
	in := func(op memstore.Op, part string) func(memstore.Call) bool {
		return func(c memstore.Call) bool { return c.Op == op && strings.Contains(c.Key, part) }
	}
	either := []memstore.When{memstore.Before, memstore.After}
	merged, died := 0.0, 0
	for _, point := range []struct {
		match func(memstore.Call) bool
		most  int             // it is one of that many such requests
		age   time.Duration   // of the process, from which on they count
		when  []memstore.When // of the effect of the request
	}{
		{in(memstore.Put, "/segments/"), 40, 0, either},
		{in(memstore.Put, "/manifest"), 3, 0, either},
		{in(memstore.Delete, "/segments/"), 40, 0, either},
		{in(memstore.Put, "/blocks/"), 4, fromHead, either[:1]},
		{in(memstore.Put, "/meta.json"), 1, fromHead, either[1:]},
		{in(memstore.Put, "/manifest.json"), 1, fromHead, either[1:]},
	} {
		for _, when := range point.when {
			skip, dead, queue, looking := rng.IntN(point.most), false, "", false
			born := time.Now()
			w.inject(func(c memstore.Call) memstore.Fault {
				if !dead && !looking && time.Since(born) >= point.age && point.match(c) {
					if skip--; skip < 0 {
						dead, queue = true, w.copyQueue()
						return memstore.Fault{Err: errors.New("dead"), When: when}
					}
				}
				if dead {
					return memstore.Fault{Err: errors.New("dead")}
				}
				return memstore.Fault{}
			})
			w.start()
			alive := func(l bool) bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				looking = l
				return !dead
			}
			for range 200 {
				if x.run(7 * time.Second); !alive(false) {
					break
				}
				if b.write(w); rng.IntN(12) == 0 && alive(true) {
					b.look(w)
				}
			}
			require.False(t, alive(false))
			died++
			merged += w.metric("promlake_compact_merged_segments_total", `from="memory"`)
			w.abandon(queue)
		}
	}
	w.inject(nil)
	w.start()
	x.run(5 * time.Minute)
	b.write(w)
	b.look(w)
	at := time.Now()
	x.run(interval)
	w.once(at, at.Sub(begin))
	require.Greater(t, merged, 200.0, "segments that were merged from memory")
	require.Greater(t, len(b.seen["written"]), 200)
	for name, values := range b.seen {
		if strings.HasPrefix(name, "c_total{") { // a scrape or two for each death
			require.Greater(t, len(values), int(at.Sub(begin)/interval)-3*died)
		}
	}
	read, err := compacttest.Read(t.Context(), w.store, tenant.Default)
	require.NoError(t, err)
	for name, values := range b.seen {
		metric, rest, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		for at, v := range values {
			stored := read.Samples[strings.TrimSuffix(fmt.Sprintf("{__name__=%q, %s", metric, rest), ", ")+"}"]
			require.Equal(t, math.Float64bits(float64(v)), stored[int64(at)].Bits, "%s at %d", name, at)
		}
	}
	w.stop()
}
