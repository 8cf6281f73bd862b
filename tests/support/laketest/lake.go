// Package laketest writes samples as segments and blocks in many layouts, and asks the query stage
// about them: the fixtures of the tests of PromQL and SQL.
package laketest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// Lake is a storage.Storage: commits write real segments, one per 2h window, and reads go through
// the query stage.
type Lake struct {
	*query.Stage
	TB       testing.TB
	Store    objstore.Store
	Seq      uint64 // of segment ids: their order is the order of writing
	Registry *prometheus.Registry

	Rewrite func(segment []byte) []byte               // changes segments before they are stored, if set
	Commits func(tenantID string, rows []segment.Row) // takes what appenders commit; nil = write
}

// Much of what tests allocate is garbage at once: with the usual target, the collector takes a
// fifth of their processor time.
func init() { debug.SetGCPercent(400) }

// Now is the clock of tests.
func Now() time.Time { return time.Unix(1_700_000_000, 0).UTC() }

// New returns a lake whose stage reads store, with the clock Now. The stage is closed with the
// test.
func New(tb testing.TB, store objstore.Store, s query.Settings) *Lake {
	tb.Helper()
	reg := prometheus.NewRegistry()
	st, err := query.New(s, store, reg, slog.New(slog.DiscardHandler), Now)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, st.Close()) })
	return &Lake{Stage: st, TB: tb, Store: store, Registry: reg}
}

// Counted sums a metric of the stage, over those of its series that have all the label values.
func (l *Lake) Counted(name string, values ...string) float64 {
	l.TB.Helper()
	families, err := l.Registry.Gather()
	require.NoError(l.TB, err)
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			has := func(v string) bool {
				return slices.ContainsFunc(m.GetLabel(), func(p *dto.LabelPair) bool { return p.GetValue() == v })
			}
			if f.GetName() == name && !slices.ContainsFunc(values, func(v string) bool { return !has(v) }) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// NextID returns an ID for a new object, above those of all earlier ones.
func (l *Lake) NextID() ulid.ULID {
	l.Seq++
	var id ulid.ULID
	require.NoError(l.TB, id.SetTime(1_700_000_000_000+l.Seq))
	return id
}

// Write stores rows, whose samples may be in any window, as new segments of a tenant.
func (l *Lake) Write(tenantID string, rows []segment.Row, meta ...segment.Metadata) {
	l.TB.Helper()
	byWindow := map[key.Window]map[string]*segment.Row{}
	at := func(lset labels.Labels, t int64) *segment.Row {
		w := key.WindowOf(t)
		if byWindow[w] == nil {
			byWindow[w] = map[string]*segment.Row{}
		}
		k := lset.String()
		if byWindow[w][k] == nil {
			byWindow[w][k] = &segment.Row{Labels: lset}
		}
		return byWindow[w][k]
	}
	for _, r := range rows {
		for _, f := range r.Floats {
			row := at(r.Labels, f.T)
			row.Floats = append(row.Floats, f)
		}
		for _, h := range r.Hists {
			row := at(r.Labels, h.T)
			row.Hists = append(row.Hists, h)
		}
		for _, e := range r.Exemplars {
			row := at(r.Labels, e.Ts)
			row.Exemplars = append(row.Exemplars, e)
		}
	}
	for _, w := range slices.Sorted(maps.Keys(byWindow)) {
		var out []segment.Row
		for _, r := range byWindow[w] {
			slices.SortStableFunc(r.Floats, func(a, b segment.Float) int { return cmp.Compare(a.T, b.T) })
			slices.SortStableFunc(r.Hists, func(a, b segment.Hist) int { return cmp.Compare(a.T, b.T) })
			slices.SortStableFunc(r.Exemplars, func(a, b exemplar.Exemplar) int { return cmp.Compare(a.Ts, b.Ts) })
			out = append(out, *r)
		}
		slices.SortFunc(out, func(a, b segment.Row) int { return strings.Compare(a.Labels.String(), b.Labels.String()) })
		l.WriteSegment(tenantID, w, out, meta)
	}
}

// WriteSegment stores rows in the order of a segment.
func (l *Lake) WriteSegment(tenantID string, w key.Window, rows []segment.Row, meta []segment.Metadata) key.Segment {
	l.TB.Helper()
	b, _, err := segmenttest.Encode(rows, meta)
	require.NoError(l.TB, err)
	if l.Rewrite != nil {
		b = l.Rewrite(b)
	}
	seg := key.Segment{Tenant: tenantID, Window: w, ID: l.NextID()}
	Put(l.TB, l.Store, seg.String(), b)
	return seg
}

// StartTime implements storage.Storage.
func (l *Lake) StartTime() (int64, error) { return 0, nil }

// Close does nothing: the stage is closed with the test.
func (l *Lake) Close() error { return nil }

// Appender implements storage.Appendable, which the oracles do not use.
func (l *Lake) Appender(context.Context) storage.Appender {
	l.TB.Fatal("appender of the first kind asked for")
	return nil
}

// AppenderV2 implements storage.AppendableV2. What it appends is stored on Commit.
func (l *Lake) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &appender{lake: l, tenant: tenant.From(ctx), rows: map[string]*segment.Row{}}
}

// appender collects rows until Commit.
type appender struct {
	lake   *Lake
	tenant string
	rows   map[string]*segment.Row
}

func (a *appender) Append(_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AOptions) (storage.SeriesRef, error) {
	k := ls.String()
	r := a.rows[k]
	if r == nil {
		r = &segment.Row{Labels: ls}
		a.rows[k] = r
	}
	switch {
	case h != nil:
		r.Hists = append(r.Hists, segment.Hist{ST: st, T: t, H: h.Copy()})
	case fh != nil:
		r.Hists = append(r.Hists, segment.Hist{ST: st, T: t, FH: fh.Copy()})
	default:
		r.Floats = append(r.Floats, segment.Float{ST: st, T: t, V: v})
	}
	r.Exemplars = append(r.Exemplars, opts.Exemplars...)
	return 1, nil
}

func (a *appender) Commit() error {
	if a.rows == nil {
		return errors.New("appender was used up")
	}
	rows := make([]segment.Row, 0, len(a.rows))
	for _, k := range slices.Sorted(maps.Keys(a.rows)) {
		rows = append(rows, *a.rows[k])
	}
	a.rows = nil
	if a.lake.Commits != nil {
		a.lake.Commits(a.tenant, rows)
		return nil
	}
	a.lake.Write(a.tenant, rows)
	return nil
}

func (a *appender) Rollback() error {
	a.rows = nil
	return nil
}
