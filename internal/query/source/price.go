package source

import (
	"fmt"

	"github.com/promlake/promlake/internal/aws/cost"
)

// Cost is what reads request from the store.
type Cost struct {
	Lists   int     `json:"lists"`
	Gets    int     `json:"gets"`
	Bytes   int64   `json:"bytes"`   // of the row groups and segments that are read, cached or not
	Dollars float64 `json:"dollars"` // for the requests
}

// Add adds what other reads request. Transfer within the region is free.
func (c *Cost) Add(o Cost) {
	c.Lists, c.Gets, c.Bytes = c.Lists+o.Lists, c.Gets+o.Gets, c.Bytes+o.Bytes
	list, get := cost.Default().Price(cost.S3Put), cost.Default().Price(cost.S3Get)
	c.Dollars = list.Dollars(float64(c.Lists)) + get.Dollars(float64(c.Gets))
}

// Function returns how long a query function of the stack's default memory takes to evaluate
// samples that it requests for this cost, and what it costs then.
func (c Cost) Function(samples float64) (milliseconds, dollars float64) {
	seconds, dollars := cost.QueryTime(samples, float64(c.Lists+c.Gets))
	return seconds * 1000, dollars
}

// String implements fmt.Stringer.
func (c Cost) String() string {
	return fmt.Sprintf("%d LIST and %d GET requests, %d bytes, $%.8f", c.Lists, c.Gets, c.Bytes, c.Dollars)
}

// Snapshot is the cost of a snapshot of a remote store: the list of segments, and the manifest.
func Snapshot() Cost { return Cost{Lists: 1, Gets: 1} }

// Usage is what reads take from the store, each object and each range once. The zero value is
// nothing.
type Usage struct {
	parts    Fetch
	segments map[string]int64 // sizes by key
}

// Parts adds ranges of files.
func (u *Usage) Parts(parts []Parts) { u.parts.Add(parts) }

// Segment adds a segment of size bytes.
func (u *Usage) Segment(key string, size int64) {
	if u.segments == nil {
		u.segments = map[string]int64{}
	}
	u.segments[key] = size
}

// Cost is what has to be fetched now. Segments were fetched to look up series.
func (u *Usage) Cost() Cost {
	c := Cost{Bytes: u.parts.Bytes()}
	c.Gets, _ = u.parts.Cost()
	for _, size := range u.segments {
		c.Bytes += size
	}
	return c
}
