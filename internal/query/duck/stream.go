package duck

import (
	"context"
	"fmt"
	"slices"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Stream runs one statement whose columns are not known beforehand. It must be a query: a statement
// of another type is an error. Its rows have no Columns; Chunk has them.
func (d *DB) Stream(ctx context.Context, sql string, allowed ...mapping.StatementType) (*Rows, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	r := &Rows{db: d, ctx: ctx, conn: conn, sql: sql, allowed: allowed, stop: interruptWhenDone(ctx, conn)}
	if err := r.start(); err != nil {
		err = r.because(err)
		r.Close()
		return nil, err
	}
	return r, nil
}

// Text runs a statement that parses or plans another one, and returns its only value. The guard of
// the database counts all of its work as planning.
func (d *DB) Text(ctx context.Context, sql string) (out []byte, err error) {
	rows, err := d.query(&Rows{db: d, ctx: ctx, sql: sql, plans: true}, Varchar)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		out = append(out, rows.Columns()[0].Strings()[0].Bytes()...)
	}
	return out, rows.Err()
}

// With calls fn with a connection that it owns until it returns.
func (d *DB) With(ctx context.Context, fn func(mapping.Connection) error) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer d.release(conn)
	return fn(conn)
}

// permitted checks the type of the prepared statement.
func (r *Rows) permitted() error {
	got := mapping.PreparedStatementType(r.stmt)
	if len(r.allowed) == 0 || slices.Contains(r.allowed, got) {
		return nil
	}
	return &Error{Message: fmt.Sprintf("a statement of type %d is not a query", got), SQL: r.sql}
}

// Connection is where the statement runs.
func (r *Rows) Connection() mapping.Connection { return r.conn }

// Chunk is the current chunk. It is valid until the next call of Next or Close.
func (r *Rows) Chunk() mapping.DataChunk { return r.chunk }

// Names returns the names of the result's columns.
func (r *Rows) Names() []string {
	out := make([]string, mapping.ColumnCount(&r.res))
	for i := range out {
		out[i] = mapping.ColumnName(&r.res, mapping.IdxT(i))
	}
	return out
}

// Types returns the types of the result's columns. The caller destroys them.
func (r *Rows) Types() []mapping.LogicalType {
	out := make([]mapping.LogicalType, mapping.ColumnCount(&r.res))
	for i := range out {
		out[i] = mapping.ColumnLogicalType(&r.res, mapping.IdxT(i))
	}
	return out
}
