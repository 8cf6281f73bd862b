package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/promlake/promlake/internal/app/exportapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/base/telemetry"
)

type exportCmd struct {
	Format string   `name:"format" default:"openmetrics" enum:"openmetrics,tsdb,jsonl,parquet" help:"What is written: ${enum}. tsdb are blocks for the data directory of a Prometheus, jsonl the lines of VictoriaMetrics' export, parquet one file with a row a sample."`
	Output string   `name:"output" placeholder:"PATH" help:"File, or directory of blocks, that is made. Default: the standard output, of formats that are one file."`
	Match  []string `name:"match" sep:"none" placeholder:"SELECTOR" help:"Series to export. Repeatable. Default: all."`
	Start  string   `name:"start" placeholder:"T" required:"" help:"First time: RFC 3339, seconds since 1970, or now-1h."`
	End    string   `name:"end" placeholder:"T" help:"Last time. Default: now."`

	Store   string        `name:"store" default:"file://./data" help:"Object store to read; no server is needed."`
	URL     string        `name:"url" placeholder:"URL" help:"Server to read instead of a store: Promlake, or for all formats but jsonl any that has Prometheus' remote read."`
	Token   string        `name:"token" placeholder:"TOKEN" secret:"" help:"Token for the server; better set by its variable, for arguments can be seen in process lists."`
	Tenant  string        `name:"tenant" placeholder:"NAME" help:"Tenant whose samples are exported. Default: the token's, if it has one, otherwise anonymous."`
	Timeout time.Duration `name:"timeout" default:"10m" above:"0" help:"Longest time of one request, which reads two hours."`

	Log   telemetry.LogSettings `embed:""`
	Query queryapp.Settings     `embed:"" group:"Query of a store"`
}

// Run exports and prints to the error output what was written.
func (c *exportCmd) Run(ctx context.Context, streams flags.Streams, vs flags.Values) (err error) {
	begin := time.Now()
	set := exportapp.Settings{Match: c.Match, Timeout: c.Timeout}
	if set.Start, set.End, err = parseRange(c.Start, c.End, begin); err != nil {
		return err
	}
	if c.Format == "tsdb" && c.Output == "" {
		return errors.New("export: --format tsdb writes a directory: name it with --output")
	}
	from := source{c.URL, c.Store, c.Tenant, c.Token, c.Log, c.Query}
	client, done, err := from.client(ctx, streams, vs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if c.Format == "tsdb" {
		b, err := exportapp.NewBlocks(c.Output)
		if err != nil {
			return err
		}
		err = exportapp.Run(ctx, client, from.address(), set, b)
		return errors.Join(err, told(streams, b.Report, fmt.Sprintf("%d blocks", b.Written), "", begin))
	}
	out, end, err := c.output(streams)
	if err != nil {
		return err
	}
	if c.Format == "jsonl" {
		return errors.Join(c.lines(ctx, client, from.address(), set, out), end())
	}
	var sink exportapp.Sink
	var report *exportapp.Report
	what, skipped := "OpenMetrics", "native histograms and stale markers, which OpenMetrics has no place for"
	if c.Format == "parquet" {
		p, err := exportapp.NewParquet(out)
		if err != nil {
			return errors.Join(err, end())
		}
		sink, report, what = p, &p.Report, "Parquet"
		skipped = "stale markers"
	} else {
		o := exportapp.NewOpenMetrics(out)
		sink, report = o, &o.Report
	}
	if err = exportapp.Run(ctx, client, from.address(), set, sink); err == nil {
		err = sink.Close()
	}
	return errors.Join(err, end(), told(streams, *report, what, skipped, begin))
}

// output opens the file that is written. An existing one is kept.
func (c *exportCmd) output(streams flags.Streams) (out io.Writer, end func() error, err error) {
	if c.Output == "" {
		return streams.Out, func() error { return nil }, nil
	}
	f, err := os.OpenFile(c.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, nil, fmt.Errorf("export: make the output: %w", err)
	}
	return f, f.Close, nil
}

// lines copies the server's export in JSON lines.
func (c *exportCmd) lines(ctx context.Context, client *http.Client, address string, s exportapp.Settings, out io.Writer) error {
	match := s.Match
	if len(match) == 0 {
		match = []string{`{__name__=~".+"}`}
	}
	form := url.Values{"match[]": match, "start": {ask.Seconds(s.Start.UnixMilli())}, "end": {ask.Seconds(s.End.UnixMilli())}}
	resp, err := ask.Post(ctx, client, address+"/api/v1/export", form)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("read the export, which is incomplete: %w", err)
	}
	return nil
}

// told prints what was exported, and as what; skipped names the samples that were left out.
func told(streams flags.Streams, r exportapp.Report, what, skipped string, begin time.Time) error {
	text := fmt.Sprintf("exported %s floats and %s native histograms as %s in %s", human.Count(r.Floats), human.Count(r.Hists), what, time.Since(begin).Round(time.Millisecond))
	if r.Skipped > 0 {
		text += fmt.Sprintf("; left out %s %s", human.Count(r.Skipped), skipped)
	}
	if _, err := fmt.Fprintln(streams.Err, text); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}
