// Package divide cuts a range query into slices of its steps, describes each slice as a piece that
// another process can evaluate over the same store, asks workers for the pieces, and joins their
// answers to that of the query.
package divide

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/replica"
)

// Version is that of Piece's JSON and of the answer to it. See schemas/piece.md.
const Version = 1

// MaxBytes is the largest size of a piece as JSON. A query whose snapshot needs more is not
// divided.
const MaxBytes = 8 << 20

// Piece is a slice of a range query with all that its answer depends on: two processes with the
// same store give the same answer. Times are in ms since the Unix epoch, durations in ms.
type Piece struct {
	Version int    `json:"version"`
	Tenant  string `json:"tenant"`
	Query   string `json:"query"` // the whole text, since annotations name positions in it
	// Start, End and Step are those of the whole query. @ start(), @ end(), range() and step() mean
	// them.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	Step  int64 `json:"step"`
	// From and Upto are the first and the last step of the slice.
	From     int64 `json:"from"`
	Upto     int64 `json:"upto"`
	Lookback int64 `json:"lookback"`
	PerStep  bool  `json:"per_step,omitempty"` // statistics of each step are asked for

	Options  Options  `json:"options"`
	Snapshot Snapshot `json:"snapshot"`

	Timeout   int64 `json:"timeout"`   // of the evaluation
	MaxBytes  int64 `json:"max_bytes"` // of objects that the evaluation may read
	Estimated int64 `json:"estimated"` // bytes of objects that it reads, about
	Requests  int64 `json:"requests"`  // to the store, about

	Key string `json:"-"` // of a kept answer, which has it; "": the answer is not kept
}

// Options are the settings on which answers depend. A worker refuses a piece if its own differ.
type Options struct {
	StartTimestamps bool   `json:"start_timestamps,omitempty"`
	Replica         string `json:"replica,omitempty"` // label; none: there are no replicas
	Cluster         string `json:"cluster,omitempty"` // label
	Failover        int64  `json:"failover,omitempty"`
}

// OptionsOf returns the options of a tenant with a rule for replicas.
func OptionsOf(startTimestamps bool, r replica.Rule) Options {
	return Options{StartTimestamps: startTimestamps, Replica: r.Replica, Cluster: r.Cluster, Failover: r.Failover}
}

// Snapshot is the live objects that may hold samples for a slice, so that a worker lists nothing.
type Snapshot struct {
	Wide       bool                `json:"wide,omitempty"` // it has the objects of a range that is wider by replica.Around
	Segments   []Segment           `json:"segments,omitempty"`
	Blocks     []catalog.Block     `json:"blocks,omitempty"`
	Tombstones []catalog.Tombstone `json:"tombstones,omitempty"`
}

// Segment is a live segment.
type Segment struct {
	catalog.SegmentID
	Size           int64     `json:"size"` // bytes
	ETag           string    `json:"etag"`
	Rank           ulid.ULID `json:"rank"`
	DeletesThrough ulid.ULID `json:"deletes_through"`
}

// SnapshotOf returns a snapshot as part of a piece.
func SnapshotOf(s catalog.Snapshot, wide bool) Snapshot {
	out := Snapshot{Wide: wide, Blocks: s.Blocks, Tombstones: s.Tombstones}
	for _, r := range s.Segments {
		out.Segments = append(out.Segments, Segment{r.SegmentID(), r.Size, r.ETag, r.Rank, r.DeletesThrough})
	}
	return out
}

// Of returns the snapshot of a tenant.
func (s Snapshot) Of(tenant string) catalog.Snapshot {
	out := catalog.Snapshot{Tenant: tenant, Blocks: s.Blocks, Tombstones: s.Tombstones}
	for _, r := range s.Segments {
		out.Segments = append(out.Segments, catalog.SegmentRef{
			Segment: r.Key(tenant), Size: r.Size, ETag: r.ETag, Rank: r.Rank, DeletesThrough: r.DeletesThrough,
		})
	}
	return out
}

// Slice returns the steps of the piece.
func (p *Piece) Slice() Slice { return Slice{p.From, p.Upto} }

// Encode returns the piece as JSON. It fails with ErrWhole if that is too large.
func (p *Piece) Encode() ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode a piece: %w", err)
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: a piece has %d bytes, at most %d are allowed", ErrWhole, len(b), MaxBytes)
	}
	return b, nil
}

// Parse reads a piece and checks it. Its errors are the sender's: they name what is wrong.
func Parse(b []byte) (*Piece, error) {
	p := &Piece{}
	err := decode(b, p)
	if err == nil {
		err = p.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("read a piece: %w", err)
	}
	return p, nil
}

// decode reads JSON of this version without unknown fields.
func decode(b []byte, into any) error {
	if len(b) > MaxBytes {
		return fmt.Errorf("%d bytes exceed the limit of %d", len(b), MaxBytes)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if v.Version != Version {
		return fmt.Errorf("version %d, this process knows %d", v.Version, Version)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// MaxSteps is the largest distance in steps between the first and the last step of a range query,
// upstream's.
const MaxSteps = 11_000

func (p *Piece) validate() error {
	const mostTime, mostDuration = math.MaxInt64 / 4, int64(math.MaxInt64 / time.Millisecond)
	switch {
	case p.Query == "":
		return errors.New("query is missing")
	case p.Step <= 0 || p.Step > mostDuration:
		return fmt.Errorf("step: want a positive duration in ms, got %d", p.Step)
	case max(p.Start, -p.Start, p.End, -p.End) > mostTime || p.End < p.Start || (p.End-p.Start)/p.Step > MaxSteps:
		return fmt.Errorf("start and end: want at most %d steps, got %d to %d", MaxSteps, p.Start, p.End)
	case p.From < p.Start || p.Upto > p.End || p.Upto < p.From || (p.From-p.Start)%p.Step != 0 || (p.Upto-p.Start)%p.Step != 0:
		return fmt.Errorf("from and upto: want steps of the query, got %d to %d", p.From, p.Upto)
	case p.Lookback <= 0 || p.Lookback > mostDuration:
		return fmt.Errorf("lookback: want a positive duration in ms, got %d", p.Lookback)
	case p.Timeout <= 0 || p.Timeout > mostDuration:
		return fmt.Errorf("timeout: want a positive duration in ms, got %d", p.Timeout)
	case p.MaxBytes <= 0:
		return fmt.Errorf("max_bytes: want a positive number, got %d", p.MaxBytes)
	}
	return nil
}

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
