package fetch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestFlight(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name        string
		first       error // of the call that others wait for
		calls       int
		firstResult error
		want        error // of the others
	}{
		{"shared", nil, 1, nil, nil},
		{"failed", boom, 1, boom, boom},
		{"given up", context.Canceled, 2, context.Canceled, nil},
		{"timed out", context.DeadlineExceeded, 2, context.DeadlineExceeded, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f Flight[int]
				calls := 0
				land := make(chan error)
				do := func() chan error {
					out := make(chan error, 1)
					go func() {
						v, err := f.Do(t.Context(), "k", func() (int, error) {
							calls++
							return calls, <-land
						})
						if err == nil && v != tc.calls {
							err = errors.New("another call's value")
						}
						out <- err
					}()
					synctest.Wait()
					return out
				}
				first := do()
				others := []chan error{do(), do()}
				require.Equal(t, 1, calls)
				land <- tc.first
				synctest.Wait()
				if tc.calls == 2 {
					land <- nil
				}
				require.ErrorIs(t, <-first, tc.firstResult)
				for _, o := range others {
					require.ErrorIs(t, <-o, tc.want)
				}
				require.Equal(t, tc.calls, calls)
				require.Empty(t, f.calls)
			})
		})
	}
}

// TestFlightIsLeftAtItsEnd: a caller that leaves while the call ends does not read its value, which
// the race detector would report.
func TestFlightIsLeftAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight[int]
		land, ctx := make(chan struct{}), t.Context()
		ended, cancel := context.WithCancel(ctx)
		go func() { _, _ = f.Do(ctx, "k", func() (int, error) { <-land; return 1, nil }) }()
		synctest.Wait()
		go func() { _, _ = f.Do(ended, "k", nil) }()
		synctest.Wait()
		cancel()
		close(land)
	})
}

// TestFlightIsLeft: a waiting caller returns when its own context ends, and a call that panics
// leaves no waiting caller.
func TestFlightIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight[int]
		land := make(chan struct{})
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			_, _ = f.Do(t.Context(), "k", func() (int, error) { <-land; panic("x") })
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		out := make(chan error, 2)
		wait := func(ctx context.Context) {
			_, err := f.Do(ctx, "k", func() (int, error) { return 0, errors.New("begun") })
			out <- err
		}
		go wait(ctx)
		go wait(t.Context())
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-out, context.Canceled)
		close(land)
		require.Equal(t, "x", <-done)
		require.ErrorIs(t, <-out, errPanicked)
		require.Empty(t, f.calls)
	})
}
