package sql

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/duck/table"
)

// scanFunction is the table function behind the views. Its argument is the name of a view and a
// number, so that each mention of a view in a statement is a scan of its own.
const scanFunction = "promlake_scan"

// hidden is the beginning of the names that views select from: they are no tables, so DuckDB asks
// for them each time that a view is mentioned.
const hidden = "promlake_view_"

// functionNames are the table functions that statements may call.
var functionNames = []string{metricFunction, promqlFunction}

// buckets is time_bucket as DuckDB has it. For days and more of a TIMESTAMPTZ, DuckDB asks a
// calendar of time zones, which takes 20 times as long. The zone is UTC here, where a TIMESTAMP has
// the same buckets; a width of days and hours, which DuckDB refuses for a TIMESTAMPTZ, has some,
// too.
const buckets = `
CREATE MACRO time_bucket(width INTERVAL, t TIMESTAMPTZ) AS system.main.time_bucket(width, t::TIMESTAMP)::TIMESTAMPTZ,
	(width INTERVAL, t TIMESTAMP) AS system.main.time_bucket(width, t),
	(width INTERVAL, t DATE) AS system.main.time_bucket(width, t),
	(width, t) AS system.main.time_bucket(width, t),
	(width, t, origin) AS system.main.time_bucket(width, t, origin);
`

// lockText creates the views and the macros, and takes the files, the network and the settings away
// from a database. The search for common subexpressions takes the cube of the length of a chain of
// operators, and nothing ends it.
var lockText = func() string {
	var b strings.Builder
	b.WriteString("BEGIN; ")
	for _, v := range viewNames {
		b.WriteString("CREATE VIEW " + v + " AS FROM " + hidden + v + "; ")
	}
	b.WriteString(buckets + macros + "COMMIT; SET TimeZone = 'UTC'; SET allow_community_extensions = false; SET enable_external_access = false; SET disabled_optimizers = 'common_subexpressions'; SET lock_configuration = true")
	return b.String()
}()

// session is a locked database for the statements of a tenant, one at a time.
type session struct {
	*duck.DB
	guard  *duck.Guard
	budget *promsql.Budget           // of PromQL's functions
	of     atomic.Pointer[execution] // whose tables the functions read; between statements one without data
	tenant string
	lookup bool // RegisterLookup was called
}

// The guard of a session admits this multiple of the memory that DuckDB counts, and these bytes: it
// is there for what DuckDB does not count.
const (
	guardFactor = 2
	guardBytes  = 64 << 20
)

// open opens a session.
func (r *Runner) open() (*session, error) {
	g, err := duck.NewGuard(guardFactor*r.Settings.MemoryBytes+guardBytes, r.Settings.MaxPlanBytes)
	if err != nil {
		return nil, fmt.Errorf("open a database for SQL: %w", err)
	}
	s := &session{guard: g, budget: promsql.NewBudget(r.Settings.MemoryBytes)}
	s.of.Store(&execution{Runner: r})
	s.DB = duck.New(duck.Settings{
		MemoryLimitBytes: r.Settings.MemoryBytes, TempBytes: r.Settings.SpillBytes, Threads: r.Settings.Threads, Connections: 1, Guard: g,
		TempDir: r.directory, Setup: s.setup,
		Opened: func(db mapping.Database) {
			table.Replace(db, func(name string) (function, argument string, ok bool) { return s.of.Load().replacement(name) })
		},
	})
	leave := g.Enter()
	err = s.Open()
	leave()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// idle reports whether the last statement has left nothing behind that counts against the next one.
func (s *session) idle() bool {
	g := s.guard
	return !g.Exceeded() && !g.Crowded() && !g.Planned() && g.Held() == 0 && s.budget.Err() == nil && s.budget.Used() == 0
}

// Close closes the database and its guard, which no thread of the caller may have entered.
func (s *session) Close() error {
	leave := s.guard.Enter()
	err := s.DB.Close()
	leave()
	s.guard.Close()
	s.budget.Reclaim() // states of a statement that failed
	return errors.Join(err, s.budget.Close())
}

// setup registers the functions, creates the views and locks the database.
func (s *session) setup(conn mapping.Connection) error {
	bound := func(bind func(*execution, []*string) (table.Table, error)) func([]*string) (table.Table, error) {
		return func(arguments []*string) (table.Table, error) { return bind(s.of.Load(), arguments) }
	}
	for _, f := range []table.Function{
		{Name: scanFunction, Parameters: 1, Bind: bound((*execution).bindScan)},
		{Name: metricFunction, Parameters: 3, Bind: bound((*execution).bindMetric)},
		{Name: promqlFunction, Parameters: 4, Bind: bound((*execution).bindPromQL)},
	} {
		if err := table.Register(conn, f); err != nil {
			return err
		}
	}
	if err := s.register(conn); err != nil {
		return err
	}
	return duck.Run(conn, lockText)
}

// replacement is called where a view is mentioned.
func (x *execution) replacement(name string) (function, argument string, ok bool) {
	view, ok := strings.CutPrefix(name, hidden)
	if !ok {
		return "", "", false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mentions++
	return scanFunction, fmt.Sprintf("%s#%d", view, x.mentions), true
}
