package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/format/checksum"
)

// Version is that of the objects in a store (schemas/usage.md).
const Version = 1

const (
	// keepFor is how long an entry that no query asks for is kept.
	keepFor = 400 * 24 * time.Hour
	// keepDays is how long is known what was spent on a day: two months, and the present one.
	keepDays = 93 * 24 * time.Hour
	// maxSaves is the number of batches that an object remembers. A batch whose save failed without
	// a clear answer is saved again. It counts twice if so many others were saved in between.
	maxSaves = 256
)

// ErrVersion reports an object of another version of Promlake.
var ErrVersion = errors.New("another version of Promlake wrote the counts of queries")

// document is what a tenant's object holds.
type document struct {
	Version  int              `json:"version"`
	Since    int64            `json:"since"` // ms: every query since then was counted
	Names    map[string]Asked `json:"names"`
	Patterns map[string]Asked `json:"patterns"`
	Labels   map[string]Asked `json:"labels"`
	Spent    spending         `json:"spent"`
	Saves    []string         `json:"saves"` // of the last batches, oldest first
}

// decode is the inverse of checksum.Marshal. Errors: ErrVersion; others mean that the object is
// damaged.
func decode(b []byte) (d document, err error) {
	if _, err := checksum.Verify(b); err != nil {
		return document{}, fmt.Errorf("decode counts of queries: %w", err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return document{}, fmt.Errorf("decode counts of queries: %w", err)
	}
	if d.Version != Version {
		return document{}, fmt.Errorf("%w: it has version %d, want %d", ErrVersion, d.Version, Version)
	}
	return d, nil
}

func (d *document) tally() tally { return tally{d.Names, d.Patterns, d.Labels} }

// with returns the document with a batch at a time (ms). Its entries take limit bytes at most,
// about.
func (d *document) with(b *batch, now, limit int64) document {
	t := tally{map[string]Asked{}, map[string]Asked{}, map[string]Asked{}}
	for _, of := range []tally{d.tally(), b.tally} {
		t.addAll(&of)
	}
	since := max(d.Since, b.lost)
	if last := t.prune(now-keepFor.Milliseconds(), limit); last > 0 {
		since = max(since, last+1)
	}
	spent := d.Spent.clone()
	spent.addAll(b.spent)
	spent.prune(time.UnixMilli(now).Add(-keepDays), limit)
	saves := append(slices.Clone(d.Saves), b.id)
	return document{
		Version: Version, Since: since, Names: t[metrics], Patterns: t[patterns], Labels: t[labelNames], Spent: spent,
		Saves: saves[max(0, len(saves)-maxSaves):],
	}
}
