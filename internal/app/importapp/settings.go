// Package importapp writes histories from elsewhere into a store: the blocks of a Prometheus, of
// Thanos or of Mimir, and what a server has that answers Prometheus' remote read.
package importapp

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/key"
)

// Settings are those of any import. Names that the compaction stage has, too, mean the same there.
type Settings struct {
	Store  string `name:"store" default:"file://./data" help:"Object store to import into. A missing directory is made."`
	Tenant string `name:"tenant" placeholder:"NAME" help:"Tenant that gets the samples. Default: anonymous."`
	DryRun bool   `name:"dry-run" help:"Only print what would be imported, what it would cost a month, and what the tenant has already."`

	Restore bool `name:"restore" help:"Import again what was imported into windows of which promlake doctor has put a block into quarantine."`

	Level       string `name:"level" default:"12h" enum:"2h,12h,24h" help:"Range of the largest blocks that are written: ${enum}. Compaction makes blocks of 24h of the others; 24h takes eight times as long, because it has rollups and compresses best, and leaves nothing to compaction." when:"Set 24h if nothing compacts the store."`
	Concurrency int    `name:"concurrency" default:"0" min:"0" help:"Blocks that are written at once. 0 is the number of processors." when:"Lower it if the machine has other work."`
	MemoryLimit int64  `name:"memory-limit" type:"bytes" placeholder:"BYTES" default:"0" min:"0" help:"Memory of the process. Windows whose series need more are written in slices. 0 is three quarters of what the cgroup or the machine has." when:"Set it if other processes share the machine."`
	TempDir     string `name:"compactor.data-dir" placeholder:"DIR" help:"Directory for files before their upload, and for blocks that are read from a bucket. Default: the system's temporary directory." when:"Set it if the temporary directory is small or in memory."`
	Rollups     bool   `name:"compactor.rollups" negatable:"" default:"true" help:"Write exact 5-minute and 1-hour downsamples beside blocks of 24h." when:"Turn it off where compaction writes none."`

	WindowDelay     time.Duration            `name:"compactor.window-delay" default:"10m" above:"0" help:"Time after the end of a window at which it becomes one block." when:"Rarely."`
	Retention       time.Duration            `name:"compactor.blocks-retention-period" type:"period" placeholder:"PERIOD" default:"0" min:"0" help:"How long samples are kept, such as 30d: windows that are older are not imported. 0 keeps them forever." when:"Set it as for compaction."`
	TenantRetention map[string]time.Duration `name:"compactor.tenant-retention" type:"period" placeholder:"TENANT=PERIOD" help:"A tenant's own retention, such as team-a=30d. 0 is forever. Repeatable." when:"Set it as for compaction."`
}

// unitSamples bounds the samples of a block: a slow machine writes them in half of the time after
// which a commit is refused.
const unitSamples = 200_000_000

// minMemory is what the writers of blocks need beside the series, in bytes, each.
const minMemory = 64 << 20

// limit returns the memory that the import may use, in bytes.
func (s *Settings) limit() int64 {
	limit := s.MemoryLimit
	if limit == 0 {
		limit = memory.DefaultLimit()
	}
	if limit == 0 {
		limit = 1 << 30 // the machine does not say
	}
	return limit
}

// LimitProcess limits the memory of a process that does nothing but import. GOMEMLIMIT, where it is
// set, stands.
func (s *Settings) LimitProcess() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(s.limit() / 10 * 9)
	}
}

// Bulk returns the settings of the import, whose blocks share the memory limit.
func (s *Settings) Bulk() (out bulk.Settings, err error) {
	if err := settings.Check(*s); err != nil {
		return out, err
	}
	if s.Tenant == "" {
		s.Tenant = tenant.Default
	}
	if _, err := tenant.Parse(s.Tenant); err != nil {
		return out, err
	}
	level, err := key.ParseLevel(s.Level)
	if err != nil {
		return out, err
	}
	limit := s.limit()
	n := s.Concurrency
	if n == 0 { // as many as have room
		n = max(1, int(min(int64(runtime.GOMAXPROCS(0)), limit/(2*minMemory))))
	}
	if limit < int64(n)*minMemory {
		return out, fmt.Errorf("import: --memory-limit of %d bytes, want at least %d for each of %d blocks at once: raise it, or lower --concurrency", limit, minMemory, n)
	}
	keep, ok := s.TenantRetention[s.Tenant]
	if !ok {
		keep = s.Retention
	}
	return bulk.Settings{
		Level: level, MemoryBytes: limit / 3, Concurrency: n, TempDir: s.TempDir, Rollups: s.Rollups, Restore: s.Restore,
		Retention: keep, WindowDelay: s.WindowDelay, MaxSamples: unitSamples,
	}, nil
}
