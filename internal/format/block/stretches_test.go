package block_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
)

// pagedBlock is a block of metrics whose values are 0 to 999 at random.
func pagedBlock(t *testing.T, metrics, series, samples int) (*memFiles, block.Meta) {
	rng := rand.New(rand.NewPCG(3, 4))
	var in []input
	for i := range metrics * series {
		s := block.Samples{TS: stamps(0, 10_000, samples), V: make([]float64, samples)}
		for j := range s.V {
			s.V[j] = float64(rng.IntN(1000))
		}
		in = append(in, input{labels.FromStrings("__name__", fmt.Sprintf("m%d", i/series), "instance", fmt.Sprintf("%02d", i%series)), s})
	}
	return write(t, in, nil, block.Options{Level: key.L24h}, block.Header{})
}

// TestStretches: the pages of a large column are in meta.json, and a read of one metric takes little
// more than its share of the column.
func TestStretches(t *testing.T) {
	const metrics, series, samples = 5, 12, 1440
	files, m := pagedBlock(t, metrics, series, samples)
	g := &fileNamed(t, m, "samples-0000.parquet").RowGroups[0]
	require.Greater(t, len(g.Pages), metrics)
	whole := block.FloatFiles.Bytes(g)
	column := g.Columns[3]
	for i := range int64(metrics) {
		rows := []block.Rows{{From: i * series * samples, N: series * samples}}
		spans := block.FloatFiles.AppendSpans(nil, g, rows)
		taken := int64(0)
		for _, s := range spans {
			if s[0] >= column[0] && s[0] < column[0]+column[1] {
				taken += s[1]
			}
		}
		require.InEpsilon(t, column[1]/metrics, taken, 0.1, "pages end where a metric does: %v", spans)
	}
	require.Equal(t, whole, rowBytes(g, []block.Rows{{From: 0, N: g.Rows}}))
	require.Less(t, rowBytes(g, []block.Rows{{From: 0, N: 1}}), whole/4)
	require.Less(t, rowBytes(g, []block.Rows{{From: 5, N: 0}}), whole/4, "no rows")

	meta := files.closed[block.MetaFile]
	pages, err := json.Marshal(g.Pages)
	require.NoError(t, err)
	require.Contains(t, string(meta), `"v_int_pages":`+string(pages))
	require.Less(t, float64(len(pages)), 0.005*float64(m.Bytes()))
}

// TestStretchesRefused: pages that are not those of the column.
func TestStretchesRefused(t *testing.T) {
	files, m := pagedBlock(t, 2, 10, 1440)
	b := files.closed[block.MetaFile]
	_, err := checksum.Verify(b)
	require.NoError(t, err)
	plain := b[:strings.LastIndex(string(b), `,"crc32c"`)]
	pages := fileNamed(t, m, "samples-0000.parquet").RowGroups[0].Pages
	require.Greater(t, len(pages), 2)
	with := func(p []block.Stretch) error {
		old, err := json.Marshal(pages)
		require.NoError(t, err)
		changed, err := json.Marshal(p)
		require.NoError(t, err)
		out := strings.Replace(string(plain), `"v_int_pages":`+string(old), `"v_int_pages":`+string(changed), 1) + "}"
		_, err = block.ReadMeta([]byte(out))
		return err
	}
	require.NoError(t, with(pages))
	require.NoError(t, with(nil))
	change := func(i, k int, to int64) []block.Stretch {
		out := append([]block.Stretch{}, pages...)
		out[i][k] = to
		return out
	}
	for name, p := range map[string][]block.Stretch{
		"too few rows": change(1, 0, pages[1][0]-1), "too many bytes": change(1, 1, pages[1][1]+1), "no rows": change(1, 0, 0), "less than nothing": change(0, 0, -1),
		"no bytes": change(0, 1, 0), "huge": change(0, 1, 1<<62), "huge rows": change(1, 0, 1<<62), "fewer": pages[1:], "twice": append(append([]block.Stretch{}, pages...), pages...),
	} {
		require.ErrorIs(t, with(p), block.ErrFormat, name)
	}
}

// rowBytes is the size of what is read of a row group of floats for some rows.
func rowBytes(g *block.RowGroup, rows []block.Rows) (n int64) {
	for _, s := range block.FloatFiles.AppendSpans(nil, g, rows) {
		n += s[1]
	}
	return n
}
