package query

import (
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
)

// The errors by which callers of a Stage tell what happened.
type (
	LimitError   = request.LimitError
	DamagedError = source.DamagedError
	GoneError    = snapshot.GoneError
	TooOldError  = snapshot.TooOldError
)
