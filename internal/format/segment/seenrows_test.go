package segment_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// decodeWith decodes a file with a decoder that may have read others before.
func decodeWith(d *segment.Decoder, file []byte) (*segment.Batch, error) {
	f, err := segment.Open(file)
	if err != nil {
		return nil, err
	}
	return d.Decode(&f)
}

// TestDecoderMeetsRowsAgain decodes files of few sets of series, each with other samples, in one
// and several row groups. A decoder that remembers many of them, few or none must decode what one
// decodes that reads every file anew.
func TestDecoderMeetsRowsAgain(t *testing.T) {
	for seed := range uint64(30) {
		r := newRandom(seed)
		sets := make([][]segment.Row, 1+r.IntN(5))
		for i := range sets {
			sets[i] = r.rows(1 + r.IntN(40))
		}
		var keep func(uint64) bool
		if seed%3 == 1 {
			keep = func(id uint64) bool { return id>>63 == 0 }
		}
		table := series.NewTable(seed)
		d := segment.NewDecoderOf(table, keep, []int{0, 30, 100, 1 << 20}[seed%4])
		groupRows := []int{1 + r.IntN(20), 1000}[seed%2]
		for i := range 30 {
			rows := slices.Clone(sets[r.IntN(len(sets))])
			for j := range rows { // other samples
				rows[j].Floats, rows[j].Hists, rows[j].Exemplars = r.floats(), nil, nil
			}
			file, _, err := encodeInGroups(rows, nil, groupRows, 500)
			require.NoError(t, err)
			anew := series.NewTable(1)
			want, err := segment.Decode(file, anew, keep)
			require.NoError(t, err)
			got, err := decodeWith(d, file)
			require.NoError(t, err)
			require.Equal(t, want.End, got.End)
			require.Equal(t, bitsOf(want.V), bitsOf(got.V))
			require.Equal(t, labelsOf(want, anew), labelsOf(got, table), "seed %d, file %d", seed, i)
		}
	}
}

// labelsOf are the label sets of the rows, in words.
func labelsOf(b *segment.Batch, t *series.Table) (out []string) {
	v := t.View()
	for _, ref := range b.Rows {
		text := "none"
		if ref != series.None {
			text = v.Metrics[v.Metric(ref)]
			for _, p := range v.Pairs(ref) {
				text += fmt.Sprintf(" %s=%q", v.Names[p.Name], v.Values[p.Name][p.Value])
			}
		}
		out = append(out, text)
	}
	return out
}

// TestDecoderSeesDamageOfRowsItKnows flips a bit of each byte of a file that a decoder has read.
func TestDecoderSeesDamageOfRowsItKnows(t *testing.T) {
	file, _, err := segmenttest.Encode(fleet(40), nil)
	require.NoError(t, err)
	d := segment.NewDecoder(series.NewTable(1), nil)
	_, err = decodeWith(d, file)
	require.NoError(t, err)
	for i := range file[len("PAR1"):] {
		i += len("PAR1")
		file[i] ^= 1 << (i % 8)
		_, err := decodeWith(d, file)
		require.ErrorIs(t, err, segment.ErrFormat, "byte %d", i)
		file[i] ^= 1 << (i % 8)
	}
	_, err = decodeWith(d, file)
	require.NoError(t, err)
}
