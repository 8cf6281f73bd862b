package rulesapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/internal/store/objstore/probe"
)

// Backfill asks for the results of recording rules over a time that is past.
type Backfill struct {
	Source
	Import importapp.Settings // its store is not used: the lake's is
	Start  time.Time
	End    time.Time // at most the store's time
	// Attempt distinguishes backfills of the same rules and times. What a lower one has done is
	// done again, and of two results, that of the higher one counts.
	Attempt int
}

// backfill is one call of Lake.Backfill.
type backfill struct {
	Backfill
	lake   *Lake
	set    bulk.Settings
	rules  *ruleeval.Rules
	e      *ruleeval.Evaluator
	ctx    context.Context // reads the tenant
	whole  whole
	inputs []bulk.Input
	evals  map[string]int64 // of each input
	done   atomic.Int64
	total  int64
}

// Backfill writes the results of the recording rules as blocks, as if the rules had been evaluated
// live from Start to End. It may end or be killed at any time and be repeated. progress is told how
// many evaluations are done, of how many; it may be nil. The outcome is valid with an error of the
// import, too.
func (l *Lake) Backfill(ctx context.Context, b Backfill, now func() time.Time, progress func(done, total int64)) (*Backfilled, error) {
	begin := now()
	f := &backfill{Backfill: b, lake: l, evals: map[string]int64{}}
	if err := f.prepare(ctx, begin, progress); err != nil {
		return nil, err
	}
	out := &Backfilled{Start: f.Start, End: f.End, Recording: len(f.rules.Recording()), Alerting: len(f.rules.Alerting(""))}
	if !f.Import.DryRun {
		if err := probe.Check(ctx, l.Store); err != nil {
			return nil, err
		}
	}
	plan, err := importapp.Plan(ctx, l.Store, f.Import.Tenant, f.set, f.inputs)
	if err != nil {
		return nil, err
	}
	left := map[int]bool{}
	for _, u := range plan.Units {
		for _, i := range u.Inputs {
			left[i] = true
		}
	}
	for i := range plan.Inputs {
		n := f.evals[plan.Inputs[i].ID]
		if left[i] {
			f.total += n
			out.Windows++
		} else {
			out.Present += n
		}
	}
	out.Evaluations = f.total
	if f.Import.DryRun {
		out.Preview, err = f.preview(&plan)
		return out, err
	}
	out.Report, err = bulk.Run(f.ctx, f.set, l.Store, f.Import.Tenant, plan, nil)
	out.Took, out.Note = now().Sub(begin), noted(f.e)
	if err != nil {
		return out, fmt.Errorf("%w\nthe backfill is not complete: the same command continues it", err)
	}
	return out, nil
}

// prepare reads the rules and divides the time into inputs, which are windows of the level.
func (f *backfill) prepare(ctx context.Context, now time.Time, progress func(done, total int64)) (err error) {
	if f.set, err = f.Import.Bulk(); err != nil {
		return err
	}
	f.Import.LimitProcess()
	if f.ctx, err = reader(ctx, f.Import.Tenant, now); err != nil {
		return err
	}
	at, err := f.lake.Store.Now(ctx)
	if err != nil {
		return err
	}
	if f.End.After(at) {
		f.End = at
	}
	if err := check(f.Start, f.End); err != nil {
		return err
	}
	if f.rules, err = f.lake.load(f.Source); err != nil {
		return err
	}
	if len(f.rules.Recording()) == 0 {
		return fmt.Errorf("backfill: %s has no recording rules", strings.Join(f.Files, ", "))
	}
	o := f.options()
	o.Done = func(n int64) {
		if done := f.done.Add(n); progress != nil {
			progress(done, max(done, f.total))
		}
	}
	if f.e, err = ruleeval.New(o); err != nil {
		return err
	}
	first, last := f.e.Bounds()
	if first < key.MinTime || last > key.MaxTime {
		return errors.New("backfill: --start and --end: want years 0 to 9999")
	}
	for w := f.set.Level.WindowOf(first); int64(w) <= last; w = key.Window(f.set.Level.End(w)) {
		from, to := int64(w), f.set.Level.End(w)
		if n := f.e.Evaluations(from, to); n > 0 {
			in := f.input(from, to, max(from, first), min(to-1, last), n)
			f.inputs, f.evals[in.ID] = append(f.inputs, in), n
		}
	}
	return nil
}

// options are those of an evaluation of all recording rules.
func (f *backfill) options() ruleeval.Options {
	return ruleeval.Options{
		Rules: f.rules, Targets: f.rules.Recording(), Producers: f.rules.Recording(), Data: f.lake.Query, Engine: f.lake.Query.Engine(), Fatal: fatal,
		Start: f.Start, End: f.End, MemoryBytes: f.set.MemoryBytes / int64(f.set.Concurrency),
		MemoryAdvice: "raise --memory-limit, or lower --level or --concurrency",
	}
}

// input is a window as an input. Its identity is that of what the rules write in it: the rules, the
// times of their first and last evaluation, and the lookback of queries.
func (f *backfill) input(from, to, mint, maxt, evaluations int64) bulk.Input {
	h := sha256.New()
	for _, r := range f.rules.Recording() {
		fmt.Fprintln(h, r)
	}
	fmt.Fprintln(h, f.lake.Query.Settings().LookbackDelta, from, to, maxt)
	if start := f.Start.UnixMilli(); f.e.Earliest(from, to) <= start {
		fmt.Fprintln(h, start)
	}
	if f.Attempt > 1 {
		fmt.Fprintln(h, "attempt", f.Attempt)
	}
	w := &window{f: f, from: from, to: to}
	const (
		idBytes = 16
		rankMs  = 256 // inputs of different attempts have different ranks
	)
	return bulk.Input{
		ID: "rules/" + hex.EncodeToString(h.Sum(nil)[:idBytes]), Written: time.UnixMilli(to + rankMs*int64(f.Attempt)), MinT: mint, MaxT: maxt, Samples: evaluations,
		Open: func(context.Context) (bulk.Opened, error) { return w, nil },
	}
}

// Preview estimates what a backfill would write.
type Preview struct {
	Blocks                    int64
	LeastSamples, MostSamples int64 // if all evaluations give as many as the least, or the most, of those that were tried
	LeastBytes, MostBytes     int64 // of these
}

// probes is the number of windows of which a dry run evaluates a part.
const probes = 5

// preview evaluates every rule once in some windows.
func (f *backfill) preview(plan *bulk.Plan) (*Preview, error) {
	p := &Preview{Blocks: int64(len(plan.Units))}
	e, err := ruleeval.New(f.options())
	if err != nil || len(plan.Units) == 0 {
		return p, err
	}
	longest := time.Duration(0)
	for _, r := range f.rules.Recording() {
		longest = max(longest, r.Interval())
	}
	first, last := f.e.Bounds()
	least, most, found := math.Inf(1), 0.0, int64(0) // samples of an evaluation; of a probe
	for i := range probes {
		from := first + (last-first)*int64(2*i+1)/(2*probes)
		to := min(from+longest.Milliseconds(), last+1)
		m, err := e.Window(f.ctx, nil, from, to)
		if err != nil {
			return nil, err
		}
		if n := e.Evaluations(from, to); n > 0 {
			each := float64(m.Count(from, to)) / float64(n)
			least, most, found = min(least, each), max(most, each), max(found, m.Count(from, to))
		}
	}
	p.LeastSamples, p.MostSamples = int64(min(least, most)*float64(f.total)), int64(math.Ceil(most*float64(f.total)))
	p.LeastBytes, p.MostBytes = importapp.Bytes(p.LeastSamples, p.MostSamples, found*p.Blocks, p.Blocks)
	return p, nil
}

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
	t.Some("alerting rules left out", int64(b.Alerting))
	t.Some("evaluations done before", b.Present)
	t.Row("evaluations", fmt.Sprintf("%s in %d windows", human.Count(b.Evaluations), b.Windows))
	if b.Preview != nil {
		b.Preview.rows(&t)
		return t.String()
	}
	if b.Note != "" {
		t.Row("failures", b.Note)
	}
	t.Row("blocks written", human.Count(b.Report.Blocks))
	t.Some("blocks that were there", b.Report.Present)
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

// window is what the rules write in a time, evaluated when it is read first. It implements
// bulk.Opened.
type window struct {
	f        *backfill
	from, to int64 // ms

	once sync.Once
	err  error
	has  []*ruleeval.Memory
}

// whole is what must be evaluated from the beginning, evaluated when it is needed first.
type whole struct {
	once sync.Once
	m    *ruleeval.Memory
	err  error
}

// Scan implements bulk.Opened.
func (w *window) Scan(ctx context.Context, from, to int64, keep bulk.Keep) (bulk.Rows, error) {
	w.once.Do(func() { // if ctx ends, all that would read the window ends
		whole := &w.f.whole
		whole.once.Do(func() { whole.m, whole.err = w.f.e.Whole(ctx) })
		var own *ruleeval.Memory
		if w.err = whole.err; w.err == nil {
			own, w.err = w.f.e.Window(ctx, whole.m, w.from, w.to)
		}
		w.has = []*ruleeval.Memory{own}
		if whole.m != nil {
			w.has = append(w.has, whole.m)
		}
	})
	if w.err != nil {
		return nil, w.err
	}
	out := &rows{}
	var lset []series.Label
	for _, m := range w.has {
		err := m.Each(max(from, w.from), min(to, w.to), func(ls labels.Labels, samples []ruleeval.Sample) error {
			lset = lset[:0]
			ls.Range(func(l labels.Label) { lset = append(lset, series.Label{Name: l.Name, Value: l.Value}) })
			ref, ok, err := keep(lset, rowBytes)
			if ok {
				out.all = append(out.all, row{ref, samples})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Close implements bulk.Opened.
func (w *window) Close() error {
	w.has = nil
	return nil
}

// rowBytes is the memory of a row, about.
const rowBytes = 64

// rows implements bulk.Rows.
type rows struct{ all []row }

type row struct {
	ref     series.Ref
	samples []ruleeval.Sample
}

// Len implements bulk.Rows.
func (r *rows) Len() int { return len(r.all) }

// Ref implements bulk.Rows.
func (r *rows) Ref(i int) series.Ref { return r.all[i].ref }

// Read implements bulk.Rows.
func (r *rows) Read(i int, floats *live.Run, hists []segment.Hist) ([]segment.Hist, error) {
	for _, s := range r.all[i].samples {
		if s.H != nil {
			hists = append(hists, segment.Hist{T: s.T, FH: s.H})
			continue
		}
		floats.TS, floats.V = append(floats.TS, s.T), append(floats.V, s.V)
	}
	return hists, nil
}
