package rulesapp

import (
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/compact/bulk"
)

// Backfilled is what a backfill did, or would do.
type Backfilled struct {
	Start, End  time.Time
	Recording   int   // rules
	Alerting    int   // rules, which are not evaluated
	Windows     int   // that were left to do
	Evaluations int64 // of rules, in these
	Present     int64 // evaluations in windows that an earlier backfill has done
	Report      bulk.Report
	Note        string // of evaluations that failed; "": none did
	Took        time.Duration
	Preview     *Preview // of a dry run; else nil
}

// puts is about how many objects a block and its commit write.
const puts = 7

// Text describes the outcome.
func (b *Backfilled) Text() string {
	t := human.Table{Left: 2}
	t.Row("evaluated", human.Time(b.Start.UnixMilli())+" to "+human.Time(b.End.UnixMilli()))
	t.Row("recording rules", human.Count(int64(b.Recording)))
	if b.Alerting > 0 {
		t.Row("alerting rules left out", human.Count(int64(b.Alerting)))
	}
	if b.Present > 0 {
		t.Row("evaluations done before", human.Count(b.Present))
	}
	t.Row("evaluations", fmt.Sprintf("%s in %d windows", human.Count(b.Evaluations), b.Windows))
	if b.Preview != nil {
		b.Preview.rows(&t)
		return t.String()
	}
	if b.Note != "" {
		t.Row("failures", b.Note)
	}
	t.Row("blocks written", human.Count(b.Report.Blocks))
	if b.Report.Present > 0 {
		t.Row("blocks that were there", human.Count(b.Report.Present))
	}
	t.Row("samples written", human.Count(b.Report.Samples))
	t.Row("bytes written", human.Bytes(b.Report.Bytes))
	t.Row("time", b.Took.Round(time.Millisecond).String())
	t.Row("speed", human.PerSecond(b.Evaluations, b.Took)+" evaluations")
	return t.String()
}

// rows adds what a dry run found out.
func (p *Preview) rows(t *human.Table) {
	t.Row("to write: blocks", human.Count(p.Blocks))
	t.Row("to write: samples", human.Count(p.LeastSamples)+" to "+human.Count(p.MostSamples)+", by evaluations at some times")
	t.Row("bytes in the store", human.Bytes(p.LeastBytes)+" to "+human.Bytes(p.MostBytes))
	importapp.PriceRows(t, p.MostBytes, p.Blocks*puts)
}
