package segment_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// some returns about one in n of refs.
func (s *sender) some(refs []series.Ref, n int) (out []series.Ref) {
	for _, r := range refs {
		if s.rng.IntN(n) == 0 {
			out = append(out, r)
		}
	}
	return out
}

// TestColumnsOfATableChangeNoByte writes rows that never come together twice, as scrapes do, while
// the table grows, with and without Repeats, in one row group and in several.
func TestColumnsOfATableChangeNoByte(t *testing.T) {
	for _, bounds := range []int{1 << 15, 30} {
		var known segment.Repeats
		plain, err := segment.NewWriterInGroups(bounds, 1<<20)
		require.NoError(t, err)
		w, err := segment.NewWriterInGroups(bounds, 1<<20)
		require.NoError(t, err)
		s := newSender(t, 4)
		refs := s.add(300)
		kept := 0
		for i := range 300 {
			switch s.rng.IntN(20) {
			case 0:
				refs = append(refs, s.add(1+s.rng.IntN(5))...)
			case 1:
				refs = append(refs, s.add(s.rng.IntN(150))...)
			case 2:
				refs = refs[s.rng.IntN(len(refs)/4):]
			}
			b := s.batch(s.some(refs, 1+s.rng.IntN(8)), false, s.rng.IntN(9) == 0, false)
			want, wantInfo, err := plain.Write(b, nil)
			require.NoError(t, err)
			got, info, err := w.Write(b, &known)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got), "segment %d", i)
			require.Equal(t, wantInfo, info)
			if known.Bytes() > 0 {
				kept++
			}
		}
		require.Greater(t, kept, 200)
	}
}

// TestColumnsOfManyValues: the numbers of a label's values need more than 16 bits.
func TestColumnsOfManyValues(t *testing.T) {
	var known segment.Repeats
	plain, err := segment.NewWriter()
	require.NoError(t, err)
	w, err := segment.NewWriter()
	require.NoError(t, err)
	s := newSender(t, 5)
	refs := s.add(70_000)
	for i := range 8 {
		b := s.batch(s.some(refs, 2), false, false, false)
		want, _, err := plain.Write(b, nil)
		require.NoError(t, err)
		got, _, err := w.Write(b, &known)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "segment %d", i)
	}
	require.Positive(t, known.Bytes())
}

// TestColumnsOfATableAreBounded: those of a table in which each series has a metric of its own take
// more than there is room for.
func TestColumnsOfATableAreBounded(t *testing.T) {
	w, err := segment.NewWriter()
	require.NoError(t, err)
	var known segment.Repeats
	s := newSender(t, 6)
	var refs []series.Ref
	for i := range 30_000 {
		lset := []series.Label{{Name: "__name__", Value: fmt.Sprint("m", i)}}
		for k := range 5 {
			lset = append(lset, series.Label{Name: fmt.Sprint("label", k), Value: "x"})
		}
		ref, err := s.table.Intern(lset)
		require.NoError(t, err)
		refs = append(refs, ref)
	}
	for range 12 {
		_, _, err := w.Write(s.batch(s.some(refs, 2), false, false, false), &known)
		require.NoError(t, err)
		require.Zero(t, known.Bytes())
	}
}
