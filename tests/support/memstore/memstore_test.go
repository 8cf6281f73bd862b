package memstore_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/storetest"
)

var errFault = errors.New("fault")

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) objstore.Store { return memstore.New(memstore.Settings{}) })
}

func put(t *testing.T, s objstore.Store, key, value string) error {
	t.Helper()
	_, err := s.Put(t.Context(), key, strings.NewReader(value), objstore.Condition{})
	return err
}

func get(t *testing.T, s objstore.Store, key string) (string, error) {
	t.Helper()
	r, _, err := s.Get(t.Context(), key, 0, -1)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

func TestClockAndETags(t *testing.T) {
	now := time.Unix(1_800_000_000, 5)
	s := memstore.New(memstore.Settings{Now: func() time.Time { return now }})
	require.NoError(t, put(t, s, "k", "hello"))
	_, o, err := s.Get(t.Context(), "k", 0, -1)
	require.NoError(t, err)
	assert.Equal(t, objstore.Object{Key: "k", Size: 5, ETag: "2cf24dba5fb0a30e26e83b2ac5b9e29e", Modified: now}, o)
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		op      memstore.Op
		when    memstore.When
		run     func(s objstore.Store) error
		wantKey bool // whether k exists afterwards
	}{
		{memstore.Put, memstore.Before, func(s objstore.Store) error { return put(t, s, "k", "v") }, false},
		{memstore.Put, memstore.Midway, func(s objstore.Store) error { return put(t, s, "k", "v") }, false},
		{memstore.Put, memstore.After, func(s objstore.Store) error { return put(t, s, "k", "v") }, true},
		{memstore.Delete, memstore.Before, func(s objstore.Store) error { return remove(t, s) }, true},
		{memstore.Delete, memstore.Midway, func(s objstore.Store) error { return remove(t, s) }, true},
		{memstore.Delete, memstore.After, func(s objstore.Store) error { return remove(t, s) }, false},
	} {
		script := &memstore.Script{}
		script.Add(memstore.On(c.op), memstore.Fault{Err: errFault, When: c.when})
		s := memstore.New(memstore.Settings{Faults: script.Next})
		require.ErrorIs(t, c.run(s), errFault, "%s %d", c.op, c.when)
		assert.Zero(t, script.Left())
		assert.Equal(t, c.wantKey, len(s.Keys()) == 1, "%s %d", c.op, c.when)
		require.NoError(t, c.run(s), "a fault of a script strikes once")
	}
}

func remove(t *testing.T, s objstore.Store) error {
	if err := put(t, s, "k", "v"); err != nil {
		return err
	}
	return s.Delete(t.Context(), "k")
}

func TestFaultsOfReads(t *testing.T) {
	script := &memstore.Script{}
	s := memstore.New(memstore.Settings{Faults: script.Next})
	for _, k := range []string{"a", "b", "c", "d"} {
		require.NoError(t, put(t, s, k, "0123456789"))
	}
	for _, when := range []memstore.When{memstore.Before, memstore.After} {
		script.Add(nil, memstore.Fault{Err: errFault, When: when})
		_, _, err := s.Get(t.Context(), "a", 0, -1)
		require.ErrorIs(t, err, errFault)
	}
	script.Add(nil, memstore.Fault{Err: errFault, When: memstore.Midway})
	got, err := get(t, s, "a")
	require.ErrorIs(t, err, errFault)
	assert.Equal(t, "01234", got)
	for when, want := range map[memstore.When]int{memstore.Before: 0, memstore.Midway: 2, memstore.After: 2} {
		script.Add(memstore.On(memstore.List), memstore.Fault{Err: errFault, When: when})
		n := 0
		var last error
		for _, err := range s.List(t.Context(), "", "") {
			if last = err; err == nil {
				n++
			}
		}
		require.ErrorIs(t, last, errFault)
		assert.Equal(t, want, n, "when %d", when)
	}
}

func TestCalls(t *testing.T) {
	var calls []memstore.Call
	s := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		calls = append(calls, c)
		return memstore.Fault{}
	}})
	_, err := s.Put(t.Context(), "k", strings.NewReader("v"), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	require.ErrorIs(t, put(t, s, "", "v"), objstore.ErrInvalidKey)
	_, _, err = s.Get(t.Context(), "k", -1, 1)
	require.NoError(t, err)
	for _, err := range s.List(t.Context(), "p", "q") {
		require.NoError(t, err)
	}
	require.NoError(t, s.Delete(t.Context(), "k"))
	assert.Equal(t, []memstore.Call{
		{N: 0, Op: memstore.Put, Key: "k", Cond: objstore.Condition{IfAbsent: true}},
		{N: 1, Op: memstore.Get, Key: "k", Offset: -1, Length: 1},
		{N: 2, Op: memstore.List, Key: "p", StartAfter: "q"},
		{N: 3, Op: memstore.Delete, Key: "k"},
	}, calls)
}

func TestStatus(t *testing.T) {
	for code, sentinel := range map[int]error{
		http.StatusPreconditionFailed:           objstore.ErrPrecondition,
		http.StatusNotFound:                     objstore.ErrNotFound,
		http.StatusRequestedRangeNotSatisfiable: objstore.ErrRange,
		http.StatusConflict:                     nil,
		http.StatusServiceUnavailable:           nil,
	} {
		s := memstore.New(memstore.Settings{Faults: func(memstore.Call) memstore.Fault {
			return memstore.Fault{Err: memstore.Status(code)}
		}})
		err := put(t, s, "k", "v")
		var status interface{ HTTPStatusCode() int }
		require.ErrorAs(t, err, &status)
		assert.Equal(t, code, status.HTTPStatusCode())
		for _, e := range []error{objstore.ErrPrecondition, objstore.ErrNotFound, objstore.ErrRange} {
			assert.Equal(t, e == sentinel, errors.Is(err, e), "%d is %v", code, e)
		}
	}
}

func TestDelay(t *testing.T) {
	until := make(chan struct{})
	asked := make(chan struct{})
	s := memstore.New(memstore.Settings{Faults: func(memstore.Call) memstore.Fault {
		close(asked)
		return memstore.Fault{Until: until}
	}})
	done := make(chan error)
	go func() { done <- put(t, s, "k", "v") }()
	<-asked
	assert.Empty(t, s.Keys(), "a delayed Put has no effect yet")
	close(until)
	require.NoError(t, <-done)
	assert.Equal(t, []string{"k"}, s.Keys())
}

func TestViolations(t *testing.T) {
	s := memstore.New(memstore.Settings{
		Immutable:      func(key string) bool { return strings.HasSuffix(key, ".parquet") },
		DeletedForever: true,
	})
	for range 2 {
		require.NoError(t, put(t, s, "a.parquet", "v"))
		require.NoError(t, put(t, s, "manifest.json", "v"))
		require.NoError(t, put(t, s, "manifest.json", "w"))
	}
	_, err := s.Put(t.Context(), "a.parquet", strings.NewReader("w"), objstore.Condition{IfAbsent: true})
	require.ErrorIs(t, err, objstore.ErrPrecondition)
	_, err = get(t, s, "never.parquet")
	require.ErrorIs(t, err, objstore.ErrNotFound)
	require.Empty(t, s.Violations(), "all of this is allowed")

	require.NoError(t, put(t, s, "a.parquet", "w"))
	require.NoError(t, s.Delete(t.Context(), "a.parquet"))
	_, err = get(t, s, "a.parquet")
	require.ErrorIs(t, err, objstore.ErrNotFound)
	require.NoError(t, put(t, s, "a.parquet", "x"))
	assert.Equal(t, []string{
		"put of other bytes under immutable key a.parquet",
		"get of deleted key a.parquet",
		"put of other bytes under immutable key a.parquet",
	}, s.Violations())
}
