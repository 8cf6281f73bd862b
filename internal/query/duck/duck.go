// Package duck runs SQL in an in-process DuckDB and returns results chunk by chunk as typed views
// of its memory.
//
// The database is in memory and holds no tables: statements read the rows that Go supplies, and
// those of promlake sql local files. The first statement opens it, so a process that runs none pays
// nothing. The package offers no Arrow views (RegisterView): DuckDB's Go binding ignores their
// projections and filters.
package duck

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Settings of a database. The zero value of a field is not a default: callers fill every field.
type Settings struct {
	MemoryLimitBytes int64                  // DuckDB's memory_limit
	TempBytes        int64                  // DuckDB's max_temp_directory_size; 0 is DuckDB's default
	Threads          int                    // threads of one database, shared by its statements
	Connections      int                    // statements that may run at once; further ones wait
	TempDir          func() (string, error) // returns the absolute directory to spill to; called once, when the database opens

	// Setup prepares the database on a connection of its own, for example by registering functions.
	// It is called once, when the database opens; nil means nothing to prepare.
	Setup func(mapping.Connection) error

	// Guard ends calls that DuckDB does not end. A database with a guard has one connection, and those
	// who call DuckDB have entered the guard. nil: none.
	Guard *Guard

	// Opened is called once with the open database, before Setup; nil means nothing to do.
	Opened func(mapping.Database)
}

// ErrClosed reports a statement on a closed database.
var ErrClosed = errors.New("query database is closed")

// DB is a lazily opened DuckDB with a bounded pool of connections. It is safe for concurrent use.
type DB struct {
	settings Settings
	slots    chan struct{} // one token per connection in use

	mu     sync.Mutex
	opened bool
	closed bool
	db     mapping.Database
	idle   []mapping.Connection
}

// New returns a database that opens itself at its first statement.
func New(s Settings) *DB {
	return &DB{settings: s, slots: make(chan struct{}, s.Connections)}
}

// Open opens the database if it is not open yet, so that the first statement does not wait for
// that.
func (d *DB) Open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opening()
}

// opening opens the database if it is not open. d.mu is held.
func (d *DB) opening() error {
	switch {
	case d.closed:
		return ErrClosed
	case d.opened:
		return nil
	}
	if err := d.open(); err != nil {
		return fmt.Errorf("open query database: %w", err)
	}
	d.opened = true
	return nil
}

// Close waits for running statements and frees the database. Later statements fail with ErrClosed.
// Close may be repeated.
func (d *DB) Close() error {
	for range cap(d.slots) {
		d.slots <- struct{}{}
	}
	d.CloseIdle()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.opened {
		d.shut()
		d.opened = false
	}
	for range cap(d.slots) {
		<-d.slots
	}
	return nil
}

// acquire returns a connection that the caller owns until release. It waits for a free one or for
// ctx.
func (d *DB) acquire(ctx context.Context) (mapping.Connection, error) {
	var none mapping.Connection
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return none, fmt.Errorf("wait for one of %d query connections: %w", cap(d.slots), ctx.Err())
	}
	c, err := d.connect()
	if err != nil {
		<-d.slots
		return none, err
	}
	return c, nil
}

func (d *DB) connect() (mapping.Connection, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var c mapping.Connection
	if err := d.opening(); err != nil {
		return c, err
	}
	if n := len(d.idle); n > 0 {
		c = d.idle[n-1]
		d.idle = d.idle[:n-1]
		return c, nil
	}
	if mapping.Connect(d.db, &c) == mapping.StateError {
		return c, errors.New("connect to query database")
	}
	return c, nil
}

func (d *DB) release(c mapping.Connection) {
	d.mu.Lock()
	d.idle = append(d.idle, c)
	d.mu.Unlock()
	<-d.slots
}

// CloseIdle closes the connections that no statement uses, which ends their transactions.
func (d *DB) CloseIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.idle {
		mapping.Disconnect(&d.idle[i])
	}
	d.idle = nil
}

// open creates the database. d.mu is held.
func (d *DB) open() error {
	tmp, err := d.settings.TempDir()
	if err != nil {
		return fmt.Errorf("find a spill directory: %w", err)
	}
	if !filepath.IsAbs(tmp) {
		return fmt.Errorf("spill directory %q is not absolute", tmp)
	}
	options := [][2]string{
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"memory_limit", strconv.FormatInt(d.settings.MemoryLimitBytes, 10) + "B"},
		{"preserve_insertion_order", "false"}, // statements that need an order say so
		{"temp_directory", tmp},
		{"threads", strconv.Itoa(d.settings.Threads)},
	}
	if d.settings.Guard != nil { // whose threads take the places of DuckDB's own
		options = append(options, [2]string{"external_threads", strconv.Itoa(d.settings.Threads)})
	}
	if n := d.settings.TempBytes; n > 0 {
		options = append(options, [2]string{"max_temp_directory_size", strconv.FormatInt(n, 10) + "B"})
	}
	var cfg mapping.Config
	if mapping.CreateConfig(&cfg) == mapping.StateError {
		return errors.New("create configuration")
	}
	defer mapping.DestroyConfig(&cfg)
	for _, o := range options {
		if mapping.SetConfig(cfg, o[0], o[1]) == mapping.StateError {
			return fmt.Errorf("set option %s to %q", o[0], o[1])
		}
	}
	var msg string
	if mapping.OpenExt("", &d.db, cfg, &msg) == mapping.StateError {
		mapping.Close(&d.db)
		return errors.New(msg)
	}
	if d.settings.Opened != nil {
		d.settings.Opened(d.db)
	}
	if d.settings.Guard != nil {
		d.settings.Guard.Work(d.db, d.settings.Threads-1)
	}
	var c mapping.Connection
	if mapping.Connect(d.db, &c) == mapping.StateError {
		d.shut()
		return errors.New("connect to query database")
	}
	err = Run(c, "SET GLOBAL parquet_metadata_cache = true") // all files are immutable
	if err == nil && d.settings.Setup != nil {
		err = d.settings.Setup(c)
	}
	mapping.Disconnect(&c)
	if err != nil {
		d.shut()
	}
	return err
}

// shut closes the database.
func (d *DB) shut() {
	if d.settings.Guard != nil {
		d.settings.Guard.Finish()
	}
	mapping.Close(&d.db)
}

// Run runs statements without results.
func Run(c mapping.Connection, sql string) error {
	var res mapping.Result
	defer mapping.DestroyResult(&res)
	if mapping.Query(c, sql, &res) == mapping.StateError {
		return fmt.Errorf("run %q: %s", sql, mapping.ResultError(&res))
	}
	return nil
}
