package segment

import (
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/series"
)

// Batch is the content of one segment in columns. Row i is the label set Rows[i] with the float
// samples [End[i-1], End[i]) of TS, V and ST.
type Batch struct {
	View  *series.View
	Order *series.Order // of View's label sets; nil: not known
	Rows  []series.Ref  // strictly ascending in the order of View.Compare
	End   []int         // by row
	TS    []int64       // ms; ascending and unique within a row
	V     []float64
	ST    []int64 // ms, 0 = unknown; nil if all are unknown

	Hists     []RowHists     // ascending rows
	Exemplars []RowExemplars // ascending rows
	Metadata  []Metadata     // sorted by Metric
}

// RowHists are the native histograms of a row, strictly ascending in time.
type RowHists struct {
	Row     int
	Samples []Hist
}

// RowExemplars are the exemplars of a row, ascending in time.
type RowExemplars struct {
	Row       int
	Exemplars []exemplar.Exemplar
}
