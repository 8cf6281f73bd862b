package uploadapp_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/uploadapp"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestSweep: what nobody has finished for a day is deleted. Complete uploads, those that are under
// way and other objects stay.
func TestSweep(t *testing.T) {
	c, used := &clock{}, &atomic.Int64{}
	store := newStore(c)
	s := serve(t, store, func(o *options) { o.memory = memory.New(1<<30, probe(used), nil) })
	done, failed, begun, waiting := small(t, "done"), small(t, "failed"), small(t, "begun"), small(t, "waiting")
	s.upload(done)
	index := failed.files["index"]
	failed.files["index"] = bytes.Repeat([]byte("x"), len(index))
	s.send(failed)
	s.want(200, "", failed.id, "finish", nil)
	result, _ := s.wait(failed.id)
	require.Equal(t, "failed", result)
	s.send(begun)
	used.Store(1 << 30)
	s.send(waiting)
	s.want(200, "", waiting.id, "finish", nil)
	orphan := key.UploadsPrefix(name) + "01M830A8Q5FDT227PX59J0YKC3/index"
	other := key.UploadsPrefix(name) + "notes.txt"
	for _, k := range []string{orphan, other, key.UploadsPrefix(name) + done.id + "/index"} {
		_, err := store.Put(t.Context(), k, strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
	}

	c.pass(23 * time.Hour)
	require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
	for _, b := range []block{failed, begun} {
		require.Contains(t, uploads(store), b.id+"/index")
	}
	require.Contains(t, store.Keys(), orphan)
	require.NotContains(t, uploads(store), done.id+"/index", "what is left of a complete upload")
	s.want(200, "", begun.id, files("index"), begun.files["index"]) // the client goes on

	c.pass(2 * time.Hour)
	for range 2 {
		require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
	}
	left := strings.Join(uploads(store), " ")
	require.NotContains(t, left, failed.id)
	require.NotContains(t, store.Keys(), orphan)
	require.Contains(t, store.Keys(), other)
	for b, want := range map[*block]string{&done: "complete", &failed: "", &begun: "uploading", &waiting: "validating"} {
		result, _ := s.state(b.id)
		require.Equal(t, want, result)
	}

	c.pass(23 * time.Hour)
	require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
	s.want(http.StatusNotFound, "not started", begun.id, "finish", nil)

	used.Store(0)
	result, reason := s.wait(waiting.id)
	require.Equal(t, "complete", result, reason)
	failed.files["index"] = index
	s.upload(failed)
	require.Equal(t, 3*smallSamples, samples(t, store).Count())
}

// TestSweepKilled kills a sweep at every request. The next one deletes the rest.
func TestSweepKilled(t *testing.T) {
	b := small(t, "up")
	for at := 1; ; at++ {
		c := &clock{}
		var n atomic.Int64
		var dying atomic.Bool
		store := memstore.New(memstore.Settings{Now: c.now, Faults: func(memstore.Call) memstore.Fault {
			if dying.Load() && int(n.Add(1)) >= at {
				return memstore.Fault{Err: errKilled}
			}
			return memstore.Fault{}
		}})
		s := serve(t, store)
		s.send(b)
		c.pass(25 * time.Hour)
		dying.Store(true)
		err := uploadapp.Sweep(t.Context(), s.stage)
		dying.Store(false)
		require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
		if len(uploads(store)) > 0 { // files whose state was deleted first, or none
			c.pass(25 * time.Hour)
			require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
		}
		require.Empty(t, uploads(store), "killed at request %d", at)
		s.upload(b)
		require.Equal(t, smallSamples, samples(t, store).Count())
		if err == nil {
			return
		}
	}
}

// TestSweepRaces stops a sweep before one of its requests, while a client uploads the block again.
// What the client has been told to be finished is imported, and nothing else is.
func TestSweepRaces(t *testing.T) {
	b := small(t, "up")
	prefix := key.UploadsPrefix(name) + b.id + "/"
	mark := func(c memstore.Call) bool { return c.Op == memstore.Put && c.Key == prefix+key.UploadState }
	afterMark := func(c memstore.Call) bool { return c.Op == memstore.List && c.Key == prefix }
	for what, tc := range map[string]struct {
		orphans bool // the files have no state
		before  func(memstore.Call) bool
		start   int // status
	}{
		"listed":          {false, mark, http.StatusOK},
		"listed, orphans": {true, mark, http.StatusOK},
		"marked":          {false, afterMark, http.StatusServiceUnavailable},
		"marked, orphans": {true, afterMark, http.StatusServiceUnavailable},
		"deletes":         {false, func(c memstore.Call) bool { return c.Op == memstore.Delete && c.Key != prefix+key.UploadState }, http.StatusServiceUnavailable},
		"deletes state":   {false, func(c memstore.Call) bool { return c.Op == memstore.Delete && c.Key == prefix+key.UploadState }, http.StatusServiceUnavailable},
	} {
		t.Run(what, func(t *testing.T) {
			c, used := &clock{}, &atomic.Int64{}
			var armed atomic.Bool
			at, on := make(chan struct{}), make(chan struct{})
			store := memstore.New(memstore.Settings{Now: c.now, Faults: func(call memstore.Call) memstore.Fault {
				if armed.Load() && tc.before(call) && armed.CompareAndSwap(true, false) {
					close(at)
					return memstore.Fault{Until: on}
				}
				return memstore.Fault{}
			}})
			s := serve(t, store, func(o *options) { o.memory = memory.New(1<<30, probe(used), nil) })
			used.Store(1 << 30) // no import begins
			s.send(b)
			if tc.orphans {
				require.NoError(t, store.Delete(t.Context(), prefix+key.UploadState))
			}
			c.pass(25 * time.Hour)
			armed.Store(true)
			swept := make(chan error, 1)
			go func() { swept <- uploadapp.Sweep(t.Context(), s.stage) }()
			select {
			case <-at:
			case err := <-swept:
				t.Fatalf("the sweep has ended: %v", err)
			}
			if tc.start == http.StatusOK {
				s.send(b)
				s.want(200, "", b.id, "finish", nil)
			} else {
				s.want(http.StatusNotFound, "not started", b.id, "finish", nil)
				s.want(http.StatusServiceUnavailable, "is being deleted: try again later", b.id, "start", b.meta)
				s.want(http.StatusNotFound, "not started", b.id, files("index"), b.files["index"])
				other := serve(t, store)
				c.pass(59 * time.Minute)
				require.NoError(t, uploadapp.Sweep(t.Context(), other.stage), "leaves the deletion to the first one")
				s.want(http.StatusServiceUnavailable, "is being deleted: try again later", b.id, "start", b.meta)
			}
			close(on)
			require.NoError(t, <-swept)
			if tc.start != http.StatusOK {
				require.Empty(t, uploads(store))
				s.send(b)
				s.want(200, "", b.id, "finish", nil)
			}
			used.Store(0)
			result, reason := s.wait(b.id)
			require.Equal(t, "complete", result, reason)
			require.Equal(t, smallSamples, samples(t, store).Count())
		})
	}
}
