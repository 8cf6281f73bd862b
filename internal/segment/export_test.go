package segment

import "github.com/promlake/promlake/internal/parquetfile"

// EncodeInGroups is Encode with row groups of at most so many rows and about so many samples.
func EncodeInGroups(rows []Row, meta []Metadata, groupRows, groupSamples int) ([]byte, Info, error) {
	w, err := NewWriter()
	if err != nil {
		return nil, Info{}, err
	}
	w.groupRows, w.groupSamples = groupRows, groupSamples
	return encode(w, rows, meta)
}

// EncodeWith is Encode with a writer that may have written before.
func EncodeWith(w *Writer, rows []Row, meta []Metadata) ([]byte, Info, error) {
	return encode(w, rows, meta)
}

// Benchmark and test access to what Encode builds.
var NewBatch = newBatch

// TailGuess is how much of a file's end ReadInfo reads at first.
const TailGuess = parquetfile.TailGuess
