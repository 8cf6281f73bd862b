package cost

import "slices"

// Component is a part of the stack, or of the bill.
type Component string

// Components in the order of a sample's way.
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
	Logs    Component = "logs and alarms"
	Servers Component = "instances"
)

// Components lists them all.
var Components = []Component{Front, Ingest, Servers, Queue, Flush, Writes, Compact, Plan, Storage, Query, Logs}

// Line is one item of a bill.
type Line struct {
	Component Component `json:"component"`
	What      string    `json:"what"`
	Quantity  float64   `json:"quantity"` // a month
	Unit      string    `json:"unit"`     // of prices.json
	Dollars   float64   `json:"dollars"`  // a month
	Formula   string    `json:"formula"`  // of the quantity
}

// Bill is what a load costs a month.
type Bill struct {
	Lines   []Line  `json:"lines"`
	Samples float64 `json:"samples"` // a month
}

// Dollars is the whole bill.
func (b *Bill) Dollars() (sum float64) {
	for i := range b.Lines {
		sum += b.Lines[i].Dollars
	}
	return sum
}

// PerMillion is the price of a million samples, 0 if there are none.
func (b *Bill) PerMillion() float64 {
	if b.Samples == 0 {
		return 0
	}
	return b.Dollars() / b.Samples * 1e6
}

// Of is what a component costs.
func (b *Bill) Of(c Component) (sum float64) {
	for i := range b.Lines {
		if b.Lines[i].Component == c {
			sum += b.Lines[i].Dollars
		}
	}
	return sum
}

// settle prices the lines of each unit together, for tiers count a month's sum, and divides the sum
// by quantity.
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
