// Package storetest is the conformance suite of objstore.Store: it tests each sentence of the
// interface's documentation, and every implementation runs all of it.
package storetest

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Run runs the suite, except the named tests, which a test server fails. newStore returns an empty
// store; each test calls it once.
func Run(t *testing.T, newStore func(t *testing.T) objstore.Store, except ...string) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s objstore.Store)
	}{
		{"PutGet", testPutGet},
		{"Ranges", testRanges},
		{"EmptyObject", testEmptyObject},
		{"BigObject", testBigObject},
		{"NotFound", testNotFound},
		{"InvalidKeys", testInvalidKeys},
		{"LongKeys", testLongKeys},
		{"BodyPosition", testBodyPosition},
		{"BodyFails", testBodyFails},
		{"OpenReaderSurvivesWrites", testOpenReaderSurvivesWrites},
		{"ETagsTellBytesApart", testETagsTellBytesApart},
		{"IfAbsent", testIfAbsent},
		{"IfMatch", testIfMatch},
		{"BothConditions", testBothConditions},
		{"IfAbsentRace", testIfAbsentRace},
		{"IfMatchCounter", testIfMatchCounter},
		{"AtomicOverwrites", testAtomicOverwrites},
		{"Neighbours", testNeighbours},
		{"Delete", testDelete},
		{"DeleteAll", testDeleteAll},
		{"List", testList},
		{"ListOrder", testListOrder},
		{"ListOrderOfPlanes", testListOrderOfPlanes},
		{"ListExcept", testListExcept},
		{"ListPages", testListPages},
		{"ListStops", testListStops},
		{"ListFolders", testListFolders},
		{"Cancelled", testCancelled},
		{"CancelledMidway", testCancelledMidway},
		{"LocalPath", testLocalPath},
		{"Clock", testClock},
	} {
		if !slices.Contains(except, c.name) {
			t.Run(c.name, func(t *testing.T) { c.test(t, newStore(t)) })
		}
	}
}

func put(t *testing.T, s objstore.Store, key, value string) (etag string) {
	t.Helper()
	etag, err := s.Put(t.Context(), key, strings.NewReader(value), objstore.Condition{})
	require.NoError(t, err)
	require.NotEmpty(t, etag)
	return etag
}

func get(t *testing.T, s objstore.Store, key string) (string, objstore.Object) {
	t.Helper()
	return getRange(t, s, key, 0, -1)
}

func getRange(t *testing.T, s objstore.Store, key string, offset, length int64) (string, objstore.Object) {
	t.Helper()
	b, o, err := read(t.Context(), s, key, offset, length)
	require.NoError(t, err)
	return string(b), o
}

func read(ctx context.Context, s objstore.Store, key string, offset, length int64) ([]byte, objstore.Object, error) {
	r, o, err := s.Get(ctx, key, offset, length)
	if err != nil {
		return nil, o, err
	}
	b, err := io.ReadAll(r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return b, o, err
}

func list(t *testing.T, s objstore.Store, prefix, startAfter string) []string {
	t.Helper()
	keys := []string{}
	for o, err := range s.List(t.Context(), prefix, startAfter) {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

// pattern returns n bytes in which ranges of four bytes or more rarely repeat.
func pattern(n int) []byte {
	b := bytes.Repeat([]byte{0}, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}
