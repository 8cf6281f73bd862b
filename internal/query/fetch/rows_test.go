package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/objstore/memstore"
	"github.com/promlake/promlake/internal/parquetfile"
)

// table is a Parquet object of plain numbers.
type table struct {
	bytes  []byte
	schema []format.SchemaElement
	spans  [][]Span // by row group and column
	rows   []int
	first  []int64
}

var tableColumns = []string{"a", "b", "c", "d"}

func newTable(t *testing.T, rng *rand.Rand, groups int) *table {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	s := parquetfile.NewSchema("test")
	for _, c := range tableColumns {
		s.Add(parquetfile.Uint64(c))
	}
	w := parquetfile.NewWriter(z)
	var out bytes.Buffer
	require.NoError(t, w.Begin(&out, s.Elements(), "test", 0))
	o := &table{schema: s.Elements()}
	next := int64(0)
	for range groups {
		n := 1 + rng.IntN(20)
		for _, c := range tableColumns {
			vals := make([]uint64, n)
			for i := range vals {
				vals[i] = rng.Uint64()
			}
			var scratch parquetfile.Scratch
			require.NoError(t, w.Add(parquetfile.Uint64s(c, &scratch, vals)))
		}
		o.spans, o.rows, o.first = append(o.spans, w.EndGroup(n)), append(o.rows, n), append(o.first, next)
		next += int64(n)
	}
	require.NoError(t, w.End(nil))
	o.bytes = out.Bytes()
	return o
}

func (o *table) need(groups, columns []int) Need {
	n := Need{Key: "k", Size: int64(len(o.bytes)), Codec: format.Zstd, Schema: o.schema[:1:1]}
	for _, c := range columns {
		n.Schema = append(n.Schema, o.schema[1+c])
	}
	for _, g := range groups {
		group := Group{ID: g, FirstRow: o.first[g], Rows: int64(o.rows[g])}
		for _, c := range columns {
			group.Chunks = append(group.Chunks, Chunk{Span: o.spans[g][c]})
		}
		n.Groups = append(n.Groups, group)
	}
	return n
}

// holds says whether a local file has the chunks of a need, bit by bit, where it says.
func (o *table) holds(l Local, n Need) error {
	file, err := os.ReadFile(l.Path)
	if err != nil {
		return err
	}
	layout, err := parquetfile.ReadLayout(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	for i, g := range n.Groups {
		row := int64(0)
		at := slices.IndexFunc(layout.Groups, func(x parquetfile.Group) bool { row += x.Rows; return row-x.Rows == l.At[i] })
		if at < 0 || layout.Groups[at].Rows != g.Rows {
			return fmt.Errorf("row group %d does not begin at row %d", g.ID, l.At[i])
		}
		for j, e := range n.Schema[1:] {
			got, want := layout.Groups[at].Chunks[layout.Column(e.Name)].Span, g.Chunks[j].Span
			if !bytes.Equal(file[got.Offset:got.Offset+got.Length], o.bytes[want.Offset:want.Offset+want.Length]) {
				return fmt.Errorf("column %s of row group %d has other bytes", e.Name, g.ID)
			}
		}
	}
	return nil
}

func some(rng *rand.Rand, n int) []int {
	out := rng.Perm(n)[:1+rng.IntN(n)]
	slices.Sort(out)
	return out
}

// TestRowsOfAnyNeeds: whatever is asked for at the same time, the local files have it, and while all is kept, no chunk is fetched twice.
func TestRowsOfAnyNeeds(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 7))
	for _, limit := range []int64{1 << 30, 2000, 1} {
		o := newTable(t, rng, 8)
		dir := t.TempDir()
		c, g := cacheIn(dir, storeWith(t, map[string][]byte{"k": o.bytes}), limit)
		c.settings.GapBytes = 0
		var wg sync.WaitGroup
		for range 4 {
			rng := rand.New(rand.NewPCG(rng.Uint64(), 1))
			wg.Go(func() {
				for range 30 {
					needs := []Need{o.need(some(rng, 8), some(rng, 4)), o.need(some(rng, 8), some(rng, 4))}
					got, release, err := c.Rows(t.Context(), needs)
					if err != nil {
						t.Error(err)
						return
					}
					if rng.IntN(4) == 0 { // the whole object serves as well
						_, done, err := c.Whole(t.Context(), "k", int64(len(o.bytes)))
						if err != nil {
							t.Error(err)
							return
						}
						done()
					}
					for i := range needs {
						if err := o.holds(got[i], needs[i]); err != nil {
							t.Error(err)
							return
						}
					}
					release()
				}
			})
		}
		wg.Wait()
		n, size := filesIn(t, dir)
		require.Equal(t, g.held, size)
		require.LessOrEqual(t, n, 400)
		for _, f := range c.objects["k"] {
			require.Zero(t, f.entry.Pins)
		}
		if limit == 1<<30 {
			require.LessOrEqual(t, g.bytes, int64(2*len(o.bytes)), "each chunk once, and the object once")
		}
	}
}

// TestChunksAreShared: who needs chunks that are on their way waits for them, and fetches the others meanwhile.
func TestChunksAreShared(t *testing.T) {
	o := newTable(t, rand.New(rand.NewPCG(6, 7)), 4)
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		giveUp bool // the first one
		fail   error
		first  error
	}{
		{"success", false, nil, nil},
		{"the first gives up", true, nil, context.Canceled},
		{"the first fails", false, boom, boom},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				inner := storeWith(t, map[string][]byte{"k": o.bytes})
				store := &heldStore{Store: inner, hold: make(chan error, 1)}
				c, _ := cacheIn(dir, store, 1<<20)
				rows := func(ctx context.Context, n Need) chan error {
					out := make(chan error, 1)
					go func() {
						got, release, err := c.Rows(ctx, []Need{n})
						if err == nil {
							err = o.holds(got[0], n)
							release()
						}
						out <- err
					}()
					synctest.Wait()
					return out
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				left, right := o.need([]int{0, 1}, []int{1}), o.need([]int{1, 2}, []int{1})
				first := rows(ctx, left)
				store.free = true
				second := rows(t.Context(), right)
				same := rows(t.Context(), left)
				asked := inner.taken()
				require.NotContains(t, asked, [2]int64{o.spans[1][1].Offset, o.spans[1][1].Length}, "it is on its way")
				require.Contains(t, asked, [2]int64{o.spans[2][1].Offset, o.spans[2][1].Length})
				if tc.giveUp {
					cancel()
				} else {
					store.hold <- tc.fail
					close(store.hold)
				}
				require.ErrorIs(t, <-first, tc.first)
				require.NoError(t, <-second)
				require.ErrorIs(t, <-same, tc.fail)
				n, _ := filesIn(t, dir)
				require.Equal(t, map[bool]int{true: 1, false: 2}[tc.fail != nil], n, "what failed leaves nothing behind")
			})
		})
	}
}

// heldStore holds requests up until it is told what becomes of them, or is free.
type heldStore struct {
	Store
	hold chan error
	free bool
}

func (s *heldStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if !s.free {
		select {
		case err := <-s.hold:
			if err != nil {
				return nil, objstore.Object{}, err
			}
		case <-ctx.Done():
			return nil, objstore.Object{}, ctx.Err()
		}
	}
	return s.Store.Get(ctx, key, offset, length)
}

// TestLargerFilesSupersede: a file that has all that another has replaces it, unless that one is in use.
func TestLargerFilesSupersede(t *testing.T) {
	o := newTable(t, rand.New(rand.NewPCG(8, 7)), 4)
	dir := t.TempDir()
	c, _ := cacheIn(dir, storeWith(t, map[string][]byte{"k": o.bytes}), 1<<20)
	rows := func(groups, columns []int) func() {
		_, release, err := c.Rows(t.Context(), []Need{o.need(groups, columns)})
		require.NoError(t, err)
		return release
	}
	files := func() int { n, _ := filesIn(t, dir); return n }
	rows([]int{0}, []int{0})()
	used := rows([]int{1}, []int{0})
	rows([]int{0, 1}, []int{0, 2})()
	require.Equal(t, 2, files())
	used()
	rows([]int{2}, []int{3})()
	require.Equal(t, 3, files(), "it has something else")
	_, release, err := c.Whole(t.Context(), "k", -1)
	require.NoError(t, err)
	release()
	require.Equal(t, 1, files(), "the object has everything")
}

// TestEveryRequestFails: whichever request fails, the call fails, nothing stays behind, and the next one succeeds.
func TestEveryRequestFails(t *testing.T) {
	o := newTable(t, rand.New(rand.NewPCG(9, 7)), 8)
	need := o.need([]int{0, 2, 3, 5, 7}, []int{0, 2})
	boom := errors.New("boom")
	for _, when := range []memstore.When{memstore.Before, memstore.Midway} {
		for at := range 50 {
			var script memstore.Script
			m := memstore.New(memstore.Settings{Faults: script.Next})
			_, err := m.Put(t.Context(), "k", bytes.NewReader(o.bytes), objstore.Condition{})
			require.NoError(t, err)
			for range at {
				script.Add(memstore.On(memstore.Get), memstore.Fault{})
			}
			script.Add(memstore.On(memstore.Get), memstore.Fault{Err: boom, When: when})
			dir := t.TempDir()
			c, _ := cacheIn(dir, m, 1<<20)
			_, release, err := c.Rows(t.Context(), []Need{need})
			if script.Left() > 0 {
				require.NoError(t, err)
				release()
				require.Greater(t, at, 2)
				break
			}
			require.ErrorIs(t, err, boom)
			n, _ := filesIn(t, dir)
			require.Zero(t, n)
			require.Empty(t, c.objects)
			got, release, err := c.Rows(t.Context(), []Need{need})
			require.NoError(t, err)
			require.NoError(t, o.holds(got[0], need))
			release()
		}
	}
}
