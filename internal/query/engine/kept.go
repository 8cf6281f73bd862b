package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
)

// The least and the most length (ms) of the windows of whose steps answers are kept. The first is
// that of the largest blocks, which no compaction replaces. Large windows save requests.
const (
	leastKept = 24 * int64(time.Hour/time.Millisecond)
	mostKept  = 16 * leastKept
)

// build is part of the keys of kept answers: another program may answer differently, and another
// processor rounds differently.
var build = telemetry.ReadBuild().String() + " " + runtime.GOARCH

// keeping describes the slices of a range query whose answers may be kept, and which of them are.
type keeping struct {
	grid plan.Grid
	unit int64 // ms: the length of the least windows of slices
	most int64 // ms: of the largest ones

	slices  []divide.Slice   // in windows whose objects are settled
	keys    []key.Answer     // of the slices
	answers []*divide.Answer // of the slices; nil: not kept
	asked   bool             // whether they are kept
}

// hits is the number of slices whose answers are kept.
func (k *keeping) hits() (n int) {
	for _, a := range k.answers {
		if a != nil {
			n++
		}
	}
	return n
}

// piece returns what a kept answer to the i-th slice must match.
func (k *keeping) piece(i int) *divide.Piece {
	s := k.slices[i]
	return &divide.Piece{Key: k.keys[i].String(), Step: k.grid.Step, From: s.From, Upto: s.Upto}
}

// keepable returns nil if no answer of the query may be kept: it reads little, or a short time, or
// other data than the present. It costs small queries nothing.
func (q *Query) keepable(ctx context.Context, p *exec.Attempt) *keeping {
	s, r, step := &q.engine.settings, request.From(ctx), q.asked.Interval.Milliseconds()
	start, end := timestamp.FromTime(q.asked.Start), timestamp.FromTime(q.asked.End)
	k := &keeping{grid: plan.Grid{Start: start, Step: step}, unit: leastKept, most: mostKept}
	if w := s.KeptWindow.Milliseconds(); w > 0 {
		k.unit, k.most = w, w*mostKept/leastKept
	}
	for k.unit < 2*step && k.unit < k.most { // a slice has two steps at least
		k.unit *= 2
	}
	switch {
	case q.engine.kept == nil, q.piece != nil, q.entire, step <= 0, end-start < 2*k.unit, k.unit < 2*step, samplesOf(p.Snap) <= s.KeptSamples,
		r.NoCache, !r.AsOf.IsZero(), r.Snapshot != nil, r.Quote != nil:
		return nil
	}
	k.grid.N = int((end-start)/step) + 1
	return k
}

// cut finds the slices whose answers may be kept, on the snapshot of an attempt. It reports whether
// there are any.
func (q *Query) cut(ctx context.Context, p *exec.Attempt, k *keeping) bool {
	step := k.grid.Step
	phase := (k.grid.Start%step + step) % step
	options := divide.OptionsOf(q.engine.settings.UseStartTimestamps, p.Series.Rule(ctx))
	question := key.Answer{Tenant: tenant.From(ctx), Question: hashOf(divide.Version, build, tenant.From(ctx), plan.Resolved(q.asked.Expr).String(), step, phase, q.asked.LookbackDelta, options)}
	mint, maxt := promql.FindMinMaxTime(&q.asked)
	before, behind := k.grid.Start-mint, maxt-timestamp.FromTime(q.asked.End)
	pinned := hasTimes(q.asked.Expr)
	objects := func(s divide.Slice) divide.Snapshot {
		if pinned {
			return narrowed(p, mint, maxt)
		}
		return narrowed(p, s.From-before, s.Upto+behind)
	}
	for _, s := range divide.Windows(k.grid, k.unit, k.most, func(s divide.Slice) bool { return settled(objects(s)) }) {
		of := objects(s)
		if !settled(of) { // an object between the windows
			continue
		}
		name := question
		name.Slice = hashOf(s, of)
		k.slices, k.keys = append(k.slices, s), append(k.keys, name)
	}
	return len(k.slices) > 0
}

// hashOf names values by a hash of them.
func hashOf(values ...any) string {
	b, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("encode what an answer depends on: %v", err)) // all of it has a form in JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// settled reports whether no compaction will replace the objects of a snapshot, of which there are
// some.
func settled(s divide.Snapshot) bool {
	for i := range s.Blocks {
		if s.Blocks[i].Level != key.L24h {
			return false
		}
	}
	return len(s.Segments) == 0 && len(s.Blocks) > 0
}

// hasTimes reports whether an expression has the modifier @: what it reads does not move with its
// steps.
func hasTimes(expr parser.Expr) (has bool) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch e := n.(type) {
		case *parser.VectorSelector:
			has = has || e.Timestamp != nil
		case *parser.SubqueryExpr:
			has = has || e.Timestamp != nil
		}
		return nil
	})
	return has
}

// bytesOf returns the size of the objects of a snapshot.
func bytesOf(s *catalog.Snapshot) (n int64) {
	for i := range s.Blocks {
		n += s.Blocks[i].Bytes
	}
	for i := range s.Segments {
		n += s.Segments[i].Size
	}
	return n
}

// samplesOf returns the number of samples in the blocks of a snapshot.
func samplesOf(s *catalog.Snapshot) (n int64) {
	for i := range s.Blocks {
		n += s.Blocks[i].Samples
	}
	return n
}

// Kept describes how many slices of a planned query are kept, "" if none may be.
func (q *Query) Kept(ctx context.Context, p *exec.Attempt) string {
	k := q.keepable(ctx, p)
	if k == nil || !q.large(p) || !q.cut(ctx, p, k) {
		return ""
	}
	n := 0
	for _, size := range q.engine.kept.Find(ctx, k.keys) {
		if size > 0 {
			n++
		}
	}
	return fmt.Sprintf("%d of %d slices", n, len(k.slices))
}

// partlyKept is fromKept for a planned query, if that is so large that its answer is to be kept.
func (q *Query) partlyKept(ctx context.Context, p *exec.Attempt) (*divide.Answer, error) {
	k := q.keeping
	switch {
	case k == nil:
	case !q.large(p) || !k.asked && !q.cut(ctx, p, k):
		q.keeping = nil
		q.expr.large.Store(false)
	case k.asked:
	default:
		q.expr.large.Store(true)
		return q.fromKept(ctx, p, k)
	}
	return nil, nil
}

// large reports whether a planned query reads so much that its answer is to be kept.
func (q *Query) large(p *exec.Attempt) bool {
	return p.Stored() > q.engine.settings.KeptSamples && q.undividable(p) == ""
}

// fromKept returns the answer of the query if slices of it are kept: the steps between them are
// evaluated. nil: the query is to be evaluated as if none were.
func (q *Query) fromKept(ctx context.Context, p *exec.Attempt, k *keeping) (*divide.Answer, error) {
	x := q.engine
	k.asked, k.answers = true, make([]*divide.Answer, len(k.slices))
	sizes := x.kept.Find(ctx, k.keys)
	err := p.Files.Each(ctx, len(k.slices), func(ctx context.Context, i int) error {
		if sizes[i] > 0 {
			k.answers[i] = x.kept.Read(ctx, k.keys[i], sizes[i], k.piece(i))
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	hits := k.hits()
	x.kept.Counted(hits, len(k.slices)-hits)
	if hits == 0 {
		return nil, nil
	}
	var answers []*divide.Answer
	next := k.grid.Start
	between := func(upto int64) error { // the steps from next to upto
		if next > upto {
			return nil
		}
		some, err := q.run(ctx, p, divide.Slice{From: next, Upto: upto})
		answers = append(answers, some...)
		return err
	}
	for i, a := range k.answers {
		if a == nil {
			continue
		}
		if err = between(k.slices[i].From - k.grid.Step); err != nil {
			break
		}
		if q.stats.Samples.StepTrackingEnabled() { // nothing was read at its steps
			n := (k.slices[i].Upto-k.slices[i].From)/k.grid.Step + 1
			a.Stats.SamplesPerStep, a.Stats.SamplesReadStep = make([]int64, n), make([]int64, n)
		}
		answers, next = append(answers, a), k.slices[i].Upto+k.grid.Step
	}
	if err == nil {
		err = between(k.grid.End())
	}
	out, err := q.join(ctx, answers, err)
	if out != nil {
		request.From(ctx).Count(request.Totals{KeptSlices: int64(hits)})
	}
	return out, err
}

// run evaluates consecutive steps of the query as a query of them would be: over workers, if they
// are many.
func (q *Query) run(ctx context.Context, p *exec.Attempt, steps divide.Slice) ([]*divide.Answer, error) {
	x, s, step := q.engine, &q.engine.settings, q.asked.Interval.Milliseconds()
	asked := steps
	if steps.From == steps.Upto { // a piece has two steps at least
		if asked.From -= step; asked.From < timestamp.FromTime(q.asked.Start) {
			asked.From, asked.Upto = steps.From, steps.Upto+step
		}
	}
	slices, workers := []divide.Slice{asked}, []string(nil)
	share := float64(asked.Upto-asked.From) / float64(q.asked.End.Sub(q.asked.Start).Milliseconds())
	if n := int64(share * float64(bytesOf(p.Snap))); x.workers != nil && n > s.DivideBytes {
		workers = x.workers.Resolve(ctx)
		grid := plan.Grid{Start: asked.From, Step: step, N: int((asked.Upto-asked.From)/step) + 1}
		slices = divide.Slices(grid, len(workers), x.workers.PerWorker, divide.Extent{Bytes: n, From: s.DivideBytes, Window: windowOf(p.Snap), Windows: s.DivideWindows})
	}
	if len(slices) < 2 {
		workers = nil
	}
	answers, err := q.pieces(ctx, p, workers, slices, request.Estimate{})
	if asked != steps {
		for _, a := range answers {
			a.Series = steps.Of(a.Series)
			if st := &a.Stats; len(st.SamplesPerStep) == 2 && len(st.SamplesReadStep) == 2 {
				i := (steps.From - asked.From) / step
				st.SamplesPerStep, st.SamplesReadStep = st.SamplesPerStep[i:i+1], st.SamplesReadStep[i:i+1]
			}
		}
	}
	return answers, err
}

// keep lets the answer of the query be kept, except for the slices that are. One with annotations
// is not: they name positions in the text, and no slice.
func (q *Query) keep(res *promql.Result) {
	k := q.keeping
	m, ok := res.Value.(promql.Matrix)
	if k == nil || !ok || res.Err != nil || len(res.Warnings) > 0 || m.TotalSamples()*request.BytesPerPoint > divide.MaxKeptBytes {
		return
	}
	var objects []divide.Object
	for i, s := range k.slices {
		if k.answers != nil && k.answers[i] != nil {
			continue
		}
		var b bytes.Buffer
		write, err := (&divide.Answer{Series: s.Of(m)}).Encode(k.piece(i))
		if err == nil {
			err = write(&b)
		}
		if err != nil {
			q.exec.Logger.Warn("encode an answer that is to be kept", "tenant", k.keys[i].Tenant, "query", q.text, "err", err)
			return
		}
		objects = append(objects, divide.Object{Key: k.keys[i], Body: b.Bytes()})
	}
	if len(objects) > 0 {
		q.engine.kept.Keep(objects)
	}
}
