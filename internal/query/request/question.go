package request

import (
	"encoding/json"
	"io"
	"time"

	"github.com/promlake/promlake/internal/prom/expression"
)

// Question is a query that is to be explained. Step 0 makes it an instant query, at End.
type Question struct {
	Text       string
	Start, End time.Time
	Step       time.Duration
	Lookback   time.Duration // 0 = the stage's
	Analyze    bool          // run the statements, and report their measurements

	// WithoutStatements leaves out the statements, whose texts grow with the number of series.
	// Analyze is then false.
	WithoutStatements bool

	Statement *Statement // of SQL, in place of all others; only for slices
}

// Statement is a SQL statement.
type Statement struct {
	Text   string
	Params json.RawMessage // an array, or an object by name; nil = none
	Format string          // of the result: json, csv, arrow or parquet
	// Snapshot is the one on which the statement runs, a divide.Pin. nil: the present one.
	Snapshot json.RawMessage

	Expressions expression.Limits // of the PromQL in it
}

// Output is where the result of a statement goes.
type Output interface {
	io.Writer
	// Reset drops what was written, unless some of it was sent: then it returns false.
	Reset() bool
}
