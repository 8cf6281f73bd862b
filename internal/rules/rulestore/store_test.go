package rulestore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

func set(namespace, name string) func(rulestore.Rules) (rulestore.Rules, error) {
	return func(r rulestore.Rules) (rulestore.Rules, error) {
		return r.Set(namespace, rulestore.Group{Name: name, Rules: []rulestore.Rule{}}), nil
	}
}

func TestCommit(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	r, etag, err := rulestore.Read(t.Context(), store, "a")
	require.NoError(t, err)
	require.Empty(t, etag)
	require.Zero(t, r.Groups())
	first, err := rulestore.Commit(t.Context(), store, "a", set("n", "g"))
	require.NoError(t, err)
	require.Equal(t, uint64(1), first.Generation)
	same, err := rulestore.Commit(t.Context(), store, "a", set("n", "g"))
	require.NoError(t, err)
	require.Equal(t, first.ID, same.ID, "nothing changed, so nothing is written")
	wrong := errors.New("wrong")
	_, err = rulestore.Commit(t.Context(), store, "a", func(r rulestore.Rules) (rulestore.Rules, error) { return r, wrong })
	require.Equal(t, wrong, err)
	gone, err := rulestore.Commit(t.Context(), store, "a", func(r rulestore.Rules) (rulestore.Rules, error) { return r.RemoveNamespace("n") })
	require.NoError(t, err)
	require.Equal(t, uint64(2), gone.Generation)
	require.Equal(t, []string{"rules/a.json"}, store.Keys(), "an empty object keeps the generation")
}

// TestConcurrentCommitsLoseNothing: every edit that was answered is in the rules.
func TestConcurrentCommitsLoseNothing(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	var wg sync.WaitGroup
	const editors, edits = 8, 5
	errs := make([]error, editors)
	for e := range editors {
		wg.Go(func() {
			for i := range edits {
				_, err := rulestore.Commit(t.Context(), store, "a", set(fmt.Sprint("n", e%3), fmt.Sprint("g", e, "-", i)))
				errs[e] = errors.Join(errs[e], err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	r, _, err := rulestore.Read(t.Context(), store, "a")
	require.NoError(t, err)
	require.Equal(t, editors*edits, r.Groups())
	require.Equal(t, uint64(editors*edits), r.Generation)
}

// TestCommitWithUnknownEffect: a put that fails, or took effect although it failed, is made once.
func TestCommitWithUnknownEffect(t *testing.T) {
	fault := errors.New("fault")
	for _, tc := range []struct {
		name  string
		fault memstore.Fault
	}{
		{"failed", memstore.Fault{Err: fault}},
		{"failed but persisted", memstore.Fault{Err: fault, When: memstore.After}},
		{"repeated by the client", memstore.Fault{Err: objstore.ErrPrecondition, When: memstore.After}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			puts := 0
			store := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
				if c.Op == memstore.Put {
					if puts++; puts == 2 {
						return tc.fault
					}
				}
				return memstore.Fault{}
			}})
			_, err := rulestore.Commit(t.Context(), store, "a", set("n", "g"))
			require.NoError(t, err)
			r, err := rulestore.Commit(t.Context(), store, "a", func(r rulestore.Rules) (rulestore.Rules, error) { return r.Remove("n", "g") })
			require.NoError(t, err)
			require.Zero(t, r.Groups())
			require.Equal(t, uint64(2), r.Generation)
		})
	}
	store := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Put {
			return memstore.Fault{Err: fault}
		}
		return memstore.Fault{}
	}})
	_, err := rulestore.Commit(t.Context(), store, "a", set("n", "g"))
	require.ErrorIs(t, err, fault)
	require.ErrorContains(t, err, "the change may have been made")
}

func TestList(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	for _, id := range []string{"b", "a"} {
		_, err := rulestore.Commit(t.Context(), store, id, set("n", "g"))
		require.NoError(t, err)
	}
	_, err := store.Put(t.Context(), key.RulesPrefix+"notes.txt", strings.NewReader("x"), objstore.Condition{})
	require.NoError(t, err)
	var got []string
	for l, err := range rulestore.List(t.Context(), store) {
		require.NoError(t, err)
		_, etag, err := rulestore.Read(t.Context(), store, l.Tenant)
		require.NoError(t, err)
		require.Equal(t, etag, l.ETag)
		got = append(got, l.Tenant)
	}
	require.Equal(t, []string{"a", "b"}, got)
	all, err := rulestore.AddTenants(t.Context(), store, []string{"0", "a", "aa"})
	require.NoError(t, err)
	require.Equal(t, []string{"0", "a", "aa", "b"}, all)
}
