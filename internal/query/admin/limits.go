package admin

import "fmt"

// Limits of a request, by their names in metrics. Those of a manifest are named by
// catalog.LimitError.
const (
	limitSelectors = "selectors"
	limitMatch     = "expression" // expression.Limits
)

// requestLimit is a request that exceeds a limit of its own.
type requestLimit struct {
	name     string
	what     string // is limited
	got, max int64
	flag     string // changes the limit
}

func (e *requestLimit) Error() string {
	return fmt.Sprintf("%d %s, the limit is %d (%s): send several requests", e.got, e.what, e.max, e.flag)
}
