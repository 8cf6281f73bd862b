package ingest

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/objstore"
)

// panicking is a source of randomness that panics while it is broken.
type panicking struct{ broken atomic.Bool }

func (p *panicking) Read(b []byte) (int, error) {
	if p.broken.Load() {
		panic("a defect")
	}
	return rand.Read(b)
}

// TestPanicsOfFlushes: a panic while a segment is encoded or stored fails the requests of the group
// and acknowledges nothing. What the tenant had learned is not used again, also not by requests
// that were decoded with it; later requests are stored, and what was acknowledged before is there.
func TestPanicsOfFlushes(t *testing.T) {
	for _, mode := range modes {
		for _, where := range []string{"encode", "put"} {
			t.Run(string(mode)+"/"+where, func(t *testing.T) {
				var ids, puts panicking
				set := quick()
				set.Mode = mode
				l := newLakeThrough(t, set, func() time.Time { return time.UnixMilli(someTime) }, func(s objstore.Store) objstore.Store { return brokenPuts{s, &puts} })
				l.stage.ids, l.manual = newIDSource(&ids), true
				send := func(code int, items ...item) (failed []string) {
					t.Helper()
					w := l.send(protocolV1, items)
					if mode == Buffered {
						failed, code = l.consume(), http.StatusNoContent
					}
					require.Equal(t, code, w.Code, w.Body)
					return failed
				}
				before, during, after := gauge("before", at(someTime, 1)), gauge("during", at(someTime, 2)), gauge("after", at(someTime, 3))
				require.Empty(t, send(http.StatusNoContent, before))
				learned := l.stage.tenants[anonymous].known.Load()
				p := map[string]*panicking{"encode": &ids, "put": &puts}[where]
				p.broken.Store(true)
				failed := send(http.StatusInternalServerError, during)
				require.Equal(t, mode == Buffered, len(failed) == 1)
				p.broken.Store(false)
				if where == "encode" {
					if mode != Buffered {
						_, err := l.stage.Append(t.Context(), anonymous, 1000, func(_ *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
							return remotewrite.Collect(learned.Generation, rules, room, func(c *remotewrite.Collector) error {
								c.Float(someTime, 4)
								if _, err := c.Series(c.Key([]byte("late"))); err != nil {
									return err
								}
								return c.Learn([]series.Label{{Name: "__name__", Value: "late"}})
							})
						})
						require.Error(t, err)
					}
					require.NotSame(t, learned.Series, l.stage.tenants[anonymous].known.Load().Series)
				}
				require.Empty(t, send(http.StatusNoContent, during, after))
				require.Equal(t, want(t, protocolV1, []item{before, during, after}), l.read(anonymous))
			})
		}
	}
}

// brokenPuts is a store whose puts panic.
type brokenPuts struct {
	objstore.Store
	p *panicking
}

func (s brokenPuts) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if _, err := s.p.Read(nil); err != nil {
		return "", err
	}
	return s.Store.Put(ctx, k, body, cond)
}
