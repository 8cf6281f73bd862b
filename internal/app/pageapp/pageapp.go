// Package pageapp fits the page into a process: the routes that a browser asks first.
package pageapp

import (
	"context"
	"net/http"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/auth"
	"github.com/promlake/promlake/web"
)

// stage implements process.Stage.
type stage struct {
	process.Idle
	page http.Handler
}

// New builds the stage. It implements process.Builder.
func New(context.Context, process.Parts) (process.Stage, error) {
	return stage{page: web.Handler()}, nil
}

// Routes implements process.Stage. The page holds no data, so it needs no token; it asks for one
// when the API refuses its requests.
func (s stage) Routes() []process.Route {
	return []process.Route{
		{Pattern: "GET /{$}", Name: "/", Access: auth.Public, Handler: s.page},
		{Pattern: "GET /assets/{file}", Name: "/assets", Access: auth.Public, Handler: s.page},
	}
}
