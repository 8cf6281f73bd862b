package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/store/objstore"
)

func testList(t *testing.T, s objstore.Store) {
	assert.Empty(t, list(t, s, "", ""), "a new store is empty")
	put(t, s, "a/x", "12345")
	put(t, s, "b/x", "1")
	seen := 0
	for o, err := range s.List(t.Context(), "a/", "") {
		require.NoError(t, err)
		_, want := get(t, s, "a/x")
		assert.True(t, want.Modified.Truncate(1e9).Equal(o.Modified.Truncate(1e9)), "%s, %s", want.Modified, o.Modified)
		want.Modified = o.Modified
		assert.Equal(t, want, o)
		seen++
	}
	assert.Equal(t, 1, seen)
	require.NoError(t, s.Delete(t.Context(), "a/x"))
	assert.Equal(t, []string{"b/x"}, list(t, s, "", ""))
	assert.Empty(t, list(t, s, "a/", ""))
}

// testListOrder compares with a sorted slice of keys whose order by folders differs from the byte
// order.
func testListOrder(t *testing.T, s objstore.Store) {
	keys := []string{
		"a-b/x", "a/x", "a/b-c", "a/b/c", "a/b/d/e", "a/b0", "a.b", "a0/x", "ab", "B", "b", "a b/x y", "a+b", "a%2Fb", "a&b<c>\"'",
		"z/é", "z/日本/x", "z/~", "zz/\uFFFD",
	}
	for _, k := range keys {
		put(t, s, k, k)
	}
	slices.Sort(keys)
	prefixes := []string{"", "a", "a/", "a/b", "a/b/", "a/b/c", "a/b/c/", "ab/", "z/", "z/\u65e5", "q", "/", "//", "a//", "../", ".", "a/./", "b"}
	starts := []string{"", "a", "a/", "a/b", "a/b/", "a/b/c", "a/b/~", "a0", "a0/", "b", "z/", "z/日本/x", "~", "\xff", "/"}
	for _, prefix := range prefixes {
		for _, start := range starts {
			want := []string{}
			for _, k := range keys {
				if strings.HasPrefix(k, prefix) && k > start {
					want = append(want, k)
				}
			}
			assert.Equal(t, want, list(t, s, prefix, start), "prefix %q, after %q", prefix, start)
		}
	}
}

// testListOrderOfPlanes has keys whose order differs from that of UTF-16.
func testListOrderOfPlanes(t *testing.T, s objstore.Store) {
	for _, k := range []string{"zz/\U0001F600", "zz/\uFFFD"} {
		put(t, s, k, k)
	}
	assert.Equal(t, []string{"zz/\uFFFD", "zz/\U0001F600"}, list(t, s, "", ""))
}

// testListExcept compares with List, without the keys that are skipped.
func testListExcept(t *testing.T, s objstore.Store) {
	for _, k := range []string{"a-b/x", "a/b-c", "a/b/c", "a/b/d", "a/b0", "a/x", "b", "c/d", "c/e"} {
		put(t, s, k, k)
	}
	for _, skipped := range []string{"", "a/", "a/b/c", "b", "c/", "x", "a/b/ b c/d"} {
		skip := func(k string) bool {
			return slices.ContainsFunc(strings.Fields(skipped), func(prefix string) bool { return strings.HasPrefix(k, prefix) })
		}
		for _, prefix := range []string{"", "a", "a/b/", "c/", "q"} {
			for _, start := range []string{"", "a/b/c", "b"} {
				want, got := []objstore.Object{}, []objstore.Object{}
				for o, err := range s.List(t.Context(), prefix, start) {
					require.NoError(t, err)
					if !skip(o.Key) {
						want = append(want, o)
					}
				}
				for o, err := range objstore.ListExcept(t.Context(), s, prefix, start, skip) {
					require.NoError(t, err)
					got = append(got, o)
				}
				assert.Equal(t, want, got, "prefix %q, after %q, except %q", prefix, start, skipped)
			}
		}
	}
	for range objstore.ListExcept(t.Context(), s, "", "", func(string) bool { return false }) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range objstore.ListExcept(ctx, s, "", "", func(string) bool { return true }) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// testListPages has more keys, and more folders, than a page of S3.
func testListPages(t *testing.T, s objstore.Store) {
	var keys, all []string
	var g errgroup.Group
	g.SetLimit(8)
	for i := range 1005 {
		folder := fmt.Sprintf("p/%04d/", i)
		all = append(all, folder)
		names := []string{"manifest.json", "segments/x"}
		if i >= 200 {
			names = names[1:]
		}
		for _, name := range names {
			keys = append(keys, folder+name)
			g.Go(func() error {
				_, err := s.Put(t.Context(), folder+name, strings.NewReader("x"), objstore.Condition{IfAbsent: true})
				return err
			})
		}
	}
	require.NoError(t, g.Wait())
	put(t, s, "o", "x")
	put(t, s, "q", "x")
	assert.Equal(t, keys, list(t, s, "p/", ""))
	assert.Equal(t, keys[3:], list(t, s, "p/", keys[2]))
	assert.Equal(t, keys[1203:], list(t, s, "p/", "p/1002/x"))
	assert.Equal(t, keys[200:400], list(t, s, "p/01", ""))
	assert.Len(t, list(t, s, "", ""), 1207)
	assert.Equal(t, all, folders(t, s, "p/"))
}

func testListStops(t *testing.T, s objstore.Store) {
	for _, k := range []string{"a", "b", "c"} {
		put(t, s, k, k)
	}
	var seen []string
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		seen = append(seen, o.Key)
		if o.Key == "b" {
			break
		}
	}
	assert.Equal(t, []string{"a", "b"}, seen)

	l := s.List(t.Context(), "", "")
	for range 2 { // an iterator can be used again
		n := 0
		for _, err := range l {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 3, n)
	}
}

func testCancelled(t *testing.T, s objstore.Store) {
	put(t, s, "k", "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.Get(ctx, "k", 0, -1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Put(ctx, "k", strings.NewReader("new"), objstore.Condition{})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Delete(ctx, "k"), context.Canceled)
	errs := 0
	for _, err := range s.List(ctx, "", "") {
		require.ErrorIs(t, err, context.Canceled)
		errs++
	}
	assert.Equal(t, 1, errs, "one error, then the end")
	got, _ := get(t, s, "k")
	assert.Equal(t, "old", got)
}
