package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/promlake/promlake/internal/query/api/respond"
)

// Laker is a Backend that can describe the objects of a tenant.
type Laker interface {
	// Lake returns the description, to be encoded as JSON; with columns, it also has the sizes of
	// columns, which cost a read of each block. Errors are those of a Backend.
	Lake(ctx context.Context, columns bool) (any, error)
}

// lake answers /api/v1/status/lake.
func (s *server) lake(r *http.Request) (any, error) {
	columns := false
	if v := r.FormValue("columns"); v != "" {
		var err error
		if columns, err = strconv.ParseBool(v); err != nil {
			return nil, respond.BadRequest(fmt.Sprintf("columns must be true or false, not %q", v))
		}
	}
	return s.lakes.Lake(r.Context(), columns)
}
