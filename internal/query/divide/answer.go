package divide

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/query/request"
)

// Answer is the answer to a piece.
type Answer struct {
	Series promql.Matrix // ascending by labels
	Notes  annotations.Annotations
	Stats  Stats
}

// Stats are what an evaluation took, as upstream's engine counts it, and what it read.
type Stats struct {
	Samples         int64          `json:"samples"`
	SamplesRead     int64          `json:"samples_read"`
	Peak            int            `json:"peak"` // samples that were held at once
	SamplesPerStep  []int64        `json:"samples_per_step,omitempty"`
	SamplesReadStep []int64        `json:"samples_read_per_step,omitempty"`
	Storage         request.Totals `json:"storage"`
}

// head precedes the rows of an answer. Its counts show a reader whether rows are missing.
type head struct {
	Version    int    `json:"version"`
	Key        string `json:"key,omitempty"` // of the object, if the answer is kept
	From       int64  `json:"from"`          // of the piece
	Upto       int64  `json:"upto"`
	Series     int    `json:"series"`
	Floats     int64  `json:"floats"`
	Histograms int64  `json:"histograms"`
	Notes      []note `json:"notes,omitempty"`
	Stats      Stats  `json:"stats"`
}

// note is an annotation. It is an error as upstream's are: its text has a position in the query
// once SetQuery has been called.
type note struct {
	Info  bool   `json:"info,omitempty"` // or it is a warning
	Text  string `json:"text"`
	Shown string `json:"shown"` // the text with the position
	shown bool
}

func (n *note) Error() string {
	if n.shown {
		return n.Shown
	}
	return n.Text
}

func (n *note) Unwrap() error {
	if n.Info {
		return annotations.PromQLInfo
	}
	return annotations.PromQLWarning
}

func (n *note) SetQuery(string)   { n.shown = true }
func (n *note) Merge(error) error { return n }

// notesOf returns annotations of a query for another process. It fails with ErrWhole if one of them
// counts the steps of the whole query.
func notesOf(all annotations.Annotations, query string) ([]note, error) {
	var out []note
	for text, err := range all {
		if errors.Is(err, annotations.HistogramQuantileForcedMonotonicityInfo) {
			return nil, fmt.Errorf("%w: %w", ErrWhole, err)
		}
		one := annotations.Annotations{text: err}
		warnings, infos := one.AsStrings(query, 0, 0)
		out = append(out, note{Info: len(infos) > 0, Text: text, Shown: append(warnings, infos...)[0]})
	}
	sort.Slice(out, func(i, k int) bool { return out[i].Text < out[k].Text })
	return out, nil
}

// MediaType is that of an answer: an Arrow IPC stream.
const MediaType = "application/vnd.apache.arrow.stream"

// headKey is where the schema of the stream has the head, as JSON.
const headKey = "promlake.piece"

// batchPoints is the number of points from which a batch of rows is written.
const batchPoints = 64 << 10

var fields = []arrow.Field{
	{Name: "labels", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String)},
	{Name: "times", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)},
	{Name: "values", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64)},
	{Name: "histogram_times", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)},
	{Name: "histograms", Type: arrow.ListOf(arrow.BinaryTypes.Binary)}, // prompb.Histogram
}

// Encode returns a function that writes the answer to a piece. It fails with ErrWhole if the
// answers of slices cannot be joined to that of the query.
func (a *Answer) Encode(p *Piece) (write func(io.Writer) error, err error) {
	notes, err := notesOf(a.Notes, p.Query)
	if err != nil {
		return nil, err
	}
	h := head{Version: Version, Key: p.Key, From: p.From, Upto: p.Upto, Series: len(a.Series), Notes: notes, Stats: a.Stats}
	for _, s := range a.Series {
		h.Floats, h.Histograms = h.Floats+int64(len(s.Floats)), h.Histograms+int64(len(s.Histograms))
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("describe an answer: %w", err)
	}
	return func(w io.Writer) error { return a.write(w, string(text)) }, nil
}

func (a *Answer) write(to io.Writer, head string) error {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli)) // as checksum.Update
	meta := arrow.NewMetadata([]string{headKey}, []string{head})
	schema := arrow.NewSchema(fields, &meta)
	out := ipc.NewWriter(io.MultiWriter(to, sum), ipc.WithSchema(schema))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	lset := b.Field(0).(*array.MapBuilder)
	names, values := lset.KeyBuilder().(*array.StringBuilder), lset.ItemBuilder().(*array.StringBuilder)
	lists := [4]*array.ListBuilder{}
	for i := range lists {
		lists[i] = b.Field(i + 1).(*array.ListBuilder)
	}
	times, floats := lists[0].ValueBuilder().(*array.Int64Builder), lists[1].ValueBuilder().(*array.Float64Builder)
	at, hists := lists[2].ValueBuilder().(*array.Int64Builder), lists[3].ValueBuilder().(*array.BinaryBuilder)
	points := 0
	for i, s := range a.Series {
		lset.Append(true)
		s.Metric.Range(func(l labels.Label) { names.Append(l.Name); values.Append(l.Value) })
		for _, l := range lists {
			l.Append(true)
		}
		times.Reserve(len(s.Floats))
		floats.Reserve(len(s.Floats))
		for _, p := range s.Floats {
			times.UnsafeAppend(p.T)
			floats.UnsafeAppend(p.F)
		}
		for _, p := range s.Histograms {
			m := prompb.FromFloatHistogram(p.T, p.H)
			raw, err := m.Marshal()
			if err != nil {
				return fmt.Errorf("encode a histogram: %w", err)
			}
			if m.Sum == 0 && math.Signbit(m.Sum) {
				raw = append(raw, negativeZero...)
			}
			at.Append(p.T)
			hists.Append(raw)
		}
		if points += len(s.Floats) + len(s.Histograms); points >= batchPoints || i == len(a.Series)-1 {
			points = 0
			batch := b.NewRecordBatch()
			err := out.Write(batch)
			batch.Release()
			if err != nil {
				return fmt.Errorf("write an answer: %w", err)
			}
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	if _, err := to.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	return nil
}

// negativeZero is the field sum of a prompb.Histogram that is -0, which its encoder takes for the
// default, 0.
const negativeZero = "\x19\x00\x00\x00\x00\x00\x00\x00\x80"

const (
	bytesPerPoint     = 16
	bytesPerSeries    = 256 // labels included, about
	bytesPerHistogram = 512 // about
	readBytes         = 256 << 10
	sumBytes          = 4
)

// Read reads the answer to a piece. It calls charge with the bytes of memory that the answer takes,
// about, before it takes them. An answer that ends early, or that has other rows than it says, is
// an error. Arrow's reader may end the process on corrupt bytes, so it gets them only after their
// checksum, which follows them, has been compared.
func Read(r io.Reader, p *Piece, charge func(bytes int64) error) (*Answer, error) {
	var body bytes.Buffer
	for n := int64(1); n > 0; {
		err := charge(readBytes)
		if err == nil {
			n, err = io.CopyN(&body, r, readBytes)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read an answer: %w", err)
		}
	}
	end := body.Len() - sumBytes
	if end < 0 || checksum.Update(0, body.Bytes()[:end]) != binary.LittleEndian.Uint32(body.Bytes()[end:]) {
		return nil, errors.New("read an answer: it ended early, or is none")
	}
	in, err := ipc.NewReader(bytes.NewReader(body.Bytes()[:end]))
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	defer in.Release()
	schema := in.Schema()
	var h head
	text, ok := schema.Metadata().GetValue(headKey)
	if !ok {
		return nil, errors.New("read an answer: it is none to a piece")
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	if h.Version != Version {
		return nil, fmt.Errorf("read an answer: version %d, this process knows %d", h.Version, Version)
	}
	if h.Key != p.Key {
		return nil, fmt.Errorf("read an answer: it is of %q", h.Key)
	}
	if h.From != p.From || h.Upto != p.Upto {
		return nil, fmt.Errorf("read an answer: it is for %s", Slice{h.From, h.Upto})
	}
	if !arrow.NewSchema(fields, nil).Equal(arrow.NewSchema(schema.Fields(), nil)) {
		return nil, fmt.Errorf("read an answer: unknown columns %s", schema)
	}
	steps := (p.Upto-p.From)/p.Step + 1
	if most := int64(h.Series) * steps; h.Series < 0 || h.Floats < 0 || h.Histograms < 0 || h.Floats > most || h.Histograms > most {
		return nil, fmt.Errorf("read an answer: %d points of %d series at %d steps", h.Floats+h.Histograms, h.Series, steps)
	}
	if err := charge(h.Floats*bytesPerPoint + h.Histograms*bytesPerHistogram + int64(h.Series)*bytesPerSeries); err != nil {
		return nil, err
	}
	a := &Answer{Stats: h.Stats}
	for i := range h.Notes {
		a.Notes.Add(&h.Notes[i])
	}
	var builder labels.ScratchBuilder
	for in.Next() {
		if err := a.rows(in.RecordBatch(), p, &builder); err != nil {
			return nil, fmt.Errorf("read an answer: %w", err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	for _, s := range a.Series {
		h.Floats, h.Histograms = h.Floats-int64(len(s.Floats)), h.Histograms-int64(len(s.Histograms))
	}
	if len(a.Series) != h.Series || h.Floats != 0 || h.Histograms != 0 {
		return nil, errors.New("read an answer: it ended early")
	}
	return a, nil
}

// rows adds the rows of a batch.
func (a *Answer) rows(b arrow.RecordBatch, p *Piece, builder *labels.ScratchBuilder) error {
	lset := b.Column(0).(*array.Map)
	names, values := lset.Keys().(*array.String), lset.Items().(*array.String)
	list := func(i int) *array.List { return b.Column(i).(*array.List) }
	times, floats := list(1).ListValues().(*array.Int64), list(2).ListValues().(*array.Float64)
	at, hists := list(3).ListValues().(*array.Int64), list(4).ListValues().(*array.Binary)
	points := make([]promql.FPoint, 0, floats.Len())
	for i := range int(b.NumRows()) {
		builder.Reset()
		from, upto := lset.ValueOffsets(i)
		for k := from; k < upto; k++ {
			builder.Add(names.Value(int(k)), values.Value(int(k)))
		}
		s, begin := promql.Series{Metric: builder.Labels()}, len(points)
		from, upto = list(1).ValueOffsets(i)
		vfrom, vupto := list(2).ValueOffsets(i)
		hfrom, hupto := list(3).ValueOffsets(i)
		bfrom, bupto := list(4).ValueOffsets(i)
		if upto-from != vupto-vfrom || hupto-hfrom != bupto-bfrom {
			return fmt.Errorf("series %s has other numbers of times and of values", s.Metric)
		}
		last := p.From - p.Step
		step := func(t int64) (ok bool) {
			ok = t > last && t <= p.Upto && (t-p.From)%p.Step == 0
			last = t
			return ok
		}
		for k := range upto - from {
			t := times.Value(int(from + k))
			if !step(t) {
				return fmt.Errorf("series %s has a value at %d, which is no further step", s.Metric, t)
			}
			points = append(points, promql.FPoint{T: t, F: floats.Value(int(vfrom + k))})
		}
		if end := len(points); end > begin {
			s.Floats = points[begin:end:end]
		}
		last = p.From - p.Step
		for k := range hupto - hfrom {
			t := at.Value(int(hfrom + k))
			if !step(t) {
				return fmt.Errorf("series %s has a histogram at %d, which is no further step", s.Metric, t)
			}
			var m prompb.Histogram
			if err := m.Unmarshal(hists.Value(int(bfrom + k))); err != nil {
				return fmt.Errorf("decode a histogram of series %s: %w", s.Metric, err)
			}
			s.Histograms = append(s.Histograms, promql.HPoint{T: t, H: m.ToFloatHistogram()})
		}
		a.Series = append(a.Series, s)
	}
	return nil
}

// Join returns the answer of the query whose slices have the answers, in the order of the slices.
// It fails with ErrWhole if slices give an annotation different positions, of which the whole query
// has one.
func Join(answers []*Answer, query string) (*Answer, error) {
	out, shown := &Answer{}, map[string]string{}
	positions := map[uint64]int{} // in out.Series, by the hash of the labels
	for _, a := range answers {
		notes, err := notesOf(a.Notes, query)
		if err != nil {
			return nil, err
		}
		for i := range notes {
			n := &notes[i]
			if s, ok := shown[n.Text]; ok && s != n.Shown {
				return nil, fmt.Errorf("%w: slices differ in the positions of an annotation: %s", ErrWhole, n.Text)
			}
			shown[n.Text] = n.Shown
			out.Notes.Add(n)
		}
		for _, s := range a.Series {
			i, ok := positions[s.Metric.Hash()]
			if !ok {
				i = len(out.Series)
				positions[s.Metric.Hash()] = i
				out.Series = append(out.Series, promql.Series{Metric: s.Metric})
			}
			to := &out.Series[i]
			if !labels.Equal(to.Metric, s.Metric) {
				return nil, fmt.Errorf("%w: the hashes of %s and %s are equal", ErrWhole, to.Metric, s.Metric)
			}
			to.Floats, to.Histograms = append(to.Floats, s.Floats...), append(to.Histograms, s.Histograms...)
		}
		st := &a.Stats
		out.Stats.Samples, out.Stats.SamplesRead = out.Stats.Samples+st.Samples, out.Stats.SamplesRead+st.SamplesRead
		out.Stats.Peak = max(out.Stats.Peak, st.Peak)
		out.Stats.SamplesPerStep = append(out.Stats.SamplesPerStep, st.SamplesPerStep...)
		out.Stats.SamplesReadStep = append(out.Stats.SamplesReadStep, st.SamplesReadStep...)
		out.Stats.Storage.Add(st.Storage)
	}
	sort.Sort(out.Series)
	return out, nil
}
