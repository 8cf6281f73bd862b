package main

import (
	"fmt"
	"strings"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/aws/cost"
)

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
