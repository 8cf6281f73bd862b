package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/wire"
)

var errFailed = errors.New("not every request succeeded")

// Flags of the command that loads a running server.
type Flags struct {
	URL         string            `required:"" help:"URL of the endpoint, such as http://127.0.0.1:9009/api/v1/write, or tcp://127.0.0.1:2003 for graphite."`
	PID         int               `name:"pid" help:"Process of the server, to report its CPU time and memory (0 = none)."`
	Hosts       int               `default:"200" help:"Number of virtual hosts (with the default capture, 507 series each)."`
	Duration    time.Duration     `default:"60s" help:"Duration of the load."`
	Rounds      int               `help:"End after this number of scrapes of every host (0 = only --duration ends the load)."`
	Protocol    string            `default:"1" enum:"1,2,influx,text,otlp,datadog,opentsdb,jsonlines,csv,graphite" help:"Version of remote_write, 1 or 2; or another protocol (${enum})."`
	Batch       int               `default:"2000" help:"Samples in a request."`
	Concurrency int               `default:"4" help:"Number of senders; each has its own share of the series."`
	Rate        float64           `help:"Samples per second over all senders (0 = as fast as the server answers)."`
	Interval    time.Duration     `default:"15s" help:"Time between two scrapes of a host, in sample time."`
	Churn       float64           `help:"Share of the hosts that new ones replace in every 10 minutes of sample time, such as 0.01."`
	Start       time.Time         `help:"Sample time of the first scrape, RFC 3339 (default: such that the run ends now, or some hours ago without --rate)."`
	Settle      time.Duration     `help:"Time after the last answer during which the server's CPU time still counts."`
	Timeout     time.Duration     `default:"30s" help:"Maximal wait for an answer."`
	Header      map[string]string `help:"Additional request header, NAME=VALUE (repeatable)."`
	Capture     string            `type:"existingfile" help:"Replay this capture (plain, .gz, .zst or .xz) instead of the golden one."`
	JSON        bool              `name:"json" help:"Print the report as JSON."`
}

// Run sends the load and prints the report.
func (f *Flags) Run(ctx context.Context) error {
	c, err := capture.Open(f.Capture)
	if err != nil {
		return err
	}
	if c.Dropped > 0 {
		fmt.Fprintf(os.Stderr, "bench: %d series are left out because some scrape lacks them\n", c.Dropped)
	}
	hosts, err := fleet.New(c, f.Hosts)
	if err != nil {
		return err
	}
	protocol, err := wire.Parse(f.Protocol)
	if err != nil {
		return err
	}
	report, err := Run(ctx, hosts, Settings{
		URL: f.URL, PID: f.PID, Protocol: protocol, Batch: f.Batch, Concurrency: f.Concurrency, Rate: f.Rate,
		Duration: f.Duration, Rounds: f.Rounds, Interval: f.Interval, Churn: f.Churn, Start: f.Start, Settle: f.Settle, Timeout: f.Timeout, Headers: f.Header,
	}, time.Now)
	if report.SamplesSent == 0 && err != nil {
		return err // nothing to report
	}
	write := report.WriteText
	if f.JSON {
		write = report.WriteJSON
	}
	if report.RequestsFailed > 0 || report.Samples == 0 {
		err = errors.Join(err, errFailed)
	}
	return errors.Join(write(os.Stdout), err)
}
