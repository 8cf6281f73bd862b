package main

import (
	"fmt"
	"strings"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
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
	return printReport(io, c.JSON, r, func() string { return r.text(c.Lines) })
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
	measured := cost.Figures()
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

// text is the estimate for people.
func (r *costReport) text(lines bool) string {
	var b strings.Builder
	l := &r.Load
	fmt.Fprintf(&b, "%s series, a sample every %s, kept for %.0f days, %s samples a month; %.0f queries a day of %s samples.\n",
		human.Count(int64(l.Series)), l.Scrape, l.Retention.Hours()/24, human.Count(int64(r.Samples)), l.QueriesPerDay, human.Count(int64(l.SamplesPerQuery)))
	fmt.Fprintf(&b, "Mode %s through %s, %.0f samples a request, list prices of %s as of %s, without free tiers. Expect ±50 %%.\n\n",
		l.Mode, l.WriteThrough, r.SamplesPerSend, r.Region, r.Prices)
	b.WriteString(r.components())
	if lines {
		b.WriteString("\n" + r.items())
	}
	b.WriteString("\n" + r.comparison() + "\n")
	for _, s := range r.Advice.Advise {
		fmt.Fprintln(&b, s)
	}
	if len(r.Unconfirmed) > 0 {
		fmt.Fprintf(&b, "Prices that were not confirmed: %s.\n", strings.Join(r.Unconfirmed, ", "))
	}
	return b.String()
}

func (r *costReport) components() string {
	t := human.Table{Left: 1}
	t.Row("COMPONENT", "$ A MONTH", "SHARE")
	for _, c := range cost.Components {
		if d, ok := r.Components[c]; ok {
			t.Row(string(c), dollars(d), fmt.Sprintf("%.0f %%", d/r.DollarsPerMonth*100))
		}
	}
	t.Row("total", dollars(r.DollarsPerMonth), "")
	t.Row("per million samples", fmt.Sprintf("%.5f", r.PerMillion), "")
	return t.String()
}

func (r *costReport) items() string {
	t := human.Table{Left: 2}
	t.Row("COMPONENT", "ITEM", "QUANTITY", "$ A MONTH", "UNIT")
	for i := range r.Lines {
		l := &r.Lines[i]
		t.Row(string(l.Component), l.What, fmt.Sprintf("%.4g", l.Quantity), dollars(l.Dollars), l.Unit)
	}
	var b strings.Builder
	b.WriteString(t.String() + "\n")
	for i := range r.Lines {
		fmt.Fprintf(&b, "%s, %s: %s\n", r.Lines[i].Component, r.Lines[i].What, r.Lines[i].Formula)
	}
	return b.String()
}

func (r *costReport) comparison() string {
	t := human.Table{Left: 1}
	t.Row("ALTERNATIVE", "$ A MONTH", fmt.Sprintf("WITH %d A REQUEST", cost.RecommendedSend))
	for _, m := range r.Advice.Modes {
		t.Row("mode "+string(m.Mode), dollars(m.Dollars), dollars(m.Recommended))
	}
	t.Row("Amazon Managed Prometheus", dollars(r.AMPDollars), "")
	return t.String()
}

func dollars(d float64) string { return fmt.Sprintf("%.2f", d) }
