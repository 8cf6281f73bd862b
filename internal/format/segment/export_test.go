package segment

import (
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

// NewWriterInGroups is NewWriter with other bounds of a row group.
func NewWriterInGroups(groupRows, groupSamples int) (*Writer, error) {
	w, err := NewWriter()
	if err != nil {
		return nil, err
	}
	w.groupRows, w.groupSamples = groupRows, groupSamples
	return w, nil
}

// The numbers of bytes at the end of a large file, and of a small one, that ReadInfo reads first.
const (
	TailGuess = parquetfile.TailGuess
	LeastTail = parquetfile.LeastTail
)

// NewDecoderOf is NewDecoder with another limit of the rows that it remembers.
func NewDecoderOf(t *series.Table, keep func(id uint64) bool, rows int) *Decoder {
	d := NewDecoder(t, keep)
	d.seen.limit = rows
	return d
}

// RepeatsLimit is the largest Repeats.Bytes of a table with that many series.
func RepeatsLimit(seriesOfTable int) int64 { return repeatsLimit(seriesOfTable) }
