// Package doctorapp reads a store, reports its damaged objects, and can make them no longer live.
package doctorapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Settings configure an examination.
type Settings struct {
	Tenant     string // "" is all
	Verify     bool   // read every byte of the live objects, and not only what describes them
	Quarantine bool   // take damaged objects out of what counts, and keep their bytes
	MaxObjects int    // a tenant with more live objects is a TooManyError; 0: no limit
}

// TooManyError reports a tenant whose examination would read more objects than the settings allow.
type TooManyError struct{ error }

// concurrency bounds the objects that are read at once: a segment is in memory as a whole.
const concurrency = 4

// Examine reads the manifest of each tenant and the live objects that it and the listing name.
// Damage is part of the report; an error means that the examination did not finish.
func Examine(ctx context.Context, store objstore.Store, s Settings) (Report, error) {
	tenants := []string{s.Tenant}
	if s.Tenant == "" {
		var err error
		if tenants, err = catalog.Tenants(ctx, store); err != nil {
			return Report{}, err
		}
	}
	r := Report{Verified: s.Verify, Tenants: make([]Tenant, 0, len(tenants))}
	for _, name := range tenants {
		d := doctor{store: store, settings: s, tenant: name}
		t, err := d.examine(ctx)
		if err != nil {
			return Report{}, fmt.Errorf("examine tenant %s: %w", name, err)
		}
		r.Tenants = append(r.Tenants, t)
	}
	return r, nil
}

// doctor examines one tenant.
type doctor struct {
	store    objstore.Store
	settings Settings
	tenant   string
}

func (d *doctor) examine(ctx context.Context) (Tenant, error) {
	t := Tenant{Tenant: d.tenant, Damaged: []Damaged{}}
	if _, _, err := catalog.ReadManifest(ctx, d.store, d.tenant); err != nil {
		if ctx.Err() != nil {
			return t, err
		}
		t.Error = err.Error()
		return t, nil
	}
	snap, err := catalog.Take(ctx, d.store, d.tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return t, fmt.Errorf("take snapshot: %w", err)
	}
	t.Segments, t.Blocks = len(snap.Segments), len(snap.Blocks)
	sources := make([]source, 0, len(snap.Segments)+len(snap.Blocks))
	for i := range snap.Segments {
		sources = append(sources, source{segment: &snap.Segments[i]})
	}
	for i := range snap.Blocks {
		sources = append(sources, source{block: &snap.Blocks[i]})
	}
	if most := d.settings.MaxObjects; most > 0 && len(sources) > most {
		return t, &TooManyError{fmt.Errorf("tenant %s has %d live objects, and one request may examine %d (--web.doctor-max-objects): run promlake doctor --tenant %s",
			d.tenant, len(sources), most, d.tenant)}
	}
	found := make([]*Damaged, len(sources))
	var mu sync.Mutex
	err = telemetry.Each(ctx, concurrency, sources, func(ctx context.Context, i int, src source) error {
		n, damaged, err := d.check(ctx, src)
		mu.Lock()
		defer mu.Unlock()
		t.Bytes += n
		found[i] = damaged
		return err
	})
	if err != nil {
		return t, err
	}
	for _, f := range found {
		if f == nil {
			continue
		}
		if d.settings.Quarantine && !f.NotUnderstood {
			if err := d.quarantine(ctx, f); err != nil {
				return t, fmt.Errorf("quarantine %s: %w", f.Object, err)
			}
		}
		t.Damaged = append(t.Damaged, *f)
	}
	return t, nil
}

// Path is where a server examines the store of a tenant.
const Path = "/api/v1/status/doctor"

// Served are the settings of the route. The tags are those of package settings.
type Served struct {
	MaxObjects int `name:"web.doctor-max-objects" default:"1000" min:"1" help:"Live objects of a tenant that one request for /api/v1/status/doctor may examine; each takes a request to the store." when:"Raise it if the page cannot examine a tenant and the requests are worth it; promlake doctor has no limit."`
}

// New returns the builder of a stage that answers GET Path with the Report of the request's tenant,
// as promlake doctor has it without --verify. An examination reads all that a tenant has, so only
// operators start one:
//
//	200   the report
//	400   the tenant has more objects than the settings allow
//	409   another examination runs
//	503   the store does not answer
//
// An examination ends when its client goes away. The stage counts in the process's registry:
//
//	promlake_doctor_requests_total{result}   ok, damaged, limit, busy, failed
func New(s Served) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		results := telemetry.Metrics{Registerer: p.Registry, Prefix: "promlake_"}.Counters("doctor_requests_total", "Requests to examine a tenant by result: ok, damaged, limit (more objects than --web.doctor-max-objects), busy (another examination ran) and failed (the store did not answer).", "result")
		return process.NewExclusive(Path, "another examination of the store is running: try again when it is over", results, func(r *http.Request) (any, string, error) {
			id, err := tenant.FromRequest(r)
			if err != nil {
				return nil, "failed", err
			}
			report, err := Examine(r.Context(), p.Store, Settings{Tenant: id, MaxObjects: s.MaxObjects})
			if tooMany, ok := errors.AsType[*TooManyError](err); ok {
				return nil, "limit", tooMany
			}
			switch {
			case err != nil:
				return nil, "", err
			case !report.Healthy():
				return &report, "damaged", nil
			default:
				return &report, "ok", nil
			}
		}), nil
	}
}

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
