package doctorapp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/app/human"
)

// Report is what Examine found. Its JSON is for scripts: fields stay.
type Report struct {
	Verified bool     `json:"verified"` // everything was read; else only manifests, footers and meta.json
	Tenants  []Tenant `json:"tenants"`
}

// Tenant is the result for one tenant.
type Tenant struct {
	Tenant   string    `json:"tenant"`
	Segments int       `json:"segments"` // live
	Blocks   int       `json:"blocks"`
	Bytes    int64     `json:"bytes"`           // that were read
	Error    string    `json:"error,omitempty"` // the manifest cannot be read, so that nothing else was
	Damaged  []Damaged `json:"damaged"`
}

// Damaged is a live object that cannot be read, and what it held as far as is known: of a block by
// the manifest, of a segment by its footer.
type Damaged struct {
	Object      string    `json:"object"` // key of a segment, prefix of a block
	Error       string    `json:"error"`
	MinTime     time.Time `json:"min_time"`         // no sample of it is outside
	MaxTime     time.Time `json:"max_time"`         // inclusive
	Series      int64     `json:"series,omitempty"` // 0: not known
	Samples     int64     `json:"samples,omitempty"`
	Quarantined bool      `json:"quarantined"` // its bytes are kept under quarantine/, and it does not count any more
	// NotUnderstood: its bytes may be sound, and a later version of the program may read them. It is
	// never quarantined.
	NotUnderstood bool `json:"not_understood,omitempty"`

	source source
}

// Healthy reports whether every live object can be read.
func (r Report) Healthy() bool {
	counts := func(d Damaged) bool { return !d.Quarantined }
	return !slices.ContainsFunc(r.Tenants, func(t Tenant) bool { return t.Error != "" || slices.ContainsFunc(t.Damaged, counts) })
}

// Text writes the report for people.
func (r Report) Text() string {
	var b strings.Builder
	how := "footers and meta.json"
	if r.Verified {
		how = "every byte"
	}
	fmt.Fprintf(&b, "%d tenants, read: %s\n", len(r.Tenants), how)
	for _, t := range r.Tenants {
		fmt.Fprintf(&b, "\ntenant %s: %d segments, %d blocks, %s read, %d damaged\n", t.Tenant, t.Segments, t.Blocks, human.Bytes(t.Bytes), len(t.Damaged))
		if t.Error != "" {
			fmt.Fprintf(&b, "  MANIFEST: %s\n", t.Error)
		}
		for _, d := range t.Damaged {
			b.WriteString(d.text())
		}
	}
	return b.String()
}

func (d Damaged) text() string {
	state := "DAMAGED"
	switch {
	case d.Quarantined:
		state = "QUARANTINED"
	case d.NotUnderstood:
		state = "NOT UNDERSTOOD"
	}
	held := "it holds"
	if d.Quarantined {
		held = "lost"
	}
	what := "an unknown number of samples"
	if d.Samples > 0 || d.Series > 0 {
		what = fmt.Sprintf("%s samples of %s series", human.Count(d.Samples), human.Count(d.Series))
	}
	return fmt.Sprintf("  %s %s\n    %s\n    %s: %s between %s and %s\n", state, d.Object, d.Error, held, what, d.MinTime.Format(time.RFC3339), d.MaxTime.Format(time.RFC3339))
}
