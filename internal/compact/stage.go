package compact

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Stage is the compaction stage of one process. Any number of processes may work on one store at
// once: of two equal jobs, one is dropped. Its methods may be called concurrently.
type Stage struct {
	set   Settings
	store objstore.Store
	log   *slog.Logger
	now   func() time.Time
	met   *metrics
	ids   *idSource

	mu      sync.Mutex
	scanned map[string]time.Time // by tenant: when its blocks were last searched for orphans

	memory memo // of Dispatch and Tick
}

// New returns a stage. It starts no goroutine.
func New(set Settings, store objstore.Store, reg prometheus.Registerer, log *slog.Logger, now func() time.Time) (*Stage, error) {
	set, err := set.WithDefaults()
	if err != nil {
		return nil, err
	}
	if set.Entropy == nil {
		set.Entropy = rand.Reader
	}
	if set.Encoders == nil {
		set.Encoders = &parquetfile.Encoders{}
	}
	return &Stage{
		set: set, store: store, log: log, now: now, met: newMetrics(reg), ids: &idSource{entropy: set.Entropy},
		scanned: map[string]time.Time{}, memory: memo{seen: map[string]seen{}},
	}, nil
}

// Settings returns the settings of the stage, with defaults.
func (s *Stage) Settings() Settings { return s.set }

// idSource makes identifiers and random numbers.
type idSource struct {
	mu      sync.Mutex
	entropy io.Reader
}

// next returns a ULID of this time.
func (s *idSource) next(now time.Time) (ulid.ULID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(now), s.entropy)
	if err != nil {
		return id, fmt.Errorf("make an identifier: %w", err)
	}
	return id, nil
}

// seed returns a random number.
func (s *idSource) seed() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b [8]byte
	if _, err := io.ReadFull(s.entropy, b[:]); err != nil {
		return 0, fmt.Errorf("make a seed: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
