package main

import (
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/cost"
)

type costCmd struct {
	Series    float64       `name:"series" help:"Series that are written at a time."`
	Scrape    time.Duration `name:"scrape" help:"Time between two samples of a series."`
	Retention time.Duration `name:"retention" type:"period" help:"How long samples are kept."`
	Churn     float64       `name:"churn" help:"Share of the series that others replace every day."`
	Tenants   int           `name:"tenants" help:"Tenants that share the series."`

	Senders        int           `name:"senders" help:"Prometheus servers that send. 0: one for every 100,000 series."`
	SamplesPerSend float64       `name:"samples-per-send" help:"The senders' max_samples_per_send."`
	SendDeadline   time.Duration `name:"send-deadline" help:"The senders' batch_send_deadline."`

	Mode         string        `name:"mode" enum:"buffered,direct,grouped" required:"" help:"Mode of ingestion: ${enum}."`
	WriteThrough string        `name:"write-through" enum:"http-api,function-url" required:"" help:"What senders write to: ${enum}. The second takes no money for requests."`
	Arch         string        `name:"arch" enum:"arm64,x86_64" required:"" help:"Processors of the functions: ${enum}."`
	Region       string        `name:"region" help:"Region whose prices count."`
	Batch        int           `name:"batch" help:"Messages that the flush function gets at once, at most."`
	Window       time.Duration `name:"batch-window" help:"Time for which messages are collected for it."`
	SystemLogs   string        `name:"system-log-level" enum:"warn,info" required:"" help:"Lambda's own log lines: ${enum}. The second has two of each invocation."`

	QueriesPerDay   float64 `name:"queries-per-day" help:"PromQL queries a day."`
	SamplesPerQuery float64 `name:"samples-per-query" help:"Samples that a query reads."`
	BytesPerAnswer  float64 `name:"bytes-per-answer" help:"Bytes of an answer that leave AWS."`

	Memory costMemory `embed:"" prefix:"memory."`

	Lines bool `name:"lines" help:"Print every line of the bill with its formula."`
	JSON  bool `name:"json" help:"Print JSON for scripts."`
}

// costMemory is the functions' memory, MiB.
type costMemory struct {
	Ingest  int `name:"ingest" help:"Memory of the ingest function, MiB."`
	Flush   int `name:"flush" help:"Memory of the flush function, MiB."`
	Plan    int `name:"plan" help:"Memory of the plan function, MiB."`
	Compact int `name:"compact" help:"Memory of the compact function, MiB."`
	Query   int `name:"query" help:"Memory of the query function, MiB."`
}

func newCostCmd() costCmd {
	l := cost.DefaultLoad()
	return costCmd{
		Series: l.Series, Scrape: l.Scrape, Retention: l.Retention, Churn: l.Churn, Tenants: l.Tenants,
		SamplesPerSend: l.SamplesPerSend, SendDeadline: l.SendDeadline,
		Mode: string(l.Mode), WriteThrough: string(l.WriteThrough), Arch: l.Arch, Region: l.Region,
		Batch: l.Queue.Messages, Window: l.Queue.Window, SystemLogs: l.SystemLogs,
		QueriesPerDay: l.QueriesPerDay, SamplesPerQuery: l.SamplesPerQuery, BytesPerAnswer: l.BytesPerAnswer,
		Memory: costMemory(l.Memory),
	}
}

// seriesPerSender is the assumed number of series per Prometheus if the number of senders is not
// given.
const seriesPerSender = 100_000

func (c *costCmd) load() cost.Load {
	senders := c.Senders
	if senders == 0 {
		senders = max(1, int(min(c.Series, 1e11)/seriesPerSender))
	}
	return cost.Load{
		Series: c.Series, Scrape: c.Scrape, Retention: c.Retention, Churn: c.Churn, Tenants: c.Tenants,
		Senders: senders, SamplesPerSend: c.SamplesPerSend, SendDeadline: c.SendDeadline,
		Mode: cost.Mode(c.Mode), WriteThrough: cost.Entry(c.WriteThrough), Arch: c.Arch, Region: c.Region,
		Queue: cost.QueueBatch{Messages: c.Batch, Window: c.Window}, SystemLogs: c.SystemLogs,
		QueriesPerDay: c.QueriesPerDay, SamplesPerQuery: c.SamplesPerQuery, BytesPerAnswer: c.BytesPerAnswer,
		Memory: cost.Memory(c.Memory),
	}
}

// Run estimates and prints.
func (c *costCmd) Run(io flags.Streams) error {
	r, err := newCostReport(c.load())
	if err != nil {
		return err
	}
	if err := printReport(io.Out, c.JSON, r, func() string { return r.text(c.Lines) }); err != nil {
		return fmt.Errorf("print estimate: %w", err)
	}
	return nil
}

// costReport is what promlake cost prints. Its JSON is for scripts: fields stay.
type costReport struct {
	Load            cost.Load                  `json:"-"`
	Region          string                     `json:"region"`
	Prices          string                     `json:"prices_checked"` // date
	Unconfirmed     []string                   `json:"prices_unconfirmed"`
	Samples         float64                    `json:"samples_per_month"`
	SamplesPerSend  float64                    `json:"samples_per_send"` // that requests have in fact
	DollarsPerMonth float64                    `json:"dollars_per_month"`
	PerMillion      float64                    `json:"dollars_per_million_samples"`
	Components      map[cost.Component]float64 `json:"components"` // dollars a month
	Lines           []cost.Line                `json:"lines"`
	AMP             *cost.Bill                 `json:"amazon_managed_prometheus"`
	AMPDollars      float64                    `json:"amazon_managed_prometheus_dollars_per_month"`
	Advice          *cost.Advice               `json:"advice"`
}

func newCostReport(l cost.Load) (*costReport, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	prices, err := cost.ReadPrices(l.Region)
	if err != nil {
		return nil, err
	}
	measured, err := cost.ReadMeasured()
	if err != nil {
		return nil, err
	}
	bill, err := cost.Estimate(l, prices, measured)
	if err != nil {
		return nil, err
	}
	r := &costReport{
		Load: l, Region: l.Region, Prices: prices.Checked, Unconfirmed: prices.Unconfirmed(), Samples: bill.Samples, SamplesPerSend: l.Sent(),
		DollarsPerMonth: bill.Dollars(), PerMillion: bill.PerMillion(), Components: map[cost.Component]float64{}, Lines: bill.Lines,
		AMP: cost.AMP(l, prices, measured),
	}
	r.AMPDollars = r.AMP.Dollars()
	for _, c := range cost.Components {
		if d := bill.Of(c); d > 0 {
			r.Components[c] = d
		}
	}
	r.Advice, err = cost.Advise(l, prices, measured)
	return r, err
}
