package uploadapp_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/uploadapp"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/tests/support/memstore"
)

var errKilled = errors.New("killed")

// TestKilled kills a process at every request to the store, before and after its effect. A new
// process continues what was finished, by itself or when it is asked to finish again. A client
// repeats the rest. No sample is lost or imported twice.
func TestKilled(t *testing.T) {
	b := small(t, "up")
	for at, total := 0, 1; at < total; at++ {
		for _, when := range []memstore.When{memstore.Before, memstore.After} {
			var n atomic.Int64
			var dead atomic.Bool
			dying := at > 0
			store := memstore.New(memstore.Settings{Now: (&clock{}).now, Faults: func(memstore.Call) memstore.Fault {
				f := memstore.Fault{}
				if i := int(n.Add(1)); dying && i >= at {
					dead.Store(true)
					f.Err = errKilled
					if i == at {
						f.When = when
					}
				}
				return f
			}})
			label := fmt.Sprintf("killed at request %d (%v)", at, when)
			first := serve(t, store)
			first.try(b, dead.Load)
			first.kill()
			if at == 0 {
				total = int(n.Load()) + 1
				break
			}
			dying = false
			second := serve(t, store)
			switch result, reason := second.wait(b.id); result {
			case "complete":
			case "", "uploading":
				second.upload(b)
			default:
				t.Fatalf("%s: %s %s", label, result, reason)
			}
			require.Equal(t, smallSamples, samples(t, store).Count(), label)
			require.Eventually(t, func() bool { return len(uploads(store)) == 1 }, time.Minute, time.Millisecond, "%s: %v", label, uploads(store))
			blocks := 0
			for _, k := range store.Keys() {
				if strings.HasPrefix(k, "v1/"+name+"/imports/") {
					blocks++
				}
			}
			require.Equal(t, 2, blocks, label)
		}
	}
}

// try uploads a block until it is complete or the process dies.
func (s *server) try(b block, dead func() bool) {
	s.t.Helper()
	s.ask(http.MethodPost, b.id, "start", b.meta)
	for path, raw := range b.files {
		s.ask(http.MethodPost, b.id, files(path), raw)
	}
	s.ask(http.MethodPost, b.id, "finish", nil)
	require.Eventually(s.t, func() bool {
		if dead() {
			return true
		}
		_, text := s.ask(http.MethodGet, b.id, "check", nil)
		return strings.Contains(text, "complete")
	}, time.Minute, 10*time.Millisecond)
}

// TestCrashes: a block whose import kills the process three times is not imported by a fourth one.
// A client may finish it again.
func TestCrashes(t *testing.T) {
	b := small(t, "up")
	index := key.UploadsPrefix(name) + b.id + "/index"
	var crashing, dead atomic.Bool
	var imports atomic.Int64
	store := memstore.New(memstore.Settings{Now: (&clock{}).now, Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Get && c.Key == index {
			imports.Add(1)
			dead.Store(crashing.Load())
		}
		if dead.Load() {
			return memstore.Fault{Err: errKilled}
		}
		return memstore.Fault{}
	}})
	s := serve(t, store)
	s.send(b)
	crashing.Store(true)
	s.want(200, "", b.id, "finish", nil)
	for n := range int64(3) {
		require.Eventually(t, dead.Load, 5*time.Minute, time.Millisecond)
		s.kill()
		imports.Store(n + 1) // without those of the dead process
		dead.Store(false)
		s = serve(t, store)
	}
	result, reason := s.wait(b.id)
	require.Equal(t, "failed", result)
	require.Contains(t, reason, "3 imports of the block ended with the process, the limit")
	require.Equal(t, int64(3), imports.Load())
	require.Equal(t, 1.0, metric(t, s, "failed"))

	crashing.Store(false)
	s.want(200, "", b.id, "finish", nil)
	result, reason = s.wait(b.id)
	require.Equal(t, "complete", result, reason)
	require.Equal(t, smallSamples, samples(t, store).Count())
}

// TestDrains: an import that ends with its process in an orderly way does not count as an attempt.
func TestDrains(t *testing.T) {
	b := small(t, "up")
	index := key.UploadsPrefix(name) + b.id + "/index"
	never := make(chan struct{})
	var reading, open atomic.Bool
	store := memstore.New(memstore.Settings{Now: (&clock{}).now, Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Get && c.Key == index && !open.Load() {
			reading.Store(true)
			return memstore.Fault{Until: never}
		}
		return memstore.Fault{}
	}})
	s := serve(t, store)
	s.send(b)
	s.want(200, "", b.id, "finish", nil)
	for range 2 * uploadapp.MaxAttempts {
		require.Eventually(t, reading.Load, 5*time.Minute, time.Millisecond)
		s.kill()
		reading.Store(false)
		s = serve(t, store)
	}
	require.Eventually(t, reading.Load, 5*time.Minute, time.Millisecond)
	s.kill()
	open.Store(true)
	s = serve(t, store)
	result, reason := s.wait(b.id)
	require.Equal(t, "complete", result, reason)
}
