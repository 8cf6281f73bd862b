package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Kind is the kind of a job.
type Kind uint8

// The kinds of jobs.
const (
	Merge  Kind = iota // replace sources by one block
	Split              // record that sources are to be merged by slices
	Cut                // merge one slice of a recorded split
	Expire             // drop sources that are past their retention
	Drop               // forget tombstones that apply to nothing any more
)

var kindNames = [...]string{"merge", "split", "slice", "expire", "drop"}

// String names the kind, as metrics and messages do.
func (k Kind) String() string { return kindNames[k] }

// ParseKind is the inverse of Kind.String.
func ParseKind(name string) (Kind, error) {
	kind := slices.Index(kindNames[:], name)
	if kind < 0 {
		return 0, fmt.Errorf("kind %q is not known", name)
	}
	return Kind(kind), nil
}

// Job is one step of compaction, independent of every other job of its plan.
type Job struct {
	Kind    Kind
	Level   key.Level       // of the result: Merge, Split, Cut
	Window  key.Window      // start of that level's window
	Sources catalog.Sources // Merge, Split, Cut, Expire; by rank, oldest first
	Slice   catalog.Slice   // Cut: which; Split: Of
	Split   ulid.ULID       // Cut: the split's identifier
	Drop    []ulid.ULID     // Drop: tombstones
	Planned time.Time       // by the later of the clock and the manifest that it was planned from
	Why     string          // the rule that made it

	Samples int64 // estimate, of the sources that are blocks
	Bytes   int64 // of the sources
}

// String describes the job in one line.
func (j Job) String() string {
	var b strings.Builder
	b.WriteString(j.Kind.String())
	switch j.Kind {
	case Drop:
		fmt.Fprintf(&b, " %s", count(len(j.Drop), "tombstone"))
	case Expire:
	case Cut:
		fmt.Fprintf(&b, " %d of %d, %s %s", j.Slice.Index, j.Slice.Of, j.Level, j.Window)
	case Split:
		fmt.Fprintf(&b, " %s %s into %d", j.Level, j.Window, j.Slice.Of)
	default:
		fmt.Fprintf(&b, " %s %s", j.Level, j.Window)
	}
	if j.Kind != Drop {
		fmt.Fprintf(&b, " of %s, %s (%d bytes)", count(len(j.Sources.Segments), "segment"), count(len(j.Sources.Blocks), "block"), j.Bytes)
	}
	return b.String() + ": " + j.Why
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Windowed reports whether the job is about one window.
func (j *Job) Windowed() bool { return j.Kind == Merge || j.Kind == Split || j.Kind == Cut }

// Young returns a conflict if the job was planned too long ago: once its sources are replaced,
// deleted and forgotten, nothing shows that they were. now is a time of the store's clock, as
// Planned is.
func (j *Job) Young(now time.Time) error {
	if age := now.Sub(j.Planned); age > catalog.MaxJobAge {
		return fmt.Errorf("planned %s ago, the limit is %s: %w", age, catalog.MaxJobAge, catalog.ErrConflict)
	}
	return nil
}
