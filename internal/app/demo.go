package app

import (
	"net/http"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/demo"
	"github.com/promlake/promlake/internal/app/process"
)

// demonstration serves the machine's metrics and prints the welcome. It implements process.Stage.
type demonstration struct {
	process.Stage // prints the welcome
	machine       http.Handler
}

// Routes implements process.Stage.
func (d demonstration) Routes() []process.Route {
	return []process.Route{{Pattern: "GET " + demo.NodePath, Name: demo.NodePath, Access: auth.Operate, Handler: d.machine}}
}

// Close implements process.Stage; Drain left nothing to release.
func (demonstration) Close() error { return nil }
