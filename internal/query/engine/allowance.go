package engine

import "github.com/promlake/promlake/internal/query/request"

// Bytes that upstream's engine and API allocate, and its limit.
const (
	bytesPerSubqueryStep = 48 // points of one series, and statistics of each step
	bytesPerAnswer       = 64 // of a point as JSON, in two buffers
	heldPerStep          = 10 // steps in windows for each step that subqueries may have: a second of upstream's time
)

// walkable refuses what is left to upstream's engine if its windows hold too many steps of
// subqueries: for one series, upstream walks through all of them without checking whether the query
// has ended.
func (q *Query) walkable() error {
	stmt := q.asked
	if q.left != nil {
		stmt.Expr = q.left
	}
	if limit, c := heldPerStep*q.engine.settings.MaxSubquerySteps, countSteps(&stmt); c.held > limit {
		return &request.LimitError{
			Limit: "steps in all windows of subqueries", Value: limit, Needed: c.held, Flag: subqueryFlag, Advice: "of which it is the tenfold",
		}
	}
	return nil
}

const subqueryFlag = "--query.max-subquery-steps"
