// Package ruleapp connects the rules of tenants to a process: the API that changes them, and their
// evaluation by functions.
package ruleapp

import (
	"context"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/rules/ruler"
)

// rulesAPI serves the API for the rules of tenants. It implements process.Stage.
type rulesAPI struct {
	process.Idle

	routes []process.Route
}

// Routes implements process.Stage.
func (a rulesAPI) Routes() []process.Route { return a.routes }

// Editing returns the builder of the API for the rules of tenants. limits bound their expressions.
// changed is called after each edit.
func Editing(set ruler.Settings, limits expression.Limits, changed func()) process.Builder {
	set.Parser, set.Expressions = query.ParserOptions(), limits
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		var a rulesAPI
		for _, r := range ruler.Routes(set, p.Store, changed, p.Memory, p.Registry, p.Logger) {
			access := auth.Read
			if r.Changes {
				access = auth.Admin
			}
			a.routes = append(a.routes, process.Route{Pattern: r.Pattern, Name: r.Name, Access: access, Handler: r.Handler})
		}
		return a, nil
	}
}
