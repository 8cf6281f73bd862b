package blockio_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/memstore"
)

var theBlock = key.Block{Tenant: "t", Level: key.L2h, ID: ulid.ULID{1}}

func write(t *testing.T, w *blockio.Writer, name string, data []byte, chunk int) {
	t.Helper()
	f, err := w.Create(name)
	require.NoError(t, err)
	for part := range bytesIn(data, chunk) {
		_, err := f.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
}

func bytesIn(data []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			m := min(n, len(data))
			if !yield(data[:m]) {
				return
			}
			data = data[m:]
		}
	}
}

// TestRoundTrip writes small and large files and reads them in random places, on stores with and
// without local files.
func TestRoundTrip(t *testing.T) {
	local, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	for name, store := range map[string]objstore.Store{"remote": memstore.New(memstore.Settings{}), "local": local} {
		t.Run(name, func(t *testing.T) {
			r, dir := rand.New(rand.NewPCG(1, 1)), t.TempDir()
			large := make([]byte, 10<<20)
			for i := range large {
				large[i] = byte(r.Uint32())
			}
			w := blockio.NewWriter(t.Context(), store, theBlock, dir)
			write(t, w, "small", []byte("hello"), 2)
			write(t, w, "large", large, 1<<20)
			write(t, w, "once", large, 10<<20)
			require.Equal(t, int64(5+2*len(large)), w.Bytes())
			require.NoError(t, w.Close())
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left, "temporary files")
			in := blockio.NewReader(t.Context(), store, theBlock, 64<<10)
			for _, name := range []string{"large", "once"} {
				f, size, err := in.Open(name)
				require.NoError(t, err)
				require.Equal(t, int64(len(large)), size)
				for range 200 {
					buf, off := make([]byte, r.IntN(100<<10)), r.IntN(len(large)+10)
					n, err := f.ReadAt(buf, int64(off))
					want := large[min(off, len(large)):min(off+len(buf), len(large))]
					require.Equal(t, len(want), n)
					require.True(t, bytes.Equal(want, buf[:n]))
					if n < len(buf) {
						require.ErrorIs(t, err, io.EOF)
					} else if n > 0 {
						require.NoError(t, err)
					}
				}
			}
			_, _, err = in.Open("absent")
			require.ErrorIs(t, err, objstore.ErrNotFound)
			require.NoError(t, in.Close())
			require.NoError(t, w.Remove(t.Context()))
			_, _, err = in.Open("small")
			require.ErrorIs(t, err, objstore.ErrNotFound)
		})
	}
}

// TestReadAhead: a reader that reads from the front to the back, after a read at the end, costs a
// request per stretch.
func TestReadAhead(t *testing.T) {
	gets := 0
	store := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Get {
			gets++
		}
		return memstore.Fault{}
	}})
	w := blockio.NewWriter(t.Context(), store, theBlock, "")
	write(t, w, "f", make([]byte, 1000), 100)
	f, _, err := blockio.NewReader(t.Context(), store, theBlock, 100).Open("f")
	require.NoError(t, err)
	buf := make([]byte, 10)
	read := func(off int64) {
		_, err := f.ReadAt(buf, off)
		require.NoError(t, err)
	}
	read(990)
	for off := int64(0); off < 1000; off += 10 {
		read(off)
		read(990)
	}
	require.Equal(t, 11, gets)
}

// TestUnfinished: what was not closed is never uploaded, and what could not be uploaded may be
// removed.
func TestUnfinished(t *testing.T) {
	fault := errors.New("fault")
	script := &memstore.Script{}
	store := memstore.New(memstore.Settings{Faults: script.Next})
	w := blockio.NewWriter(t.Context(), store, theBlock, t.TempDir())
	f, err := w.Create("unfinished")
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 9<<20))
	require.NoError(t, err)
	script.Add(memstore.On(memstore.Put), memstore.Fault{Err: fault, When: memstore.After})
	g, err := w.Create("unsure")
	require.NoError(t, err)
	require.ErrorIs(t, g.Close(), fault)
	require.NoError(t, w.Close())
	require.Len(t, store.Keys(), 1)
	require.NoError(t, w.Remove(t.Context()))
	require.Empty(t, store.Keys())
	_, err = f.Write([]byte("x"))
	require.ErrorIs(t, err, os.ErrClosed)
}
