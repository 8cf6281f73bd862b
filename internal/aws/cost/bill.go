package cost

import "slices"

// Component is a part of the stack, or of the bill.
type Component string

// Components in the order of the data flow.
const (
	Front   Component = "HTTP API"
	Ingest  Component = "ingest function"
	Queue   Component = "queue"
	Flush   Component = "flush function"
	Writes  Component = "segments, PUT"
	Compact Component = "compaction"
	Plan    Component = "schedule"
	Storage Component = "storage"
	Query   Component = "queries"
	Rules   Component = "rules"
	Replica Component = "replica"
	Logs    Component = "logs and alarms"
	Servers Component = "instances"
)

// Components lists all components.
var Components = []Component{Front, Ingest, Servers, Queue, Flush, Writes, Compact, Plan, Storage, Query, Rules, Replica, Logs}

// Line is one item of a bill.
type Line struct {
	Component Component `json:"component"`
	What      string    `json:"what"`
	Quantity  float64   `json:"quantity"` // per month
	Unit      string    `json:"unit"`     // of prices.json
	Dollars   float64   `json:"dollars"`  // per month
	Formula   string    `json:"formula"`  // of the quantity
}

// Bill is the monthly cost of a load.
type Bill struct {
	Lines   []Line  `json:"lines"`
	Samples float64 `json:"samples"` // per month
}

// Dollars returns the sum of the bill.
func (b *Bill) Dollars() (sum float64) {
	for i := range b.Lines {
		sum += b.Lines[i].Dollars
	}
	return sum
}

// PerMillion returns the price of a million samples, or 0 without samples.
func (b *Bill) PerMillion() float64 {
	if b.Samples == 0 {
		return 0
	}
	return b.Dollars() / b.Samples * 1e6
}

// Of returns the cost of a component.
func (b *Bill) Of(c Component) (sum float64) {
	for i := range b.Lines {
		if b.Lines[i].Component == c {
			sum += b.Lines[i].Dollars
		}
	}
	return sum
}

// settle prices the lines of each unit together, because tiers apply to the month's sum, and
// divides the sum in proportion to quantity.
func (b *Bill) settle(p *Prices) {
	sums := map[string]float64{}
	for i := range b.Lines {
		sums[b.Lines[i].Unit] += b.Lines[i].Quantity
	}
	for i := range b.Lines {
		l := &b.Lines[i]
		if l.Quantity > 0 {
			price := p.Price(l.Unit)
			l.Dollars = price.Dollars(sums[l.Unit]) * l.Quantity / sums[l.Unit]
		}
	}
	b.Lines = slices.DeleteFunc(b.Lines, func(l Line) bool { return l.Quantity == 0 })
}
