package rollup

import "github.com/promlake/promlake/internal/format/block"

// NewFullWriter returns a writer that writes rows of every series.
func NewFullWriter(files block.Files) (*Writer, error) {
	w, err := NewWriter(files, nil)
	if err == nil {
		w.all = true
	}
	return w, err
}
