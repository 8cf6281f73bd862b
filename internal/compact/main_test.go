package compact

import (
	"os"
	"testing"
	"time"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestMain decodes a segment, large enough to be compressed, before the first bubble of time
// begins. The decoder that the whole program shares holds channels, and those of one bubble are of
// no use in another.
func TestMain(m *testing.M) {
	var times []time.Time
	for i := range 1000 {
		times = append(times, day.Add(time.Duration(i)*time.Second))
	}
	b, _, err := segmenttest.Encode(seriesRows(3, 1, times...), nil)
	if err != nil {
		panic(err)
	}
	if _, err := segment.Decode(b, series.NewTable(0), nil); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
