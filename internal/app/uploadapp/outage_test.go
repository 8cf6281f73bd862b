package uploadapp_test

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/uploadapp"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// metric returns the count of uploads that ended with a result.
func metric(t *testing.T, s *server, result string) float64 {
	t.Helper()
	all, err := s.reg.Gather()
	require.NoError(t, err)
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == "promlake_block_uploads_total" && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// TestOutage: a store that fails for a moment does not fail the upload. One that fails for longer
// does, and the client finishes it again.
func TestOutage(t *testing.T) {
	b := small(t, "up")
	script := &memstore.Script{}
	index := key.UploadsPrefix(name) + b.id + "/index"
	fail := func(times int) {
		for range times {
			script.Add(func(c memstore.Call) bool { return c.Op == memstore.Get && c.Key == index }, memstore.Fault{Err: errors.New("no answer")})
		}
	}
	store := memstore.New(memstore.Settings{Now: (&clock{}).now, Faults: script.Next})
	s := serve(t, store)
	s.send(b)
	fail(len(pauses) + 1)
	s.want(200, "", b.id, "finish", nil)
	result, reason := s.wait(b.id)
	require.Equal(t, "failed", result)
	require.Contains(t, reason, "no answer")
	require.Zero(t, script.Left())

	fail(len(pauses))
	s.want(200, "", b.id, "finish", nil)
	result, reason = s.wait(b.id)
	require.Equal(t, "complete", result, reason)
	require.Zero(t, script.Left())
	require.Equal(t, smallSamples, samples(t, store).Count())
}

// TestOutageAtTheEnd: the samples are imported once if the store does not take the state of that at
// first.
func TestOutageAtTheEnd(t *testing.T) {
	b := small(t, "up")
	state := key.UploadsPrefix(name) + b.id + "/" + key.UploadState
	var puts atomic.Int64 // of start, of finish, of the begin of the import, then of its end
	store := memstore.New(memstore.Settings{Now: (&clock{}).now, Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Put && c.Key == state {
			if n := int(puts.Add(1)); n > 3 && n <= 3+len(pauses) {
				return memstore.Fault{Err: errors.New("no answer")}
			}
		}
		return memstore.Fault{}
	}})
	s := serve(t, store)
	s.send(b)
	s.want(200, "", b.id, "finish", nil)
	result, reason := s.wait(b.id)
	require.Equal(t, "complete", result, reason)
	require.Equal(t, int64(4+len(pauses)), puts.Load())
	require.Equal(t, smallSamples, samples(t, store).Count())
}

// TestUnreadable: an upload whose state cannot be decoded does not keep others from being imported.
func TestUnreadable(t *testing.T) {
	used, logs := &atomic.Int64{}, &lines{}
	used.Store(1 << 30)
	store := newStore(&clock{})
	s := serve(t, store, func(o *options) { o.memory, o.log = memory.New(1<<30, probe(used), nil), logs })
	a, b, c := small(t, "a"), small(t, "b"), small(t, "c")
	for _, x := range []block{a, b, c} {
		s.send(x)
		s.want(200, "", x.id, "finish", nil)
	}
	other := uploadapp.State{Version: uploadapp.Version + 1}
	newer, err := other.Encode()
	require.NoError(t, err)
	for id, text := range map[string][]byte{a.id: newer, b.id: []byte("x")} {
		_, err := store.Put(t.Context(), key.UploadsPrefix(name)+id+"/"+key.UploadState, bytes.NewReader(text), objstore.Condition{})
		require.NoError(t, err)
	}
	used.Store(0)
	result, reason := s.wait(c.id)
	require.Equal(t, "complete", result, reason)
	require.Equal(t, 2.0, metric(t, s, "unreadable"))
	for _, x := range []block{a, b} {
		require.Contains(t, logs.String(), "key="+key.UploadsPrefix(name)+x.id+"/"+key.UploadState)
	}
}

// lines is a log that tests read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
