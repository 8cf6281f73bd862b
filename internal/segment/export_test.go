package segment

import "github.com/promlake/promlake/internal/parquetfile"

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

// RepeatsLimit is the largest Repeats.Bytes of a table with that many series.
func RepeatsLimit(seriesOfTable int) int64 { return repeatsLimit(seriesOfTable) }
