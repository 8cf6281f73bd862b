package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/app/sqlapp"
	"github.com/promlake/promlake/internal/base/telemetry"
)

type sqlCmd struct {
	SQL string `arg:"" optional:"" help:"One query, or - to read it from the standard input. Without it, a shell runs on the terminal."`

	URL     string   `name:"url" placeholder:"URL" help:"Server whose samples are asked. Default: local files."`
	Store   string   `name:"store" placeholder:"URL" help:"Object store whose samples are asked, without a server. Default: local files."`
	Token   string   `name:"token" placeholder:"TOKEN" secret:"" help:"Token for the server; better set by its variable, for arguments can be seen in process lists."`
	Tenant  string   `name:"tenant" placeholder:"NAME" help:"Tenant whose data is asked. Default: the token's, if it has one, otherwise anonymous."`
	Param   []string `name:"param" sep:"none" placeholder:"JSON" help:"Value of $$1, then of $$2 and so on, of a query of samples: JSON, or else a text."`
	Format  string   `name:"format" default:"csv" enum:"csv,json,arrow,parquet" help:"How the result is printed: ${enum}. The last two for samples only."`
	History string   `name:"history" default:"~/.promlake_history" placeholder:"FILE" help:"File of the shell's history; empty keeps none."`
	Memory  int64    `name:"memory-limit" type:"bytes" default:"1GiB" min:"1" help:"DuckDB's memory, for local files."`

	Log   telemetry.LogSettings `embed:""`
	Query queryapp.Settings     `embed:"" group:"Query of a store"`
}

// Run runs the query and prints its result.
func (c *sqlCmd) Run(ctx context.Context, streams flags.Streams, vs flags.Values) error {
	text := c.SQL
	switch text {
	case "":
		return c.shell(ctx, streams, vs)
	case "-":
		b, err := io.ReadAll(streams.In)
		if err != nil {
			return fmt.Errorf("read the query: %w", err)
		}
		text = string(b)
	}
	switch {
	case c.URL != "" && c.Store != "":
		return errors.New("--url and --store are two sources; give one")
	case c.URL != "" || c.Store != "":
		return c.ask(ctx, text, streams, vs)
	case len(c.Param) > 0:
		return errors.New("--param belongs to --url or --store")
	case c.Format == "arrow" || c.Format == "parquet":
		return fmt.Errorf("--format %s belongs to --url or --store", c.Format)
	}
	return sqlapp.Run(ctx, sqlapp.Settings{Format: c.Format, MemoryLimitBytes: c.Memory}, text, streams.Out)
}

// ask asks the SQL endpoint of a server, or of a query stage in this process.
func (c *sqlCmd) ask(ctx context.Context, text string, streams flags.Streams, vs flags.Values) (err error) {
	s := source{url: c.URL, store: c.Store, log: c.Log, query: c.Query}
	transport, done, err := s.transport(ctx, streams, vs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	resp, err := c.post(ctx, &http.Client{Transport: identified{c.Tenant, c.Token, transport}}, s.address(), text, c.Format)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(streams.Out, resp.Body); err != nil {
		return fmt.Errorf("read the result, which is incomplete: %w", err)
	}
	return nil
}

// post sends a statement to the endpoint and returns the answer of success, whose body the caller
// closes.
func (c *sqlCmd) post(ctx context.Context, client *http.Client, address, text, format string) (*http.Response, error) {
	form := url.Values{"query": {text}, "format": {format}}
	if len(c.Param) > 0 {
		form.Set("params", params(c.Param))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/v1/sql", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask for SQL: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
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

// refusal is the error of an answer that is none of success.
func refusal(resp *http.Response) error {
	const most = 64 << 10
	b, err := io.ReadAll(io.LimitReader(resp.Body, most))
	var e struct {
		Kind  string `json:"errorType"`
		Error string `json:"error"`
	}
	if err != nil || json.Unmarshal(b, &e) != nil || e.Error == "" {
		return fmt.Errorf("the server answers %s: %s", resp.Status, strings.TrimSpace(string(b)))
	}
	return fmt.Errorf("%s: %s", e.Kind, e.Error)
}
