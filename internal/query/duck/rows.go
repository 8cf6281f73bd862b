package duck

import (
	"context"
	"errors"
	"fmt"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// interruptEvery is the interval at which a cancelled statement is interrupted again: DuckDB loses
// an interrupt that arrives between two phases of a statement.
const interruptEvery = 5 * time.Millisecond

// Error is DuckDB's error about a statement.
type Error struct {
	Message     string
	SQL         string
	OutOfMemory bool // memory_limit ended the execution
	Internal    bool // a fault of DuckDB
}

// Error implements error. The statement is left out: it can be megabytes of file names.
func (e *Error) Error() string { return e.Message }

// Rows streams the result of a statement. It belongs to one goroutine and must be closed.
type Rows struct {
	db    *DB
	ctx   context.Context
	conn  mapping.Connection
	stop  func()
	stmt  mapping.PreparedStatement
	res   mapping.Result
	chunk mapping.DataChunk
	cols  []Vector
	sql   string
	args  [][]byte
	// allowed are the types that the statement may have; none = every type
	allowed []mapping.StatementType
	plans   bool // another statement: its execution is planning, too
	err     error
	done    bool
	whole   bool // the result was read to its end
}

// Query runs one statement, whose parameters $1, $2, ... are the BLOBs args, and streams its
// result, so that memory is bounded by what the caller keeps. types are the SQL types of the
// result's columns, such as BigInt; another type is an error, so no view misreads memory. When ctx
// ends, the statement is interrupted and the error wraps ctx's.
func (d *DB) Query(ctx context.Context, sql string, args [][]byte, types ...string) (*Rows, error) {
	return d.query(&Rows{db: d, ctx: ctx, sql: sql, args: args}, types...)
}

func (d *DB) query(r *Rows, types ...string) (_ *Rows, err error) {
	if r.conn, err = d.acquire(r.ctx); err != nil {
		return nil, err
	}
	r.stop = interruptWhenDone(r.ctx, r.conn)
	err = r.start()
	if err == nil {
		err = r.check(types)
	}
	if err != nil {
		err = r.because(err)
		r.Close()
		return nil, err
	}
	r.cols = make([]Vector, len(types))
	return r, nil
}

// Each runs a statement as Query does, and calls fn for every chunk of its result.
func (d *DB) Each(ctx context.Context, sql string, args [][]byte, types []string, fn func(n int, cols []Vector) error) error {
	rows, err := d.Query(ctx, sql, args, types...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows.Len(), rows.Columns()); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (r *Rows) start() error {
	planned := r.db.settings.Guard.Plan()
	defer planned()
	if Prepare(r.conn, r.sql, &r.stmt) == mapping.StateError {
		return &Error{Message: mapping.PrepareError(r.stmt), SQL: r.sql}
	}
	if err := r.permitted(); err != nil {
		return err
	}
	// DuckDB copies the arguments.
	if n := int(mapping.NParams(r.stmt)); n != len(r.args) {
		return fmt.Errorf("bind %d arguments to a statement with %d parameters", len(r.args), n)
	}
	for i, a := range r.args {
		if mapping.BindBlob(r.stmt, mapping.IdxT(i+1), a) == mapping.StateError {
			return &Error{Message: mapping.PrepareError(r.stmt), SQL: r.sql}
		}
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if !r.plans {
		planned()
	}
	if bindings.ExecutePreparedStreaming(r.stmt, &r.res) == mapping.StateError {
		return r.failure(mapping.ResultError(&r.res))
	}
	return nil
}

// failure returns the error of the execution with DuckDB's message.
func (r *Rows) failure(msg string) error {
	kind := mapping.ResultErrorType(&r.res)
	return &Error{
		Message: msg, SQL: r.sql, OutOfMemory: kind == mapping.ErrorTypeOutOfMemory,
		Internal: kind == mapping.ErrorTypeInternal || kind == mapping.ErrorTypeFatal,
	}
}

// check compares the result's column types with the expected ones.
func (r *Rows) check(types []string) error {
	n := int(mapping.ColumnCount(&r.res))
	if n != len(types) {
		return fmt.Errorf("read query result: %d columns, expected %d", n, len(types))
	}
	for i, want := range types {
		lt := mapping.ColumnLogicalType(&r.res, mapping.IdxT(i))
		got := TypeName(lt)
		mapping.DestroyLogicalType(&lt)
		if got != want {
			return fmt.Errorf("read query result: column %s is %s, expected %s", mapping.ColumnName(&r.res, mapping.IdxT(i)), got, want)
		}
	}
	return nil
}

// Next advances to the next chunk. Views of the previous chunk become invalid.
func (r *Rows) Next() bool {
	if r.done {
		return false
	}
	mapping.DestroyDataChunk(&r.chunk)
	r.chunk = mapping.FetchChunk(r.res)
	if r.chunk.Ptr == nil {
		r.done = true
		msg := mapping.ResultError(&r.res)
		if r.whole = msg == ""; !r.whole {
			r.err = r.because(r.failure(msg))
		}
		return false
	}
	if err := r.ctx.Err(); err != nil {
		r.done, r.err = true, err
		return false
	}
	n := r.Len()
	for i := range r.cols {
		r.cols[i] = newVector(mapping.DataChunkGetVector(r.chunk, mapping.IdxT(i)), n)
	}
	return true
}

// Len returns the number of rows in the current chunk.
func (r *Rows) Len() int { return int(mapping.DataChunkGetSize(r.chunk)) }

// Columns returns the columns of the current chunk.
func (r *Rows) Columns() []Vector { return r.cols }

// Err returns what ended the iteration early, if anything did.
func (r *Rows) Err() error { return r.err }

// Close ends the statement and frees its memory. It may be repeated. The connection of a statement
// that failed or was left early is closed: it would keep what is left of some interrupted
// statements, such as the states of aggregates, until its next statement.
func (r *Rows) Close() {
	if r.stop == nil {
		return
	}
	r.done = true
	// The interrupter ends first: the connection may serve another statement as soon as it is
	// released.
	r.stop()
	r.stop = nil
	mapping.DestroyDataChunk(&r.chunk)
	mapping.DestroyResult(&r.res)
	mapping.DestroyPrepare(&r.stmt)
	if r.whole {
		r.db.release(r.conn)
	} else {
		c := r.conn
		mapping.Disconnect(&c)
		<-r.db.slots
	}
}

// because returns the context's error if the context ended, which interrupts DuckDB, and err
// otherwise.
func (r *Rows) because(err error) error {
	if cerr := r.ctx.Err(); cerr != nil && !errors.Is(err, cerr) {
		return fmt.Errorf("run query: %w", cerr)
	}
	return fmt.Errorf("run query: %w", err)
}

// interruptWhenDone interrupts conn from the moment ctx ends until the returned function was
// called.
func interruptWhenDone(ctx context.Context, conn mapping.Connection) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	finished, exited := make(chan struct{}), make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(exited)
		tick := time.NewTicker(interruptEvery)
		defer tick.Stop()
		for {
			mapping.Interrupt(conn)
			select {
			case <-finished:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		close(finished)
		if !unwatch() {
			<-exited
		}
	}
}
