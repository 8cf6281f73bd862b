package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/peterh/liner"
	"golang.org/x/term"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/app/sqlapp"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/base/telemetry"
)

type sqlCmd struct {
	SQL string `arg:"" optional:"" help:"Queries, or - to read them from the standard input. Without them and --file, they are read from a pipe; on a terminal a shell runs."`

	File    string   `name:"file" short:"f" placeholder:"FILE" help:"File with queries, separated by semicolons. They run one after another, until one fails."`
	URL     string   `name:"url" placeholder:"URL" help:"Server whose samples are asked. Default: local files."`
	Store   string   `name:"store" placeholder:"URL" help:"Object store whose samples are asked, without a server. Default: local files."`
	Token   string   `name:"token" placeholder:"TOKEN" secret:"" help:"Token for the server; better set by its variable, for arguments can be seen in process lists."`
	Tenant  string   `name:"tenant" placeholder:"NAME" help:"Tenant whose data is asked. Default: the token's, if it has one, otherwise anonymous."`
	Param   []string `name:"param" sep:"none" placeholder:"JSON" help:"Value of $$1, then of $$2 and so on, of a query of samples: JSON, or else a text."`
	Format  string   `name:"format" default:"auto" enum:"auto,table,csv,json,arrow,parquet" help:"How results are printed: ${enum}. auto is table on a terminal, else csv; a table has at most 1000 rows. arrow and parquet are for one query of samples."`
	History string   `name:"history" default:"~/.promlake_history" placeholder:"FILE" help:"File of the shell's history; empty keeps none."`
	Memory  int64    `name:"memory-limit" type:"bytes" default:"1GiB" min:"1" help:"DuckDB's memory, for local files."`

	Log   telemetry.LogSettings `embed:""`
	Query queryapp.Settings     `embed:"" group:"Query of a store"`
}

// Run runs the queries and prints their results.
func (c *sqlCmd) Run(ctx context.Context, streams flags.Streams, vs flags.Values) (err error) {
	queries, err := c.queries(streams.In)
	if err != nil {
		return err
	}
	if c.Format == "auto" {
		c.Format = "csv"
		if isTerminal(streams.Out) {
			c.Format = "table"
		}
	}
	samples := c.URL != "" || c.Store != ""
	switch binary := c.Format == "arrow" || c.Format == "parquet"; {
	case c.URL != "" && c.Store != "":
		return errors.New("--url and --store are two sources; give one")
	case queries == nil:
		return c.shell(ctx, streams, vs)
	case !samples && len(c.Param) > 0:
		return errors.New("--param belongs to --url or --store")
	case !samples && binary:
		return fmt.Errorf("--format %s belongs to --url or --store", c.Format)
	case binary && len(queries) > 1:
		return fmt.Errorf("--format %s takes one query, got %d", c.Format, len(queries))
	}
	run := func(query string) error {
		return sqlapp.Run(ctx, sqlapp.Settings{Format: c.Format, MemoryLimitBytes: c.Memory}, query, streams.Out)
	}
	if samples {
		s := source{c.URL, c.Store, c.Tenant, c.Token, c.Log, c.Query}
		client, done, failed := s.client(ctx, streams, vs)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, done()) }()
		run = func(query string) error { return c.ask(ctx, client, s.address(), query, streams.Out) }
	}
	for i, query := range queries {
		if i > 0 {
			if _, err := fmt.Fprintln(streams.Out); err != nil {
				return fmt.Errorf("print the results: %w", err)
			}
		}
		if err := run(query); err != nil {
			return err
		}
	}
	return nil
}

// queries returns the queries to run; nil means that the shell asks for them.
func (c *sqlCmd) queries(in io.Reader) ([]string, error) {
	text := c.SQL
	var err error
	switch {
	case c.SQL != "" && c.File != "":
		return nil, errors.New("queries are given as an argument and by --file; give one of them")
	case c.File != "":
		var b []byte
		b, err = os.ReadFile(c.File)
		text = string(b)
	case c.SQL == "" && isTerminal(in):
		return nil, nil
	case in != nil && (c.SQL == "" || c.SQL == "-"):
		var b []byte
		b, err = io.ReadAll(in)
		text = string(b)
	}
	if err != nil {
		return nil, fmt.Errorf("read the queries: %w", err)
	}
	queries, rest := sqlapp.Split(text)
	if rest != "" {
		queries = append(queries, rest)
	}
	if queries == nil {
		return nil, errors.New("there is no query: give one, --file or a pipe; the shell runs on a terminal only")
	}
	return queries, nil
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ask asks the SQL endpoint at address and prints the result.
func (c *sqlCmd) ask(ctx context.Context, client *http.Client, address, query string, w io.Writer) error {
	format := c.Format
	if format == "table" {
		format = "json"
	}
	resp, err := c.send(ctx, client, address, query, format)
	if err != nil {
		return err
	}
	if c.Format == "table" {
		a, err := sqlapp.NewAnswer(resp.Body)
		if err != nil {
			return err
		}
		defer a.Close()
		return sqlapp.PrintTable(w, a.Columns, a.Next)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read the result, which is incomplete: %w", err)
	}
	return nil
}

// send sends a statement to the endpoint and returns the answer of success, whose body the caller
// closes.
func (c *sqlCmd) send(ctx context.Context, client *http.Client, address, text, format string) (*http.Response, error) {
	form := url.Values{"query": {text}, "format": {format}}
	if len(c.Param) > 0 {
		form.Set("params", params(c.Param))
	}
	return ask.Post(ctx, client, address+"/api/v1/sql", form)
}

// params are the values as a JSON array.
func params(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		if out[i] = v; !json.Valid([]byte(v)) {
			text, _ := json.Marshal(v) // a text has JSON
			out[i] = string(text)
		}
	}
	return "[" + strings.Join(out, ",") + "]"
}

// shell runs an interactive shell on the terminal.
func (c *sqlCmd) shell(ctx context.Context, streams flags.Streams, vs flags.Values) (err error) {
	out, ok := streams.Out.(*os.File)
	switch {
	case !ok || !isTerminal(out):
		return errors.New("there is no query; the shell, which needs none, runs on a terminal only")
	case c.URL == "" && c.Store == "":
		return errors.New("the shell needs --url or --store: the server or the store that it asks")
	case len(c.Param) > 0:
		return errors.New("--param belongs to a query")
	}
	// Ctrl-C ends the context of the program; in the shell it cancels a statement only, and without
	// one it does nothing.
	unused := make(chan os.Signal, 1)
	signal.Notify(unused, os.Interrupt)
	defer signal.Stop(unused)
	ctx, leave := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP)
	defer leave()
	b := newBar(streams.Err)
	if b != nil {
		streams.Err = b // the log scrolls by above the bar
	}
	s := source{c.URL, c.Store, c.Tenant, c.Token, c.Log, c.Query}
	client, done, err := s.client(ctx, streams, vs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ask := func(ctx context.Context, statement string) (*sqlapp.Answer, error) {
		resp, err := c.send(ctx, client, s.address(), statement, "json")
		if err != nil {
			return nil, err
		}
		return sqlapp.NewAnswer(resp.Body)
	}
	usual, _ := liner.TerminalMode() // a terminal whose mode is not known shows no pages
	t := &terminal{State: liner.NewLiner(), history: c.History, usual: usual}
	t.editing, _ = liner.TerminalMode()
	t.SetCtrlCAborts(true)
	t.SetTabCompletionStyle(liner.TabPrints)
	names := sync.OnceValue(func() []string { return sqlapp.Names(context.Background(), ask) })
	t.SetWordCompleter(func(line string, position int) (string, []string, string) {
		return sqlapp.Complete(names(), line, position)
	})
	if below, ok := strings.CutPrefix(c.History, "~/"); ok {
		t.history = ""
		if home, err := os.UserHomeDir(); err == nil {
			t.history = filepath.Join(home, below)
		}
	}
	if f, err := os.Open(t.history); err == nil {
		_, _ = t.ReadHistory(f) // a history that cannot be read is as good as none
		_ = f.Close()
	}
	defer func() { err = errors.Join(err, t.close()) }()
	// The URL is shown without its parameters, which may hold credentials.
	asked, _, _ := strings.Cut(c.URL+c.Store, "?")
	if _, err := fmt.Fprintln(streams.Out, `SQL over `+asked+`. \? lists the commands.`); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	sh := sqlapp.Shell{Terminal: t, Ask: ask, Out: streams.Out, Cancellable: func(ctx context.Context) (context.Context, context.CancelFunc) {
		return signal.NotifyContext(ctx, os.Interrupt)
	}, Page: pager{t, out}.show}
	if b != nil {
		sh.Busy = b.busy
	}
	return sh.Run(ctx)
}

// terminal is a sqlapp.Terminal with a history in a file.
type terminal struct {
	*liner.State
	history string // "": none is kept

	usual, editing liner.ModeApplier // the modes of the terminal; nil: not known
}

// Line implements sqlapp.Terminal.
func (t *terminal) Line(prompt string) (string, error) {
	line, err := t.Prompt(prompt)
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", sqlapp.ErrAborted
	}
	return line, err
}

// Remember implements sqlapp.Terminal.
func (t *terminal) Remember(line string) { t.AppendHistory(line) }

// close gives the terminal back and writes the history, which only the user can read.
func (t *terminal) close() error {
	if err := t.State.Close(); err != nil {
		return fmt.Errorf("restore the terminal: %w", err)
	}
	if t.history == "" {
		return nil
	}
	f, err := os.OpenFile(t.history, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	_, err = t.WriteHistory(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}
