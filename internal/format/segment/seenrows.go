package segment

import (
	"encoding/binary"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

// seenRows are the label sets of the row groups that a decoder has read, by the bytes of their
// label columns: senders that write the same series again and again have the same bytes in many
// segments. What was not found for long makes room.
type seenRows struct {
	found, before map[series.Key][]series.Ref // put or found lately; and before that
	rows          int                         // in found
	limit         int                         // seenLimit
	buf           []byte
}

// seenLimit is the number of rows at which those that were not found lately are forgotten: they and
// those after them take eight megabytes.
const seenLimit = 1 << 20

// keyOf returns a keyed hash of all that the label sets of a row group are decoded from: the
// places of their columns, which the checksums of pages are of, and the bytes. Equal keys are equal
// bytes, as in a series.Table.
func (s *seenRows) keyOf(g *parquetfile.GroupReader, seed uint64) (series.Key, error) {
	s.buf = s.buf[:0]
	for leaf := range g.Layout.Leaves {
		l := &g.Layout.Leaves[leaf]
		if p := l.Path[0]; p != ColMetric && p != ColSeriesID && p != ColLabels && !strings.HasPrefix(p, LabelPrefix) {
			continue
		}
		b, err := g.Stored(leaf)
		if err != nil {
			return series.Key{}, err
		}
		s.buf = g.AppendDescription(s.buf, leaf)
		h := xxh3.Hash128Seed(b, seed)
		s.buf = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(s.buf, h.Hi), h.Lo)
	}
	return xxh3.Hash128Seed(s.buf, seed), nil
}

// find returns the label sets of a row group, if it was read before.
func (s *seenRows) find(k series.Key) ([]series.Ref, bool) {
	refs, ok := s.found[k]
	if !ok {
		if refs, ok = s.before[k]; ok {
			s.add(k, refs)
		}
	}
	return refs, ok
}

func (s *seenRows) add(k series.Key, refs []series.Ref) {
	if s.found == nil || s.rows+len(refs) > s.limit {
		s.found, s.before, s.rows = map[series.Key][]series.Ref{}, s.found, 0
	}
	s.found[k] = refs
	s.rows += len(refs)
}
