package recent

import (
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/series"
)

// columns is memory of segments whose samples a head has taken: such a segment lives as long as it
// takes to store it, so that the next one finds the memory.
type columns struct {
	rows   []series.Ref
	values []float64
	near   []uint16
}

var spareColumns = memory.NewPool(4, func(c columns) int { return cap(c.values) })

// columnsFor returns empty columns for a segment with so many float samples and rows. They are not
// much larger than these: a segment that no head takes keeps them until it is merged.
func columnsFor(samples, rows int) columns {
	if c, ok := spareColumns.Get(samples); ok {
		if fits(cap(c.values), samples) && fits(cap(c.rows), rows) {
			return c
		}
		spareColumns.Put(c)
	}
	return columns{rows: make([]series.Ref, 0, rows), values: make([]float64, 0, samples)}
}

func fits(room, n int) bool { return n <= room && room <= 2*n }
