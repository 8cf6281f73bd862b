package sql

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// stuckStore is a remote store whose reads of a prefix wait until release is closed.
type stuckStore struct {
	objstore.Store
	prefix  string
	release chan struct{}
	waiting chan struct{} // has one for each read that waits
}

func (s *stuckStore) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if strings.HasPrefix(k, s.prefix) && !strings.HasSuffix(k, "/manifest.json") {
		select {
		case <-s.release:
		default:
			s.waiting <- struct{}{}
			select {
			case <-s.release:
			case <-ctx.Done():
				return nil, objstore.Object{}, ctx.Err()
			}
		}
	}
	return s.Store.Get(ctx, k, offset, length)
}

// TestSQLAndPromQLShareTheQueue: statements and PromQL queries of a tenant that hang leave a place
// for both kinds of another tenant, whatever waits before them, and end when they can.
func TestSQLAndPromQLShareTheQueue(t *testing.T) {
	dir := laketest.NewDir(t)
	writer := laketest.New(t, dir, query.Settings{})
	for _, id := range []string{"a", "b"} {
		writer.Write(id, []segment.Row{{Labels: laketest.Metric("up", "who", id), Floats: []segment.Float{{T: laketest.Now().UnixMilli() - 1000, V: 1}}}})
	}
	at := fmt.Sprint(laketest.Now().Unix())
	requests := []struct {
		path string
		form url.Values
		want string // in the answer
	}{
		{"/api/v1/sql", url.Values{"query": {"SELECT labels['who'] AS who FROM samples WHERE metric = 'up'"}, "format": {"csv"}}, "who\n%s\n"},
		{"/api/v1/query", url.Values{"query": {"sum by (who) (up)"}, "time": {at}}, `"who":"%s"`},
		{"/api/v1/sql", url.Values{"query": {"SELECT labels['who'] AS who FROM promql('sum by (who) (up)', " + at + ", " + at + ", 1)"}, "format": {"csv"}}, "who\n%s\n"},
		{"/api/v1/query_range", url.Values{"query": {"count by (who) (up)"}, "start": {at}, "end": {at}, "step": {"1"}}, `"who":"%s"`},
	}
	for _, places := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("max-concurrency=%d", places), func(t *testing.T) {
			store := &stuckStore{Store: dir, prefix: key.TenantPrefix("a"), release: make(chan struct{}), waiting: make(chan struct{}, 1000)}
			l := laketest.New(t, store, query.Settings{MaxConcurrency: places, Timeout: 10 * time.Minute})
			srv := serve(l)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			var running sync.WaitGroup
			answers := make(chan string, 1000)
			ask := func(id string, i int) {
				r := requests[i%len(requests)]
				code, body, err := askAs(ctx, srv, id, r.path, r.form)
				switch want := fmt.Sprintf(r.want, id); {
				case err != nil:
					answers <- err.Error()
				case code != http.StatusOK || !strings.Contains(body, want):
					answers <- fmt.Sprintf("%s of %s: %d %s", r.path, id, code, body)
				default:
					answers <- ""
				}
			}
			const crowd = 24
			for i := range crowd {
				running.Go(func() { ask("a", i) })
			}
			select { // others of the crowd wait for what this one reads
			case <-store.waiting:
			case <-ctx.Done():
				t.Fatal("no request of the crowd runs")
			}
			if places == 1 { // the only place is taken: whoever comes waits for its turn
				for i := range requests {
					running.Go(func() { ask("b", i) })
				}
			} else {
				for i := range requests {
					ask("b", i)
					require.Empty(t, <-answers, "while the other tenant's requests hang")
				}
			}
			close(store.release)
			running.Wait()
			close(answers)
			n := 0
			for a := range answers {
				require.Empty(t, a)
				n++
			}
			require.Equal(t, laketest.Pick(places == 1, crowd+len(requests), crowd), n)
		})
	}
}
