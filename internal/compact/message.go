package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/queue"
)

// Work is a planned job of a tenant. Its form on the queue is that of schemas/job.md.
type Work struct {
	Tenant string
	Job    plan.Job
}

const (
	// Version is the version of the job messages that this package writes, and the only one
	// that it reads.
	Version = 1
	// MaxBytes bounds a job message. A job of 64 segments has 3 kB. With the settings of a
	// function, 1,024 segments have 47 kB, and 64 blocks of 64 slices each 197 kB.
	MaxBytes = 256 << 10
)

// ErrNoJob reports bytes that are no job message, or one of another version.
var ErrNoJob = errors.New("not a job message of a known version")

// message is a planned job as JSON (schemas/job.schema.json). It names objects by their keys
// without the tenant's prefix.
type message struct {
	Version  int           `json:"version"`
	Tenant   string        `json:"tenant"`
	Kind     string        `json:"kind"`
	Level    *key.Level    `json:"level,omitempty"` // of merge, split, slice; and the window, too
	Window   *key.Window   `json:"window,omitempty"`
	Segments []string      `json:"segments,omitempty"`
	Blocks   []string      `json:"blocks,omitempty"`
	Slice    catalog.Slice `json:"slice,omitzero"`
	Split    ulid.ULID     `json:"split,omitzero"`
	Drop     []ulid.ULID   `json:"drop,omitempty"`
	Planned  time.Time     `json:"planned"`
	Why      string        `json:"why"`
	Samples  int64         `json:"samples,omitempty"`
	Bytes    int64         `json:"bytes,omitempty"`
}

// Encode returns the job as a message. Equal jobs have equal bytes. A job of more than
// MaxBytes is an error.
func (w Work) Encode() ([]byte, error) {
	m := message{
		Version: Version, Tenant: w.Tenant, Kind: w.Job.Kind.String(), Slice: w.Job.Slice, Split: w.Job.Split, Drop: w.Job.Drop,
		Planned: w.Job.Planned.UTC(), Why: w.Job.Why, Samples: w.Job.Samples, Bytes: w.Job.Bytes,
	}
	if w.Job.Windowed() {
		m.Level, m.Window = &w.Job.Level, &w.Job.Window
	}
	for _, s := range w.Job.Sources.Segments {
		m.Segments = append(m.Segments, s.String())
	}
	for _, b := range w.Job.Sources.Blocks {
		m.Blocks = append(m.Blocks, b.String())
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode job %s: %w", w.Job, err)
	}
	if len(body) > MaxBytes {
		return nil, fmt.Errorf("encode job %s: it has %d bytes, the limit is %d: lower compactor.max-segments or compactor.max-sources", w.Job, len(body), MaxBytes)
	}
	return body, nil
}

// Decode is the inverse of Encode. The error wraps ErrNoJob.
func Decode(body []byte) (Work, error) {
	w, err := decode(body)
	if err != nil {
		return Work{}, fmt.Errorf("decode job: %w: %w", ErrNoJob, err)
	}
	return w, nil
}

func decode(body []byte) (Work, error) {
	if len(body) > MaxBytes {
		return Work{}, fmt.Errorf("it has %d bytes, the limit is %d", len(body), MaxBytes)
	}
	var v struct{ Version int }
	if err := json.Unmarshal(body, &v); err != nil {
		return Work{}, err
	}
	if v.Version != Version {
		return Work{}, fmt.Errorf("its version is %d, this program knows %d", v.Version, Version)
	}
	var m message
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields() // what this program does not know it must not leave undone
	if err := dec.Decode(&m); err != nil {
		return Work{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Work{}, errors.New("bytes follow it")
	}
	kind, err := plan.ParseKind(m.Kind)
	if err != nil {
		return Work{}, err
	}
	j := plan.Job{Kind: kind, Slice: m.Slice, Split: m.Split, Drop: m.Drop, Planned: m.Planned, Why: m.Why, Samples: m.Samples, Bytes: m.Bytes}
	if m.Level != nil {
		j.Level = *m.Level
	}
	if m.Window != nil {
		j.Window = *m.Window
	}
	for _, s := range m.Segments {
		id, err := key.ParseSegment(key.SegmentsPrefix(tenant.Default) + s + ".parquet")
		if err != nil {
			return Work{}, err
		}
		j.Sources.Segments = append(j.Sources.Segments, catalog.SegmentIDOf(id))
	}
	for _, s := range m.Blocks {
		if strings.Count(s, "/") != 2 {
			return Work{}, fmt.Errorf("%q names no block", s)
		}
		b, _, err := key.ParseBlockFile(key.BlocksPrefix(tenant.Default) + s + "/meta.json")
		if err != nil {
			return Work{}, err
		}
		j.Sources.Blocks = append(j.Sources.Blocks, catalog.BlockID{Level: b.Level, Window: b.Window, ID: b.ID})
	}
	w := Work{Tenant: m.Tenant, Job: j}
	return w, w.validate()
}

// validate refuses a job that a worker could not run.
func (w *Work) validate() error {
	j := &w.Job
	if t, err := tenant.Parse(w.Tenant); err != nil || t != w.Tenant {
		return fmt.Errorf("%q is no tenant", w.Tenant)
	}
	switch {
	case j.Planned.IsZero():
		return errors.New("it does not say when it was planned")
	case j.Windowed() && j.Level.WindowOf(int64(j.Window)) != j.Window:
		return fmt.Errorf("%s is no window of level %s", j.Window, j.Level)
	case j.Kind == plan.Drop && len(j.Drop) == 0, j.Kind != plan.Drop && j.Sources.Len() == 0:
		return fmt.Errorf("%s of nothing", j.Kind)
	case j.Kind == plan.Split && (j.Slice.Index != 0 || j.Slice.Of < 2 || j.Slice.Of > plan.MaxSlices),
		j.Kind == plan.Cut && (j.Slice.Index < 0 || j.Slice.Of < 2 || j.Slice.Of <= j.Slice.Index || j.Split == ulid.ULID{}):
		return fmt.Errorf("slice %d of %d of split %s", j.Slice.Index, j.Slice.Of, j.Split)
	}
	return nil
}

// maxGroup is the longest name of a message group, in bytes (Amazon SQS, "Using the message group
// ID").
const maxGroup = 128

// Group names the jobs that must run one after another: those of a tenant's day, because a job may
// be pointless once the one before it is done. Each slice is a group of its own, since it shares
// nothing with any other job, and so are the two kinds of jobs that have no day.
func (w Work) Group() string {
	at := w.Job.Kind.String()
	if w.Job.Windowed() {
		at = key.L24h.WindowOf(int64(w.Job.Window)).String()
	}
	if w.Job.Kind == plan.Cut {
		at = fmt.Sprintf("%s/%s/%d", at, w.Job.Split, w.Job.Slice.Index)
	}
	if name := w.Tenant + "/" + at; len(name) <= maxGroup { // groups may have all characters of tenants, and the slash
		return name
	}
	return digest([]byte(w.Tenant)) + "/" + at
}

// Identity is a hash of what the job does. It does not depend on when or why the job was planned.
func (w Work) Identity() (string, error) {
	w.Job.Planned, w.Job.Why, w.Job.Samples, w.Job.Bytes = time.Time{}, "", 0, 0
	body, err := w.Encode()
	if err != nil {
		return "", err
	}
	return digest(body), nil
}

// Message returns the job as a message of a FIFO queue. The queue drops a copy that it receives
// within its deduplication interval. A later copy waits until the first one is done, and then has
// nothing to do.
func (w Work) Message() (queue.Message, error) {
	body, err := w.Encode()
	if err != nil {
		return queue.Message{}, err
	}
	id, err := w.Identity()
	return queue.Message{Body: string(body), Group: w.Group(), Deduplication: id}, err
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
