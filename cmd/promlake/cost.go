package main

import (
	"fmt"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/aws/cost"
)

type costCmd struct {
	Load cost.Load `embed:""`

	Lines bool `name:"lines" help:"Print every line of the bill with its formula."`
	JSON  bool `name:"json" help:"Print JSON for scripts."`
}

// seriesPerSender is the assumed number of series per Prometheus if the number of senders is not
// given.
const seriesPerSender = 100_000

// Run estimates and prints.
func (c *costCmd) Run(io flags.Streams) error {
	if c.Load.Senders == 0 {
		c.Load.Senders = max(1, int(min(c.Load.Series, 1e11)/seriesPerSender))
	}
	r, err := newCostReport(c.Load)
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
	if err := l.Check(); err != nil {
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
