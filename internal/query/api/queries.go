package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/usage"
)

// Accountant is a Backend that lists the queries which run, and accounts for what they took.
type Accountant interface {
	// Track calls fn, lists the request of ctx among the queries meanwhile, and accounts for what fn
	// takes. If an allowance is used up, it returns that error and does not call fn.
	Track(ctx context.Context, fn func(ctx context.Context)) error
	// Queries returns the queries that run in this process.
	Queries() *request.Queries
	// Usage returns what was counted of the context's tenant.
	Usage(ctx context.Context) (usage.Report, error)
	// UsageOfAll returns what was counted of each tenant of the store.
	UsageOfAll(ctx context.Context) (map[string]usage.Report, error)
}

// Routes of Accountant. The first one is VictoriaMetrics', which has no DELETE.
const (
	activePath      = "/status/active_queries"
	spendingPath    = "/status/spending"
	spendingAllPath = "/status/spending/tenants"
)

// tracked lists the requests of a handler that has no turn among the queries, and accounts for
// them.
func (s *server) tracked(next http.Handler) http.Handler {
	if s.queries == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.queries.Track(r.Context(), func(ctx context.Context) { next.ServeHTTP(w, r.WithContext(ctx)) })
		if err != nil {
			s.respond.StorageError(w, r, err)
		}
	})
}

// activeQuery is a query that runs. The first fields are VictoriaMetrics'.
type activeQuery struct {
	Duration string         `json:"duration"`
	ID       string         `json:"id"`
	Remote   string         `json:"remote_addr"`
	Query    string         `json:"query"`
	Start    int64          `json:"start,omitempty"` // ms
	End      int64          `json:"end,omitempty"`   // ms
	Step     int64          `json:"step,omitempty"`  // ms
	Path     string         `json:"path"`
	State    string         `json:"state"` // running or waiting
	Bytes    int64          `json:"bytes_read"`
	Requests int64          `json:"requests"`
	Memory   int64          `json:"memory_bytes"`
	Token    string         `json:"token,omitempty"`
	Source   request.Source `json:"source"`
}

// active serves activePath.
func (s *server) active() http.Handler {
	list := s.respond.JSON(s.running)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			s.endQuery(w, r)
			return
		}
		list.ServeHTTP(w, r)
	})
}

// running lists the queries of the tenant that run in this process, the oldest first.
func (s *server) running(r *http.Request) (any, error) {
	out := []activeQuery{}
	for _, q := range s.queries.Queries().Of(tenant.From(r.Context())) {
		age, waits := q.Age()
		state := "running"
		if waits {
			state = "waiting"
		}
		out = append(out, activeQuery{
			fmt.Sprintf("%.3fs", age.Seconds()), q.ID(), q.Remote, q.Text, q.Start, q.End, q.Step, q.Path, state,
			q.Took.Bytes.Load(), q.Took.Requests.Load(), q.Memory(), q.Token, q.Source,
		})
	}
	return out, nil
}

// endQuery ends the tenant's query that the parameter id names.
func (s *server) endQuery(w http.ResponseWriter, r *http.Request) {
	id := r.FormValue("id")
	switch {
	case id == "":
		s.respond.Error(w, r, respond.BadData, respond.BadRequest(`parameter "id" is missing`))
	case !s.queries.Queries().End(tenant.From(r.Context()), id):
		err := fmt.Errorf("no query %q of tenant %s runs in this process", id, tenant.From(r.Context()))
		s.respond.Error(w, r, respond.Failure{Kind: "not_found", Code: http.StatusNotFound}, err)
	default:
		s.logger.Info("a query was ended by a request", "tenant", tenant.From(r.Context()), "id", id)
		w.WriteHeader(http.StatusNoContent)
	}
}

// spent is what queries took.
type spent struct {
	Queries  int64   `json:"queries"`
	Seconds  float64 `json:"seconds"`
	Bytes    int64   `json:"bytes"`
	Requests int64   `json:"requests"`
	Dollars  float64 `json:"dollars"` // 0 where the store is a directory
}

func spentOf(s usage.Spent, free bool) spent {
	out := spent{s.Queries, s.Seconds(), s.Bytes, s.Requests, 0}
	if !free {
		out.Dollars = s.Dollars()
	}
	return out
}

// source is what the queries of a source took, or those of a token.
type source struct {
	Kind  string `json:"kind,omitempty"`
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	spent
}

// days reads the parameters start and end of what was spent. The default is the present month.
func (s *server) days(r *http.Request) (from, to time.Time, err error) {
	now := s.now().UTC()
	if from, err = moment(r, "start", time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)); err != nil {
		return from, to, err
	}
	if to, err = moment(r, "end", now); err == nil && to.Before(from) {
		err = respond.BadRequest(`invalid parameter "end": end timestamp must not be before start time`)
	}
	return from, to, err
}

// spending answers with what the tenant's queries took on some days, by source and by token.
func (s *server) spending(r *http.Request) (any, error) {
	from, to, err := s.days(r)
	if err != nil {
		return nil, err
	}
	rows, err := rowLimit(r)
	if err != nil {
		return nil, err
	}
	report, err := s.queries.Usage(r.Context())
	if err != nil {
		return nil, err
	}
	all, total := report.Spent(from, to)
	out := struct {
		Since   int64    `json:"since"` // ms: the queries since then are counted
		Start   int64    `json:"start"` // ms
		End     int64    `json:"end"`   // ms
		Total   spent    `json:"total"`
		Sources []source `json:"sources"`
		Tokens  []source `json:"tokens"`
	}{report.Since.UnixMilli(), from.UnixMilli(), to.UnixMilli(), spentOf(total, report.Free), []source{}, []source{}}
	for _, one := range all {
		row, to := source{one.Kind, one.Name, one.Title, spentOf(one.Spent, report.Free)}, &out.Sources
		if one.Kind == usage.Token {
			row.Kind, to = "", &out.Tokens
		}
		if len(*to) < rows {
			*to = append(*to, row)
		}
	}
	return out, nil
}

// spendingOfAll answers with what the queries of each tenant took on some days.
func (s *server) spendingOfAll(r *http.Request) (any, error) {
	from, to, err := s.days(r)
	if err != nil {
		return nil, err
	}
	reports, err := s.queries.UsageOfAll(r.Context())
	if err != nil {
		return nil, err
	}
	type row struct {
		Tenant string `json:"tenant"`
		spent
	}
	out := []row{}
	for tenant, report := range reports {
		_, total := report.Spent(from, to)
		out = append(out, row{tenant, spentOf(total, report.Free)})
	}
	slices.SortFunc(out, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.Dollars, a.Dollars), cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Tenant, b.Tenant))
	})
	return out, nil
}
