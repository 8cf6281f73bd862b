package segment

import "github.com/promlake/promlake/internal/parquetfile"

// NewWriterInGroups is NewWriter with row groups of at most so many rows and about so many samples.
func NewWriterInGroups(groupRows, groupSamples int) (*Writer, error) {
	w, err := NewWriter()
	if err != nil {
		return nil, err
	}
	w.groupRows, w.groupSamples = groupRows, groupSamples
	return w, nil
}

// TailGuess is how much of a file's end ReadInfo reads at first.
const TailGuess = parquetfile.TailGuess
