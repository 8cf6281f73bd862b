package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/iceberg"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

const (
	tenant = "t"
	uri    = "s3://bucket/prefix/"
)

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// lake is a store with a clock.
type lake struct {
	t     *testing.T
	store *memstore.Store
	now   time.Time
	ids   io.Reader
	fault func(memstore.Call) memstore.Fault
	puts  []string
	old   bool // blocks are written as by earlier versions
	keep  time.Duration
}

func newLake(t *testing.T) *lake {
	l := &lake{t: t, now: start.Add(100 * 24 * time.Hour), ids: rand.NewChaCha8([32]byte{1})}
	l.store = memstore.New(memstore.Settings{
		Now: func() time.Time { return l.now }, DeletedForever: true,
		Immutable: func(k string) bool { return !strings.HasSuffix(k, "manifest.json") && !strings.HasSuffix(k, hintFile) },
		Faults: func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Put {
				l.puts = append(l.puts, c.Key)
			}
			if l.fault == nil {
				return memstore.Fault{}
			}
			return l.fault(c)
		},
	})
	t.Cleanup(func() { require.Empty(t, l.store.Violations()) })
	return l
}

func (l *lake) publisher() *Publisher {
	return New(l.store, Settings{Location: func(k string) string { return uri + k }, Keep: l.keep, Entropy: l.ids})
}

func (l *lake) publish() Report {
	l.t.Helper()
	r, err := l.publisher().Publish(l.t.Context(), tenant)
	require.NoError(l.t, err)
	return r
}

// add commits a block of a day, with a sample of each series at its beginning.
func (l *lake) add(day int, level key.Level, sets ...labels.Labels) catalog.Block {
	l.t.Helper()
	at := start.Add(time.Duration(day) * 24 * time.Hour).UnixMilli()
	files := l.files(level, at, sets)
	b := catalog.Block{Level: level, Window: level.WindowOf(at), MinT: at, MaxT: at + 1000, Series: int64(len(sets)), Samples: int64(2 * len(sets)), Bytes: 1}
	require.NoError(l.t, b.ID.SetTime(uint64(l.now.UnixMilli())))
	_, err := io.ReadFull(l.ids, b.ID[6:])
	require.NoError(l.t, err)
	b.Rank = b.ID
	for name, body := range files {
		_, err := l.store.Put(l.t.Context(), b.Key(tenant).File(name), bytes.NewReader(body.Bytes()), objstore.Condition{IfAbsent: true})
		require.NoError(l.t, err)
	}
	l.commit(func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		return m.Add(now, b, []string{b.ID.String()}, nil)
	})
	return b
}

// addOld commits a block as earlier versions wrote them, without aliases of columns.
func (l *lake) addOld(day int) {
	l.t.Helper()
	l.old = true
	l.add(day, key.L24h, up("a"))
	l.old = false
}

// files is a block in memory. It implements block.Files.
type files map[string]*bytes.Buffer

// Create implements block.Files.
func (f files) Create(name string) (io.WriteCloser, error) {
	f[name] = &bytes.Buffer{}
	return closer{f[name]}, nil
}

type closer struct{ io.Writer }

// Close implements io.Closer.
func (closer) Close() error { return nil }

// files writes a block of two samples of each series.
func (l *lake) files(level key.Level, at int64, sets []labels.Labels) files {
	l.t.Helper()
	table := series.NewTable(3)
	var refs []series.Ref
	for _, s := range sets {
		var pairs []series.Label
		s.Range(func(x labels.Label) { pairs = append(pairs, series.Label{Name: x.Name, Value: x.Value}) })
		ref, err := table.Intern(pairs)
		require.NoError(l.t, err)
		refs = append(refs, ref)
	}
	view, out := table.View(), files{}
	slices.SortFunc(refs, view.Compare)
	w, err := block.NewWriter(out, &view, block.Options{Level: level})
	require.NoError(l.t, err)
	for _, ref := range refs {
		require.NoError(l.t, w.Append(ref, &block.Samples{TS: []int64{at, at + 1000}, V: []float64{1.5, 2}}))
	}
	m, err := w.Close(block.Header{Level: level})
	require.NoError(l.t, err)
	if l.old {
		for i := range m.Files {
			for g := range m.Files[i].RowGroups {
				m.Files[i].RowGroups[g].Columns = m.Files[i].RowGroups[g].Stored()
			}
		}
		body, err := json.Marshal(m)
		require.NoError(l.t, err)
		out[block.MetaFile] = bytes.NewBuffer(body)
	}
	return out
}

func (l *lake) commit(change catalog.Change) {
	l.t.Helper()
	_, err := catalog.Commit(l.t.Context(), l.store, tenant, change)
	require.NoError(l.t, err)
}

// clear makes no block live.
func (l *lake) clear() {
	l.commit(func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) { return m.Clear(now, nil), nil })
}

// newest is a table as readers of the hint find it.
type newest struct {
	version   int64
	meta      *iceberg.Metadata
	manifests []iceberg.ManifestFile
}

// read reads a table, and checks that every object which it names exists.
func (l *lake) read(table string) newest {
	l.t.Helper()
	prefix := key.IcebergPrefix(tenant, table) + "metadata/"
	var n newest
	_, err := fmt.Sscan(string(l.get(prefix+hintFile)), &n.version)
	require.NoError(l.t, err)
	n.meta, err = iceberg.DecodeMetadata(l.get(fmt.Sprintf("%sv%d.metadata.json", prefix, n.version)))
	require.NoError(l.t, err)
	require.Equal(l.t, uri+"v1/t/iceberg/"+table, n.meta.Location)
	for i := range n.meta.Snapshots {
		s := &n.meta.Snapshots[i]
		list, err := iceberg.DecodeList(l.get(strings.TrimPrefix(s.ManifestList, uri)))
		require.NoError(l.t, err)
		for _, m := range list {
			require.Len(l.t, l.get(strings.TrimPrefix(m.Path, uri)), int(m.Bytes))
		}
		if s.ID == n.meta.CurrentSnapshotID {
			n.manifests = list
		}
	}
	return n
}

func (l *lake) get(k string) []byte {
	l.t.Helper()
	b, _, err := objstore.ReadAll(l.t.Context(), l.store, k)
	require.NoError(l.t, err)
	return b
}

func up(job string) labels.Labels { return labels.FromStrings("__name__", "up", "job", job) }

func idOf(n byte) ulid.ULID { return ulid.ULID{0, 0, 0, 0, 0, n} }
