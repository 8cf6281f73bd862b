package api

import (
	"context"
	"net/http"
)

// Laker is a Backend that can describe the objects of a tenant.
type Laker interface {
	// Lake returns the description, to be encoded as JSON. Errors are those of a Backend.
	Lake(ctx context.Context) (any, error)
}

// lake answers /api/v1/status/lake.
func (s *server) lake(r *http.Request) (any, error) { return s.lakes.Lake(r.Context()) }
