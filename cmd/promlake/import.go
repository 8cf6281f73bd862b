package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/importapp"
)

type importCmd struct {
	TSDB       importTSDBCmd       `cmd:"" name:"tsdb" help:"Import the blocks of a Prometheus, of Thanos or of Mimir. May be killed and repeated."`
	Prometheus importPrometheusCmd `cmd:"" name:"prometheus" help:"Import what a running server has, through Prometheus' remote read API. May be killed and repeated."`
}

type importTSDBCmd struct {
	importapp.TSDB

	Import importapp.Settings `embed:""`
}

// Run imports and prints what that did, also when it failed midway.
func (c *importTSDBCmd) Run(ctx context.Context, io flags.Streams) error {
	return bring(ctx, io, c.Import, c.TSDB)
}

type importPrometheusCmd struct {
	URL   string   `name:"url" required:"" placeholder:"URL" help:"Server to read: a Prometheus, or another one with its remote read API. /api/v1/read is added."`
	Match []string `name:"match" sep:"none" placeholder:"SELECTOR" help:"Series to import. Repeatable. Default: all."`
	Start string   `name:"start" placeholder:"T" required:"" help:"First time: RFC 3339, seconds since 1970, or now-1h."`
	End   string   `name:"end" placeholder:"T" help:"Last time, at most now. Default: now."`

	HTTPConfig string        `name:"http.config.file" placeholder:"FILE" help:"HTTP client configuration of Prometheus: basic_auth, authorization, oauth2, tls_config, http_headers, proxy_url."`
	Token      string        `name:"token" placeholder:"TOKEN" secret:"" help:"Bearer token for the server; better set by its variable, for arguments can be seen in process lists."`
	Header     []string      `name:"header" sep:"none" placeholder:"NAME:VALUE" help:"Header of all requests, such as X-Scope-OrgID:team-a. Repeatable."`
	Timeout    time.Duration `name:"timeout" default:"10m" above:"0" help:"Longest time of one request, which reads two hours."`
	Identity   string        `name:"identity" placeholder:"NAME" help:"What identifies the samples, so that they are not imported twice. Default: --url and the tenant of --header. Set it if the address of the server changes during an import."`

	Import importapp.Settings `embed:""`
}

// Run imports and prints what that did, also when it failed midway.
func (c *importPrometheusCmd) Run(ctx context.Context, io flags.Streams) (err error) {
	r := importapp.Remote{URL: c.URL, Match: c.Match, HTTPConfig: c.HTTPConfig, Headers: c.Header, Token: c.Token, Timeout: c.Timeout, Identity: c.Identity, Now: time.Now()}
	if r.Start, r.End, err = parseRange(c.Start, c.End, r.Now); err != nil {
		return err
	}
	return bring(ctx, io, c.Import, r)
}

// bring imports from a source and prints what that did.
func bring(ctx context.Context, io flags.Streams, set importapp.Settings, src importapp.Source) error {
	p := newPace(io, "samples")
	defer p.end()
	o, err := importapp.Run(ctx, set, src, time.Now, p.see)
	p.end()
	if o == nil {
		return err
	}
	return errors.Join(err, io.Print("result", o.Text()))
}

// every is how often a pace prints a line where there is no terminal.
const every = 10 * time.Second

// pace shows how far work is, how fast it is, and how long it will take: as a bar on a
// terminal, otherwise as lines.
type pace struct {
	io   flags.Streams
	bar  *bar
	unit string // of the work

	mu           sync.Mutex
	begin, drawn time.Time
}

func newPace(io flags.Streams, unit string) *pace {
	now := time.Now()
	return &pace{io: io, bar: newBar(io.Err), unit: unit, begin: now, drawn: now}
}

// see is told that done of about total units are done.
func (p *pace) see(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, wait := time.Now(), every
	if p.bar != nil {
		wait = redraw
	}
	if now.Sub(p.drawn) < wait {
		return
	}
	p.drawn = now
	text := paceText(p.unit, done, total, now.Sub(p.begin))
	if p.bar != nil {
		p.bar.show(done, total, text)
		return
	}
	_, _ = fmt.Fprintln(p.io.Err, text) // nobody needs the progress of work if its error output is gone
}

// paceText describes the progress after some time.
func paceText(unit string, done, total int64, took time.Duration) string {
	text := fmt.Sprintf("%s of about %s %s, %s", human.Count(done), human.Count(total), unit, human.PerSecond(done, took))
	if done > 0 && total > done {
		left := time.Duration(float64(took) * float64(total-done) / float64(done))
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}

// end removes the bar.
func (p *pace) end() {
	if p.bar != nil {
		p.bar.show(0, 0, "")
	}
}
