package promblock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/prometheus/prometheus/tsdb/tombstones"
)

// Bytes of a file of tombstones before and after its intervals: magic number and version; checksum.
const (
	tombstonesHead = 5
	tombstonesTail = 4
)

// checkTombstones returns an error unless the intervals of each series ascend without touching, as
// Prometheus writes them. Upstream's reader inserts every interval among those before it, so a few
// megabytes in another order would take it hours. Upstream's reader reports what else is wrong with
// the file.
//
//	intervals = *(series first-time last-time)   ; uvarint, varint, varint
func checkTombstones(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, tombstones.TombstonesFilename))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(raw) < tombstonesHead+tombstonesTail {
		return nil
	}
	if err != nil {
		return err
	}
	last := map[uint64]int64{} // the latest time of a series' intervals
	for rest := raw[tombstonesHead : len(raw)-tombstonesTail]; len(rest) > 0; {
		ref, n := binary.Uvarint(rest)
		from, k := binary.Varint(rest[max(n, 0):])
		to, j := binary.Varint(rest[max(n, 0)+max(k, 0):])
		if n <= 0 || k <= 0 || j <= 0 {
			return nil
		}
		rest = rest[n+k+j:]
		if before, ok := last[ref]; ok && (from == math.MinInt64 || from-1 <= before) {
			return fmt.Errorf("tombstones of series %d are not in the order of time", ref)
		}
		last[ref] = max(to, from)
	}
	return nil
}
