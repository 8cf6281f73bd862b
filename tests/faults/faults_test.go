package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
	"github.com/promlake/promlake/tests/support/s3test"
)

const (
	patience        = 5 * time.Minute // for everything that must come
	writers         = 8
	seriesPerWriter = 2
)

// world is what the servers, proxies and writers of a test share.
type world struct {
	gateway       *url.URL
	access        string // path and query of the store's URL, up to the endpoint
	direct        objstore.Store
	deletionDelay time.Duration
	other         string // path of this program in another version; empty: there is none
	servers       [2]*server
	times         []int64 // of all samples (ms), ascending
	lie           func(*http.Request) bool

	client    *http.Client    // of the writers
	transport *http.Transport // of the proxies

	acknowledged, killed, values atomic.Int64

	mu        sync.Mutex
	rng       *rand.Rand
	log       []string // of servers
	requests  []string // of proxies
	compacted int
	counts    map[string]*count // by protocol
}

// count is the number of requests that were acknowledged and of those that failed.
type count struct{ acknowledged, failed int }

func (w *world) count(p *protocol, acknowledged bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.counts[p.name]
	if c == nil {
		c = &count{}
		w.counts[p.name] = c
	}
	if acknowledged {
		c.acknowledged++
	} else {
		c.failed++
	}
}

// tally describes the requests of each protocol.
func (w *world) tally() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(w.counts)) {
		c := w.counts[name]
		lines = append(lines, fmt.Sprintf("%s: %d acknowledged, %d failed", name, c.acknowledged, c.failed))
	}
	return strings.Join(lines, "\n")
}

func newWorld(t *testing.T, seed uint64, deletionDelay time.Duration) *world {
	g := s3test.Start(t)
	w := &world{
		other: os.Getenv("PROMLAKE_FAULTS_OTHER_PROGRAM"),
		rng:   rand.New(rand.NewPCG(seed, 0)), deletionDelay: deletionDelay, counts: map[string]*count{},
		client:    &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}},
		transport: &http.Transport{MaxIdleConnsPerHost: 256},
	}
	var err error
	w.gateway, err = url.Parse(g.Endpoint)
	require.NoError(t, err)
	direct := g.StoreURL(t)
	w.access, _, _ = strings.Cut(direct, "?")
	w.access += "?" + url.Values{"region": {g.Region}, "access_key": {g.AccessKey}, "secret_key": {g.SecretKey}}.Encode()
	w.direct, err = storeurl.Open(t.Context(), direct)
	require.NoError(t, err)
	hour := time.Now().Truncate(time.Hour).UnixMilli()
	for _, ago := range []int64{50, 27, 26, 9, 7, 5, 4, 0} {
		for _, n := range []int64{0, 1, 60_000} {
			w.times = append(w.times, hour-ago*time.Hour.Milliseconds()+n)
		}
	}
	for n := range w.servers {
		s := &server{name: string(rune('A' + n)), world: w, dir: t.TempDir()}
		w.servers[n] = s
		require.NoError(t, s.start())
		t.Cleanup(func() { s.current().end() })
	}
	return w
}

func (w *world) storeURL(endpoint string) string {
	return w.access + "&endpoint=" + url.QueryEscape(endpoint)
}

// draw returns a seed.
func (w *world) draw() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Uint64()
}

// lies acknowledges a request that the gateway never gets, in the tests of the test.
func (w *world) lies(r *http.Request) (*http.Response, bool) {
	if w.lie == nil || !w.lie(r) {
		return nil, false
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Etag": {`"e"`}}}, true
}

// run executes the writers' rounds until more returns false, and then compares what both servers
// answer when everything is merged that can be.
func (w *world) run(ctx context.Context, more func(round int) bool) error {
	g, within := errgroup.WithContext(ctx)
	var all []*writer
	for n := range writers {
		wr := &writer{world: w, rng: rand.New(rand.NewPCG(w.draw(), 0)), pushes: newPushBook(fmt.Sprint(n))}
		for k := range seriesPerWriter {
			i := n*seriesPerWriter + k
			wr.books = append(wr.books, newBook(&protocols[i%len(protocols)], fmt.Sprint(i)))
		}
		all = append(all, wr)
		g.Go(func() error {
			for round := 0; more(round); round++ {
				if err := wr.round(within, round); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return w.finish(ctx, all)
}

func (w *world) finish(ctx context.Context, all []*writer) error {
	if err := w.merged(ctx); err != nil {
		return err
	}
	for _, wr := range all {
		for _, s := range w.servers {
			if err := wr.check(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// merged waits until no segment is live whose window is over.
func (w *world) merged(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; {
		snap, err := catalog.Take(ctx, w.direct, tenant.Default, key.MinTime, key.MaxTime)
		if err != nil {
			return fmt.Errorf("look whether all is merged: %w", err)
		}
		over := func(s catalog.SegmentRef) bool { return s.Window.End() < time.Now().Add(-time.Minute).UnixMilli() }
		if !slices.ContainsFunc(snap.Segments, over) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("segments are not merged after %s", patience)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func setting[T any](t *testing.T, name string, otherwise T, read func(string) (T, error)) T {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	v, err := read(s)
	require.NoError(t, err, name)
	return v
}

// TestFaults plays a number of rounds, or for a time. Every answer must be right.
func TestFaults(t *testing.T) {
	seed := setting(t, "PROMLAKE_FAULTS_SEED", rand.Uint64(), func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	delay := setting(t, "PROMLAKE_FAULTS_DELETION_DELAY", 10*time.Second, time.ParseDuration)
	length := setting(t, "PROMLAKE_FAULTS_SECONDS", 0, strconv.Atoi)
	w := newWorld(t, seed, delay)
	begin := time.Now()
	more := func(round int) bool { return round < 8 }
	if length > 0 {
		more = func(int) bool { return time.Since(begin) < time.Duration(length)*time.Second }
	}
	err := w.run(t.Context(), more)
	t.Logf("seed %d: %s, %d acknowledged, %d kills, %d merges\n%s", seed, time.Since(begin).Round(time.Second), w.acknowledged.Load(), w.killed.Load(), w.merges(), w.tally())
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, w.evidence(err))
	}
}

func (w *world) merges() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compacted
}

// TestLies: a gateway that acknowledges segments and does not keep them is found.
func TestLies(t *testing.T) {
	w := newWorld(t, 1, 10*time.Second)
	w.lie = func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/segments/")
	}
	err := w.run(t.Context(), func(round int) bool { return round < 1 })
	var m *mismatch
	require.ErrorAs(t, err, &m)
	require.ErrorContains(t, err, "answers nothing, allowed are [")
}
