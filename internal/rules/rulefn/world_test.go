package rulefn_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/appendertest"
	"github.com/promlake/promlake/tests/support/memstore"
)

const tenant, other = "t", "u"

var (
	errKilled = errors.New("killed")
	errAway   = errors.New("away")
	origin    = time.Unix(1_700_000_000, 0).UTC()
	language  = parser.NewParser(parser.Options{})
)

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Hour, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: language})
}

// world is a store, and functions over it that can be killed. Samples and notifications that are
// delivered are objects of the store, so that a kill may precede or follow them.
type world struct {
	*memstore.Store

	t      testing.TB
	base   *ruleeval.Memory // samples of others
	engine *promql.Engine
	set    rulefn.Settings
	queue  queue.Sender
	sender rulefn.Sender                                  // default: the world
	logger *slog.Logger                                   // default: none
	read   func(ctx context.Context, metric string) error // called before each read of a metric; nil: no error

	stored struct { // samples of rules that were read
		objects map[string][]appender.Sample // by key
		memory  *ruleeval.Memory             // of all of them
	}
	notices []string // that were sent, each as often as it was

	mu     sync.Mutex // of calls, dead and notices, while a function works
	calls  int
	writes int // of samples
	kill   int // the call at which the function dies; 0: none
	when   memstore.When
	dead   bool
	end    context.CancelFunc
}

func newWorld(t testing.TB, base *ruleeval.Memory) *world {
	w := &world{t: t, base: base, engine: newEngine(), set: settings.Default[rulefn.Settings](), logger: slog.New(slog.DiscardHandler)}
	w.set.ExternalURL = "http://example.com/p"
	w.stored.objects = map[string][]appender.Sample{}
	w.Store = memstore.New(memstore.Settings{Faults: func(memstore.Call) memstore.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls++; w.calls == w.kill {
			w.dead = true
			w.end()
			return memstore.Fault{Err: errKilled, When: w.when}
		}
		if w.dead {
			return memstore.Fault{Err: errKilled}
		}
		return memstore.Fault{}
	}})
	return w
}

// function returns a function that knows nothing yet.
func (w *world) function() *rulefn.Runner {
	to := w.sender
	if to == nil {
		to = w
	}
	r, err := rulefn.New(w.set, rulefn.Parts{
		Store: w.Store, Reading: w, Sink: w, Sender: to, Queue: w.queue, Parser: language,
		Enter: func(ctx context.Context, _ string) context.Context { return ctx },
		Retry: func(err error) bool { return errors.Is(err, errKilled) || errors.Is(err, errAway) }, Registry: prometheus.NewRegistry(),
		Logger: w.logger, Now: time.Now,
	})
	require.NoError(w.t, err)
	return r
}

// Engine implements rulefn.Reading.
func (w *world) Engine() promql.QueryEngine { return w.engine }

// Write implements rulefn.Sink.
func (w *world) Write(ctx context.Context, id string, message []byte, _ int) (refused, err error) {
	require.Contains(w.t, []string{tenant, other}, id)
	w.writes++
	return nil, w.put(ctx, "samples/", message)
}

// Send implements rulefn.Sender.
func (w *world) Send(ctx context.Context, id string, all []rulestate.Notification) (notify.Delivery, error) {
	require.Contains(w.t, []string{tenant, other}, id)
	body, err := json.Marshal(all)
	require.NoError(w.t, err)
	if err := w.put(ctx, "sent/", body); err != nil {
		return away(all), err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range all {
		w.notices = append(w.notices, text(n))
	}
	return notify.Delivery{Sent: len(all)}, nil
}

func (w *world) put(ctx context.Context, prefix string, body []byte) error {
	hash := sha256.Sum256(body)
	_, err := w.Put(ctx, prefix+hex.EncodeToString(hash[:]), bytes.NewReader(body), objstore.Condition{})
	return err
}

// Querier implements storage.Queryable: it reads the samples of others, and those of rules that are
// stored.
func (w *world) Querier(mint, maxt int64) (storage.Querier, error) {
	all, err := w.written(context.Background())
	if err != nil {
		return nil, err
	}
	q, err := ruleeval.Layers{w.base, all}.Querier(mint, maxt)
	return tapped{q, w}, err
}

// written returns the samples of rules that are stored. It lists the store, and reads objects that
// are new: objects of samples never change.
func (w *world) written(ctx context.Context) (*ruleeval.Memory, error) {
	known := len(w.stored.objects)
	for obj, err := range w.List(ctx, "samples/", "") {
		if err != nil {
			return nil, promql.ErrStorage{Err: err}
		}
		if _, ok := w.stored.objects[obj.Key]; ok {
			continue
		}
		body, _, err := objstore.ReadAll(ctx, w.Store, obj.Key)
		if err != nil {
			return nil, promql.ErrStorage{Err: err}
		}
		w.stored.objects[obj.Key] = decode(w.t, body)
	}
	if w.stored.memory == nil || len(w.stored.objects) > known {
		tx := &appender.Transaction{}
		for _, key := range slices.Sorted(maps.Keys(w.stored.objects)) {
			tx.Samples = append(tx.Samples, w.stored.objects[key]...)
		}
		slices.SortStableFunc(tx.Samples, func(a, b appender.Sample) int { return cmp.Compare(a.T, b.T) })
		all := ruleeval.NewMemory(math.MaxInt64, "")
		if err := all.Add(tx); err != nil {
			return nil, err
		}
		w.stored.memory = all
	}
	return w.stored.memory, nil
}

// tapped is a querier whose reads the world may let fail.
type tapped struct {
	storage.Querier
	w *world
}

// Select implements storage.Querier.
func (q tapped) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	for _, m := range ms {
		if m.Name == model.MetricNameLabel && q.w.read != nil {
			if err := q.w.read(ctx, m.Value); err != nil {
				return storage.ErrSeriesSet(err)
			}
		}
	}
	return q.Querier.Select(ctx, sorted, hints, ms...)
}

// each reads objects in the order of their keys.
func (w *world) each(ctx context.Context, prefix string, visit func([]byte)) error {
	var keys []string
	for obj, err := range w.List(ctx, prefix, "") {
		if err != nil {
			return promql.ErrStorage{Err: err}
		}
		keys = append(keys, obj.Key)
	}
	for _, k := range keys {
		body, _, err := objstore.ReadAll(ctx, w.Store, k)
		if err != nil {
			return promql.ErrStorage{Err: err}
		}
		visit(body)
	}
	return nil
}

func decode(t testing.TB, body []byte) (out []appender.Sample) {
	var req writev2.Request
	require.NoError(t, req.Unmarshal(body))
	b := labels.NewScratchBuilder(0)
	for _, ts := range req.Timeseries {
		ls, err := ts.ToLabels(&b, req.Symbols)
		require.NoError(t, err)
		for _, s := range ts.Samples {
			out = append(out, appendertest.Sample(ls, s.Timestamp, s.Value))
		}
	}
	return out
}

// delivered returns everything that was delivered, without repetitions. Two different samples of
// one series and time fail the test.
func (w *world) delivered() (samples, notifications map[string]string) {
	w.t.Helper()
	w.kill, w.dead = 0, false
	samples, notifications = map[string]string{}, map[string]string{}
	require.NoError(w.t, w.each(w.t.Context(), "samples/", func(body []byte) {
		for _, s := range decode(w.t, body) {
			k, v := fmt.Sprintf("%s@%d", s.Labels(), s.T), fmt.Sprintf("%016x", math.Float64bits(s.V))
			if old, ok := samples[k]; ok {
				require.Equal(w.t, old, v, k)
			}
			samples[k] = v
		}
	}))
	require.NoError(w.t, w.each(w.t.Context(), "sent/", func(body []byte) {
		var all []rulestate.Notification
		require.NoError(w.t, json.Unmarshal(body, &all))
		for _, n := range all {
			notifications[text(n)] = ""
		}
	}))
	return samples, notifications
}

func text(n rulestate.Notification) string {
	return fmt.Sprintf("%s %s %s %s %s", n.Labels, n.Annotations, n.StartsAt.UTC(), n.EndsAt.UTC(), n.GeneratorURL)
}

// tick lets a function work, and reports whether it survived.
func (w *world) tick(f *rulefn.Runner, at time.Time) bool {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	w.end, w.dead = cancel, false
	err := f.Tick(ctx, at)
	if w.dead {
		return false
	}
	require.NoError(w.t, err)
	return true
}

// rules sets the groups of the tenant.
func (w *world) rules(groups ...rulestore.Group) { w.t.Helper(); w.rulesOf(tenant, groups...) }

func (w *world) rulesOf(id string, groups ...rulestore.Group) {
	w.t.Helper()
	_, err := rulestore.Commit(w.t.Context(), w.Store, id, func(r rulestore.Rules) (rulestore.Rules, error) {
		r.Namespaces = nil
		for _, g := range groups {
			r = r.Set("n", g)
		}
		return r, nil
	})
	require.NoError(w.t, err)
}

// randomData returns series that come and go.
func randomData(r *rand.Rand, length time.Duration) *ruleeval.Memory {
	m := ruleeval.NewMemory(math.MaxInt64, "")
	for _, x := range []string{"1", "2", "3"} {
		ls, on := labels.FromStrings("__name__", "v", "x", x), true
		tx := &appender.Transaction{}
		for t := int64(-600_000); t < length.Milliseconds(); t += 15_000 {
			v := float64(r.IntN(10))
			if r.IntN(12) == 0 {
				if on = !on; !on {
					v = math.Float64frombits(value.StaleNaN)
				}
			} else if !on {
				continue
			}
			tx.Samples = append(tx.Samples, appendertest.Sample(ls, origin.UnixMilli()+t, v))
		}
		if err := m.Add(tx); err != nil {
			panic(err)
		}
	}
	return m
}

// keysOf returns the keys below a prefix.
func (w *world) keysOf(prefix string) (out []string) {
	for _, k := range w.Keys() {
		if strings.HasPrefix(k, prefix) {
			out = append(out, k)
		}
	}
	return out
}
