package samples

import (
	"context"
	"strconv"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/query/index"
)

// framedAfter is the number of reads of a row group after which its frame is kept: to decode it
// takes about as long as what a few of them decode.
const framedAfter = 4

// frame returns the frame of a row group, nil if the read is to do without one: it is not kept, or
// would be large. Reads whose samples are not kept, such as those of a panel in a window that is
// short beside the block's, find the times and divisors decoded.
func (r *Collector) frame(ctx context.Context, g *rowGroup) *block.Frame {
	key := index.PartKey("frame", r.Objects[g.object].Series, strconv.FormatInt(g.group.FirstRow, 10))
	found := index.Peek[*block.Frame](r.reader.cache, key)
	if found == nil && r.reader.framed.Enough(key, 1) {
		x, _, err := index.Get(ctx, r.reader.cache, key, func() (*block.Frame, error) { return block.ReadFrame(g.in, g.group) })
		if err == nil { // else the read itself reports it
			found = x
		}
	}
	if found == nil || found.Empty() {
		return nil
	}
	return found
}
