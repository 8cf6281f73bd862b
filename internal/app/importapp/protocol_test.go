package importapp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/copyapp"
	"github.com/promlake/promlake/internal/app/doctorapp"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// smallSamples are in the block of small, of which each window has a half.
const smallSamples = 6

// small writes a block of one series in two windows.
func small(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := promblocktest.Series{Labels: labels.FromStrings("__name__", "up")}
	for i := range int64(smallSamples) {
		s.Samples = append(s.Samples, promblocktest.Sample{Time: hours(1) + i*20*60_000, V: float64(i)})
	}
	promblocktest.Write(t, dir, hours(0), hours(24), []promblocktest.Series{s})
	return dir
}

// site is a store with a clock, and what can happen to it.
type site struct {
	*testing.T
	*memstore.Store
	clock time.Time
	dir   string // to import
	// each is called before each request for an object of the tenant, with its number.
	each func(n int) memstore.Fault
	n    int
}

func newSite(t *testing.T, dir string, each func(n int) memstore.Fault) *site {
	s := &site{T: t, clock: now(), dir: dir, each: each}
	s.Store = memstore.New(memstore.Settings{
		Now: func() time.Time { return s.clock },
		Faults: func(c memstore.Call) memstore.Fault {
			if s.each == nil || !strings.HasPrefix(c.Key, "v1/") { // the check of the store
				return memstore.Fault{}
			}
			s.n++
			return s.each(s.n - 1)
		},
		Immutable: func(k string) bool { return strings.HasPrefix(k, "v1/") && k != key.Manifest(name) },
	})
	return s
}

// bring imports the directory into a store.
func (s *site) bring(into objstore.Store, change ...func(*importapp.Settings)) (*importapp.Outcome, error) {
	opts := options()
	opts.Concurrency, opts.Level = 1, "2h"
	for _, f := range change {
		f(&opts)
	}
	return importapp.RunInto(context.Background(), into, opts, importapp.TSDB{Source: s.dir}, time.Now, nil)
}

// has returns the number of samples that count in a store.
func (s *site) has(store objstore.Store) int {
	s.Helper()
	a, err := compacttest.Read(s.Context(), store, name)
	require.NoError(s, err)
	return a.Count()
}

// erase deletes all samples, and compacts.
func (s *site) erase() {
	s.Helper()
	s.remove()
	s.compact()
	require.Zero(s, s.has(s.Store))
}

// remove deletes all samples.
func (s *site) remove() {
	s.Helper()
	_, err := catalog.Delete(s.Context(), s.Store, name, catalog.Deletion{Sets: [][]catalog.Matcher{{{Type: "=", Name: "__name__", Value: "up"}}}, MinT: key.MinTime, MaxT: key.MaxTime})
	require.NoError(s, err)
}

func (s *site) compact() {
	s.Helper()
	st, err := compact.New(compact.Settings{TempDir: s.TempDir()}, s.Store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), func() time.Time { return s.clock })
	require.NoError(s, err)
	require.NoError(s, st.UntilIdle(s.Context(), nil, nil))
}

// forget compacts and lets time pass until the manifest knows nothing of the blocks that it had.
func (s *site) forget() {
	s.Helper()
	for {
		m, _, err := catalog.ReadManifest(s.Context(), s.Store, name)
		require.NoError(s, err)
		if len(m.Retired)+len(m.Tombstones) == 0 {
			return
		}
		s.clock = s.clock.Add(time.Hour)
		s.compact()
	}
}

var errKilled = errors.New("killed")

// requests counts the requests of an import.
func requests(t *testing.T, dir string) int {
	s := newSite(t, dir, func(int) memstore.Fault { return memstore.Fault{} })
	_, err := s.bring(s.Store)
	require.NoError(t, err)
	return s.n
}

// TestKilledThenDeleted kills an import at every request to the store, before and after its effect.
// What was imported until then is deleted, and the manifest forgets it. The next import must not
// bring it back, and must import all the rest. So must an import into a copy of the store.
func TestKilledThenDeleted(t *testing.T) {
	dir := small(t)
	total, seen := requests(t, dir), map[int]int{}
	for at := range total {
		for _, when := range []memstore.When{memstore.Before, memstore.After} {
			s := newSite(t, dir, nil)
			s.each = func(n int) memstore.Fault {
				f := memstore.Fault{}
				if n >= at {
					f.Err = errKilled
				}
				if n == at {
					f.When = when
				}
				return f
			}
			_, err := s.bring(s.Store)
			if err != nil { // of the copies of manifests, nobody hears
				require.ErrorIs(t, err, errKilled)
			}
			s.each = nil
			had := s.has(s.Store)
			seen[had]++
			label := fmt.Sprintf("killed at request %d (%v) with %d samples", at, when, had)

			copied := memstore.New(memstore.Settings{Now: func() time.Time { return s.clock }})
			_, err = copyapp.Tenant(t.Context(), s.Store, copied, name)
			require.NoError(t, err, label)
			o, err := s.bring(copied)
			require.NoError(t, err, label)
			require.Equal(t, int64(smallSamples-had), o.Report().Samples, "into the copy: "+label)
			require.Equal(t, smallSamples, s.has(copied), label)

			s.erase()
			s.forget()
			o, err = s.bring(s.Store)
			require.NoError(t, err, label)
			require.Equal(t, int64(smallSamples-had), o.Report().Samples, label)
			require.Equal(t, smallSamples-had, s.has(s.Store), label)
			m, _, err := catalog.ReadManifest(t.Context(), s.Store, name)
			require.NoError(t, err)
			require.Empty(t, m.Imports, label)
			require.Empty(t, s.Violations())
		}
	}
	require.Len(t, seen, 3, "nothing, the first window, both")
}

// TestOvertaken lets another import of the same, a deletion of everything, and a compaction come
// between any two requests of an import, which then brings nothing back. A copy at the same moment
// has what it must not import again.
func TestOvertaken(t *testing.T) {
	dir := small(t)
	for at := range requests(t, dir) {
		s := newSite(t, dir, nil)
		s.each = func(n int) memstore.Fault {
			if n != at {
				return memstore.Fault{}
			}
			s.each = nil
			_, err := s.bring(s.Store)
			require.NoError(t, err)
			require.Equal(t, smallSamples, s.has(s.Store))
			copied := memstore.New(memstore.Settings{Now: func() time.Time { return s.clock }})
			_, err = copyapp.Tenant(t.Context(), s.Store, copied, name)
			require.NoError(t, err)
			o, err := s.bring(copied)
			require.NoError(t, err)
			require.Zero(t, o.Report().Samples)
			s.erase()
			return memstore.Fault{}
		}
		_, err := s.bring(s.Store)
		require.NoError(t, err, "overtaken at request %d", at)
		require.Zero(t, s.has(s.Store), "overtaken at request %d", at)
		require.Empty(t, s.Violations())
	}
}

// TestCopyDuringImport copies a store between any two requests of an import. The copy misses no
// sample after the same import into it, and gets none twice.
func TestCopyDuringImport(t *testing.T) {
	dir := small(t)
	for at := range requests(t, dir) {
		s := newSite(t, dir, nil)
		copied := memstore.New(memstore.Settings{Now: func() time.Time { return s.clock }})
		s.each = func(n int) memstore.Fault {
			if n != at {
				return memstore.Fault{}
			}
			s.each = nil
			_, err := copyapp.Tenant(t.Context(), s.Store, copied, name)
			require.NoError(t, err)
			return memstore.Fault{}
		}
		_, err := s.bring(s.Store)
		require.NoError(t, err)
		had := s.has(copied)
		o, err := s.bring(copied)
		require.NoError(t, err)
		require.Equal(t, int64(smallSamples-had), o.Report().Samples, "copied at request %d", at)
		require.Equal(t, smallSamples, s.has(copied), "copied at request %d", at)
	}
}

// TestRestore puts an imported block into quarantine, as it was and compacted. An import finds
// that, and restores it on request, once. A deletion that the manifest still has applies to it.
func TestRestore(t *testing.T) {
	for _, before := range []func(*site){func(*site) {}, (*site).compact, (*site).remove} {
		s := newSite(t, small(t), nil)
		_, err := s.bring(s.Store)
		require.NoError(t, err)
		s.clock = s.clock.Add(time.Minute)
		before(s)
		had := s.has(s.Store)
		m, _, err := catalog.ReadManifest(t.Context(), s.Store, name)
		require.NoError(t, err)
		bad := m.Blocks[0]
		prefix := bad.Key(name).Prefix()
		require.NoError(t, s.Store.Delete(t.Context(), prefix+block.MetaFile))
		require.NoError(t, s.put(prefix+block.MetaFile, "damaged"))
		r, err := doctorapp.Examine(t.Context(), s.Store, doctorapp.Settings{Tenant: name, Quarantine: true})
		require.NoError(t, err)
		require.Len(t, r.Tenants[0].Damaged, 1)
		left := s.has(s.Store)

		o, err := s.bring(s.Store)
		require.NoError(t, err)
		require.Contains(t, o.Text(), "--restore imports their windows again")
		require.Equal(t, left, s.has(s.Store))
		s.clock = s.clock.Add(time.Minute)
		restore := func(o *importapp.Settings) { o.Restore = true }
		o, err = s.bring(s.Store, restore)
		require.NoError(t, err)
		require.Equal(t, had, s.has(s.Store))
		require.Equal(t, bad.Samples, o.Report().Samples)
		for _, again := range [][]func(*importapp.Settings){{restore}, nil} {
			o, err = s.bring(s.Store, again...)
			require.NoError(t, err)
			require.Zero(t, o.Report())
			require.NotContains(t, o.Text(), "quarantine")
		}
	}
}

// put writes an object.
func (s *site) put(k, text string) error {
	_, err := s.Put(s.Context(), k, strings.NewReader(text), objstore.Condition{})
	return err
}
