package query

import "fmt"

// LimitError reports that a query went beyond a limit. It is the asker's mistake or the operator's choice, not a fault.
type LimitError struct {
	Limit string // what is limited
	Value int64  // the limit
	Flag  string // the setting that raises it
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("query exceeds the limit of %d %s; narrow the selector or the time range, or raise %s", e.Value, e.Limit, e.Flag)
}

// QueryLimit tells the HTTP API that this is a limit (422) and not a failure.
func (*LimitError) QueryLimit() bool { return true }

func (s *Settings) tooManySamples() error {
	return &LimitError{"samples per selector", int64(s.MaxSamples), "--query.max-samples"}
}

func (s *Settings) tooManySeries() error {
	return &LimitError{"series per selector", int64(s.MaxSeries), "--query.max-series"}
}

func (s *Settings) tooManySegments() error {
	return &LimitError{"segments per selector", int64(s.MaxSegments), "--query.max-segments"}
}

func (s *Settings) tooManyMatcherValues() error {
	return &LimitError{"label values per regular expression", int64(s.MaxMatcherValues), "--query.max-matcher-values"}
}
