package probe_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/s3test"
)

// broken is a store that lacks one property. A nil function leaves the operation unchanged.
type broken struct {
	*memstore.Store
	// the bytes that a stale cache returns
	get func(key string) (string, bool)
	// the condition as the server sees it
	put func(key string, c objstore.Condition) objstore.Condition
	// a rejected put that takes effect
	take func(key string, c objstore.Condition) bool
	// an accepted put that is sent again
	lost func(c objstore.Condition) bool
	etag func(etag string) string
	list func(prefix, startAfter string) (string, string)
	hide func(key string) bool // from listings
	keep func(key string) bool // a delete without effect
	late []string              // deleted keys that a stale listing still has
}

func (s *broken) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if s.get != nil {
		if value, ok := s.get(key); ok {
			return io.NopCloser(strings.NewReader(value)), objstore.Object{Key: key}, nil
		}
	}
	r, o, err := s.Store.Get(ctx, key, offset, length)
	if s.etag != nil {
		o.ETag = s.etag(o.ETag)
	}
	return r, o, err
}

func (s *broken) Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if s.put != nil {
		cond = s.put(key, cond)
	}
	etag, err := s.Store.Put(ctx, key, body, cond)
	if err == nil && s.lost != nil && s.lost(cond) {
		return s.Store.Put(ctx, key, body, cond)
	}
	if s.take != nil && errors.Is(err, objstore.ErrPrecondition) && s.take(key, cond) {
		_, perr := s.Store.Put(ctx, key, strings.NewReader("took effect"), objstore.Condition{})
		err = errors.Join(err, perr)
	}
	if s.etag != nil && err == nil {
		etag = s.etag(etag)
	}
	return etag, err
}

func (s *broken) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	if s.list != nil {
		prefix, startAfter = s.list(prefix, startAfter)
	}
	return func(yield func(objstore.Object, error) bool) {
		for _, k := range s.late {
			if strings.HasPrefix(k, prefix) && k > startAfter && !yield(objstore.Object{Key: k}, nil) {
				return
			}
		}
		for o, err := range s.Store.List(ctx, prefix, startAfter) {
			if (s.hide == nil || !s.hide(o.Key)) && !yield(o, err) {
				return
			}
		}
	}
}

func (s *broken) Delete(ctx context.Context, key string) error {
	if s.keep != nil && s.keep(key) {
		return nil
	}
	return s.Store.Delete(ctx, key)
}

func TestCheckFindsEveryBrokenProperty(t *testing.T) {
	always := func(string) bool { return true }
	for name, tc := range map[string]struct {
		breaks func(*broken)
		want   probe.Property
	}{
		"reads are stale": {func(s *broken) {
			s.get = func(string) (string, bool) { return "", true }
		}, probe.ReadAfterWrite},
		"listings are stale": {func(s *broken) { s.hide = always }, probe.ListAfterWrite},
		"If-None-Match is ignored": {func(s *broken) {
			s.put = func(_ string, c objstore.Condition) objstore.Condition { c.IfAbsent = false; return c }
		}, probe.IfAbsent},
		"a refused If-None-Match takes effect": {func(s *broken) {
			s.take = func(_ string, c objstore.Condition) bool { return c.IfAbsent }
		}, probe.IfAbsent},
		"ETags are all the same": {func(s *broken) { s.etag = func(string) string { return "same" } }, probe.ETags},
		"If-Match is ignored": {func(s *broken) {
			s.put = func(_ string, c objstore.Condition) objstore.Condition { c.IfMatch = ""; return c }
		}, probe.IfMatchWrong},
		"a refused If-Match takes effect": {func(s *broken) {
			s.take = func(_ string, c objstore.Condition) bool {
				return c.IfMatch != "" && !strings.HasSuffix(c.IfMatch, "c")
			}
		}, probe.IfMatchWrong},
		"If-Match creates objects": {func(s *broken) {
			s.put = func(key string, c objstore.Condition) objstore.Condition {
				if strings.HasSuffix(key, "/c") {
					c.IfMatch = ""
				}
				return c
			}
		}, probe.IfMatchAbsent},
		"If-Match refuses everything": {func(s *broken) {
			s.put = func(_ string, c objstore.Condition) objstore.Condition {
				if c.IfMatch != "" {
					c.IfMatch = "another"
				}
				return c
			}
		}, probe.IfMatchRight},
		"startAfter is ignored": {func(s *broken) {
			s.list = func(prefix, _ string) (string, string) { return prefix, "" }
		}, probe.ListBounds},
		"prefixes are folders": {func(s *broken) {
			s.list = func(prefix, after string) (string, string) {
				return prefix[:strings.LastIndexByte(prefix, '/')+1], after
			}
		}, probe.ListBounds},
		"deletes are late": {func(s *broken) {
			n := 0
			s.keep = func(string) bool { n++; return n == 1 }
		}, probe.ReadAfterDelete},
	} {
		t.Run(name, func(t *testing.T) {
			s := &broken{Store: memstore.New(memstore.Settings{})}
			tc.breaks(s)
			err := probe.Check(t.Context(), s)
			require.ErrorIs(t, err, probe.ErrUnfit)
			var unfit *probe.Unfit
			require.ErrorAs(t, err, &unfit)
			assert.Equal(t, tc.want, unfit.Property, "%v", err)
			assert.ErrorContains(t, err, string(tc.want))
			assert.Regexp(t, "use (Amazon S3|a store with strong)", err.Error())
			assert.Empty(t, s.Keys(), "the check leaves nothing")
		})
	}
}

func TestCheckFindsStaleListingsOfDeletedKeys(t *testing.T) {
	s := &broken{Store: memstore.New(memstore.Settings{})}
	s.keep = func(key string) bool {
		if len(s.late) == 0 {
			s.late = append(s.late, key)
		}
		return false
	}
	var unfit *probe.Unfit
	require.ErrorAs(t, probe.Check(t.Context(), s), &unfit)
	require.Equal(t, probe.ListAfterDelete, unfit.Property)
}

func TestCheckPassesStoresThatKeepTheProtocol(t *testing.T) {
	memory := memstore.New(memstore.Settings{})
	directory, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	bucket, err := storeurl.Open(t.Context(), s3test.Start(t).StoreURL(t))
	require.NoError(t, err)
	for name, s := range map[string]objstore.Store{"memory": memory, "directory": directory, "bucket": bucket} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, probe.Check(t.Context(), s))
			for o, err := range s.List(t.Context(), "", "") {
				require.NoError(t, err)
				t.Errorf("the check left %s", o.Key)
			}
		})
	}
}

// TestCheckIsMadeAnew: one request without an answer, with or without an effect, does not end the
// check, and no object stays behind.
func TestCheckIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, ops := 0, map[memstore.Op]int{}
		sound := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
			asked++
			ops[c.Op]++
			return memstore.Fault{}
		}})
		require.NoError(t, probe.Check(t.Context(), sound))
		require.Equal(t, map[memstore.Op]int{memstore.Put: 7, memstore.Get: 9, memstore.List: 6, memstore.Delete: 4}, ops)
		for n := range asked {
			for _, when := range []memstore.When{memstore.Before, memstore.After} {
				s := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
					if c.N == n {
						return memstore.Fault{Err: errors.New("lost"), When: when}
					}
					return memstore.Fault{}
				}})
				require.NoError(t, probe.Check(t.Context(), s), "request %d", n)
				require.Empty(t, s.Keys(), "request %d", n)
			}
		}
	})
}

// TestCheckForgivesRepeatedPuts: something in between sends a put again after it lost the answer,
// so the store refuses what has taken effect. That happens once.
func TestCheckForgivesRepeatedPuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mine := range []func(objstore.Condition) bool{
			func(c objstore.Condition) bool { return c.IfAbsent },
			func(c objstore.Condition) bool { return c.IfMatch != "" && !strings.HasSuffix(c.IfMatch, "c") },
		} {
			s, again := &broken{Store: memstore.New(memstore.Settings{})}, true
			s.lost = func(c objstore.Condition) bool {
				lost := again && mine(c)
				again = again && !lost
				return lost
			}
			require.NoError(t, probe.Check(t.Context(), s))
			require.False(t, again)
			require.Empty(t, s.Keys())
		}
	})
}

// TestCheckThatCannotBeMade: a failing store is not reported as unfit.
func TestCheckThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		s := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Put {
				return memstore.Fault{Err: full}
			}
			return memstore.Fault{}
		}})
		err := probe.Check(t.Context(), s)
		require.ErrorIs(t, err, full)
		require.NotErrorIs(t, err, probe.ErrUnfit)
	})
}

func TestCheckCleansUpAfterItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.List {
			cancel()
		}
		return memstore.Fault{}
	}})
	require.ErrorIs(t, probe.Check(ctx, s), context.Canceled)
	require.Empty(t, s.Keys())
}
