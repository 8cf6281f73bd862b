package divide

import (
	"fmt"

	"github.com/promlake/promlake/internal/query/request"
)

// Pin is a snapshot that one process has taken and others read, with the settings on which their
// answers depend. Its JSON is the parameter snapshot of /api/v1/sql.
type Pin struct {
	Version  int     `json:"version"`
	Tenant   string  `json:"tenant"`
	MinT     int64   `json:"min_t"`    // ms: statements read nothing before it,
	MaxT     int64   `json:"max_t"`    // and nothing after it
	Lookback int64   `json:"lookback"` // ms: default of queries
	Options  Options `json:"options"`
	Snapshot
}

// ParsePin reads a pin. Its errors are the sender's: they name what is wrong.
func ParsePin(b []byte) (*Pin, error) {
	p := &Pin{}
	if err := decode(b, p); err != nil {
		return nil, fmt.Errorf("read a snapshot: %w", err)
	}
	return p, nil
}

// Pinned returns the snapshot as reads take it from a request.
func (p *Pin) Pinned() *request.Snapshot {
	return &request.Snapshot{Snapshot: p.Snapshot.Of(p.Tenant), Wide: p.Wide, Pinned: true, MinT: p.MinT, MaxT: p.MaxT}
}
