package app

import (
	"context"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/auth"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/ruler"
)

// rulesAPI serves the API for the rules of tenants. It implements process.Stage.
type rulesAPI struct {
	process.Idle

	routes []process.Route
}

// Routes implements process.Stage.
func (a rulesAPI) Routes() []process.Route { return a.routes }

// editingRules returns the builder of the API for the rules of tenants. changed is called after
// each edit.
func editingRules(s Settings, changed func()) process.Builder {
	set := s.Ruler
	set.Parser, set.Expressions = query.ParserOptions(), s.Query.API.Expressions
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		var a rulesAPI
		for _, r := range ruler.Routes(set, p.Store, changed, p.Registry, p.Logger) {
			access := auth.Read
			if r.Changes {
				access = auth.Admin
			}
			a.routes = append(a.routes, process.Route{Pattern: r.Pattern, Name: r.Name, Access: access, Handler: r.Handler})
		}
		return a, nil
	}
}
