package samples

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/source"
)

// oneFile keeps the file of samples of a block.
type oneFile struct{ bytes.Buffer }

func (f *oneFile) Create(name string) (io.WriteCloser, error) {
	if name == block.SamplesFile(0) {
		return f, nil
	}
	return new(oneFile), nil
}

func (*oneFile) Close() error { return nil }

// content reads a file.
type content struct {
	source.Reader
	bytes []byte
}

func (c content) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(c.bytes).ReadAt(p, at)
}

// TestKeptRowGroupsShareTimes: a row group that is kept takes little more than its values, because
// series have the same times in the same memory, also if they are short as in a part.
func TestKeptRowGroupsShareTimes(t *testing.T) {
	const all, samples = 100, 16
	table, file := series.NewTable(1), &oneFile{}
	var refs []series.Ref
	for i := range all {
		ref, err := table.Intern([]series.Label{{Name: "__name__", Value: "m"}, {Name: "i", Value: fmt.Sprintf("%03d", i)}})
		require.NoError(t, err)
		refs = append(refs, ref)
	}
	view := table.View()
	w, err := block.NewWriter(file, &view, block.Options{Level: key.Part})
	require.NoError(t, err)
	for i, ref := range refs {
		x := block.Samples{}
		for j := range int64(samples) {
			x.TS, x.V = append(x.TS, 1000*j+int64(i/50)), append(x.V, float64(i)+float64(j)/100)
		}
		require.NoError(t, w.Append(ref, &x))
	}
	m, err := w.Close(block.Header{Level: key.Part})
	require.NoError(t, err)
	g := &rowGroup{in: content{bytes: file.Bytes()}, group: &m.Files[0].RowGroups[0], all: true}
	for i := range int64(all) {
		g.rows = append(g.rows, block.Rows{From: i * samples, N: samples})
	}
	k, err := decodeKept(g, false)
	require.NoError(t, err)
	require.Less(t, k.bytes, int64(11*all*samples), "8 bytes are the value")
	r := &Collector{Match: &lookup.Match{MinT: 3000, MaxT: 9000}, reader: &Reader{settings: Settings{MaxSamples: 1e6}}}
	found, err := r.within(nil, g, k)
	require.NoError(t, err)
	require.Len(t, found, all)
	for i, f := range found {
		p := f.points()
		require.Equal(t, 3000+int64(i/50), p.t[0])
		require.Equal(t, float64(i)+0.03, p.v[0])
		require.Equal(t, i%50 > 0, i > 0 && f.sameTimes(&found[i-1]), i)
	}
}
