package ingest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/memstore"
)

// source appends one sample at a time (ms) to each of the series with these names.
func source(at int64, names ...string) Source {
	return func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		return remotewrite.Collect(g, rules, room, func(c *remotewrite.Collector) error {
			for _, name := range names {
				c.Started(at-1, at, 5)
				known, err := c.Series(c.Key([]byte("test " + name)))
				if err != nil {
					return err
				}
				if !known {
					if err := c.Learn([]series.Label{{Name: "__name__", Value: name}}); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// TestAppend: samples of the process itself become durable in every mode, and what is refused is
// distinguished from what should be appended again.
func TestAppend(t *testing.T) {
	for _, mode := range []Mode{Grouped, Direct, Buffered} {
		t.Run(string(mode), func(t *testing.T) {
			l := calmIn(t, mode)
			ctx := t.Context()
			consume := func() {
				if l.queue != nil {
					require.Empty(t, l.consume())
				}
			}
			names := func() (out []string) {
				consume()
				for name := range l.read("team") {
					out = append(out, name)
				}
				slices.Sort(out)
				return out
			}
			refused, err := l.stage.Append(ctx, "team", 1000, source(someTime, "a", "b"))
			require.NoError(t, errors.Join(refused, err))
			require.Equal(t, []string{`{__name__="a"}`, `{__name__="b"}`}, names())

			refused, err = l.stage.Append(ctx, "team", 1000, source(someTime+1, "c", "\xff"))
			require.NoError(t, err)
			require.ErrorContains(t, refused, "label_value_invalid")
			require.Contains(t, names(), `{__name__="c"}`, "the valid part is stored")

			refused, err = l.stage.Append(ctx, "no/tenant", 1000, source(someTime, "a"))
			require.NoError(t, err)
			require.ErrorIs(t, refused, errTenant)

			l.tick()
			fault := memstore.Fault{Err: errDown, When: memstore.Before}
			if mode != Buffered {
				l.faults.Add(memstore.On(memstore.Put), fault)
				refused, err = l.stage.Append(ctx, "team", 1000, source(someTime+2, "d"))
				require.NoError(t, refused)
				require.ErrorIs(t, err, errDown, "it should be appended again")
				require.NotContains(t, names(), `{__name__="d"}`)
			}
			require.Zero(t, l.inflight())

			ended, cancel := context.WithCancel(ctx)
			cancel()
			_, err = l.stage.Append(ended, "team", l.stage.set.MaxInflightBytes, source(someTime+3, "e"))
			if mode == Grouped {
				require.ErrorIs(t, err, context.Canceled)
			}
		})
	}
}
