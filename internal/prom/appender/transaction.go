package appender

import (
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// Sample is one sample of a series: a float, unless it has a histogram. Pointers come first, as in
// state. Those of some seconds wait in memory, so it has what most of them need.
type Sample struct {
	series *state
	Rare   *Rare // nil: there is nothing of it

	T     int64 // ms
	V     float64
	known remotewrite.Known // what the series' memo knew at the commit
}

// Rare is what few samples have. It does not change, so that samples share it.
type Rare struct {
	Histogram
	ST int64 // ms; 0: unknown

	inOrder bool // refuse it if it is out of order at the commit, whatever the window
}

// Histogram is what a sample has that is no float: one of both.
type Histogram struct {
	H  *histogram.Histogram
	FH *histogram.FloatHistogram
}

// inOrder is what all results of rules have.
var inOrder = &Rare{inOrder: true}

// after returns what a sample has that follows one with last, or the first one if that is nil:
// neighbours often began at the same time.
func (r Rare) after(last *Rare) *Rare {
	switch {
	case r == Rare{}:
		return nil
	case r == *inOrder:
		return inOrder
	case last != nil && r == *last:
		return last
	}
	own := r // so that only this one is allocated
	return &own
}

// Labels returns the labels of the series, sorted by name.
func (s *Sample) Labels() labels.Labels { return s.series.labels }

// rare returns what the sample has of Rare.
func (s *Sample) rare() Rare {
	if s.Rare == nil {
		return Rare{}
	}
	return *s.Rare
}

// Histogram returns what a sample has that is no float; nothing of one that is.
func (s *Sample) Histogram() Histogram { return s.rare().Histogram }

// Exemplar is an exemplar of the series of a sample.
type Exemplar struct {
	Sample int // index in the transaction's samples
	exemplar.Exemplar
}

// Transaction is what one scrape, or one evaluation of a rule, appended and committed.
type Transaction struct {
	Tenant    string // whose samples these are, where a receiver takes those of several
	Samples   []Sample
	Exemplars []Exemplar // ascending by sample
	Metadata  []*Family

	bytes int64 // 0 until Bytes was called
}

// transactions keep the memory of scrapes that are done. Results of rules, which are more and have
// few samples each, do not use it.
var transactions = sync.Pool{New: func() any { return new(Transaction) }}

// A transaction whose capacities are outside of these is left to the garbage collector.
const (
	fewSamples, keepSamples = 64, 16 << 10
	keepOthers              = 4 << 10 // exemplars, metadata
)

// Release ends the use of a transaction: later ones use its memory.
func (t *Transaction) Release() {
	if cap(t.Samples) < fewSamples || cap(t.Samples) > keepSamples || max(cap(t.Exemplars), cap(t.Metadata)) > keepOthers {
		return
	}
	clear(t.Samples)
	clear(t.Exemplars)
	clear(t.Metadata)
	*t = Transaction{Samples: t.Samples[:0], Exemplars: t.Exemplars[:0], Metadata: t.Metadata[:0]}
	transactions.Put(t)
}

// The memory (bytes) of the parts of a transaction, roughly, without texts.
const (
	sampleBytes    = 40
	exemplarBytes  = 64
	histogramBytes = 512
)

// Bytes estimates the memory that a transaction alone keeps. Nothing may be added to it any more.
// The labels of a series that the ingest stage knows are those of its table, whoever waits.
func (t *Transaction) Bytes() int64 {
	if t.bytes > 0 {
		return t.bytes
	}
	n := int64(0)
	for i := range t.Samples {
		n += sampleBytes
		if t.Samples[i].known == 0 {
			n += int64(t.Samples[i].Labels().ByteSize())
		}
		if t.Samples[i].Histogram() != (Histogram{}) {
			n += histogramBytes
		}
	}
	for i := range t.Exemplars {
		n += exemplarBytes + int64(t.Exemplars[i].Labels.ByteSize())
	}
	for _, m := range t.Metadata {
		n += int64(len(m.Metric) + len(m.Type) + len(m.Help) + len(m.Unit))
	}
	t.bytes = n
	return n
}

// Collect adds transactions to a collector.
func Collect(txs []*Transaction) func(*remotewrite.Collector) error {
	return func(c *remotewrite.Collector) error {
		var key, text []byte
		n := 0
		for _, t := range txs {
			n += len(t.Samples)
		}
		c.Expect(n)
		for _, t := range txs {
			exemplars := t.Exemplars
			for i := range t.Samples {
				s := &t.Samples[i]
				if err := addSample(c, s); err != nil {
					return err
				}
				for len(exemplars) > 0 && exemplars[0].Sample == i {
					c.Exemplar(exemplars[0].Exemplar)
					exemplars = exemplars[1:]
				}
				var known bool
				var err error
				if c.Remembers() {
					known, err = c.Recall(&s.series.memo, s.known)
				} else {
					text = s.Labels().Bytes(text)
					key = append(append(key[:0], remotewrite.KeysOfAppender), text...)
					known, err = c.Series(c.Key(key))
				}
				if err != nil {
					return err
				}
				if known {
					continue
				}
				if err := c.LearnLabels(s.Labels()); err != nil {
					return err
				}
			}
			for _, f := range t.Metadata {
				if c.Described(&f.memo, f.Metadata) {
					continue
				}
				if err := c.Metadata(f.Metadata); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func addSample(c *remotewrite.Collector, s *Sample) error {
	if s.Rare == nil {
		c.Float(s.T, s.V)
		return nil
	}
	buckets, r := 0, s.Rare
	switch {
	case r.FH != nil:
		buckets = len(r.FH.PositiveBuckets) + len(r.FH.NegativeBuckets)
	case r.H != nil:
		buckets = len(r.H.PositiveBuckets) + len(r.H.NegativeBuckets)
	default:
		c.Started(r.ST, s.T, s.V)
		return nil
	}
	if err := c.HistogramRoom(buckets); err != nil {
		return err
	}
	if err := c.Histogram(segment.Hist{ST: r.ST, T: s.T, H: r.H, FH: r.FH}); err != nil {
		return c.Reject(err, 1)
	}
	return nil
}

// table finds series by their labels, and by their references, which it gives. Its only pointers
// are those of byRef.
type table struct {
	hash  func(labels.Labels) uint64
	byRef []*state // nil where a series was forgotten; the reference 0 is none
	free  []uint32 // references of forgotten series
	// byHash has each reference at the hash of its series, or at the next number that is not taken.
	// 0 keeps a place, behind which others are.
	byHash map[uint64]uint32
}

func newTable() table {
	return table{hash: labels.Labels.Hash, byRef: []*state{nil}, byHash: map[uint64]uint32{}}
}

// find returns the series with the labels, and its place in byHash: nil, and a free one, if there
// is none.
func (t *table) find(ls labels.Labels) (s *state, at uint64) {
	for at = t.hash(ls); ; at++ {
		ref, taken := t.byHash[at]
		if !taken {
			return nil, at
		}
		if s = t.byRef[ref]; s != nil && labels.Equal(s.labels, ls) {
			return s, at
		}
	}
}

// add gives a series a reference, and a place that find has returned.
func (t *table) add(s *state, at uint64) {
	if n := len(t.free); n > 0 {
		s.ref, t.free = t.free[n-1], t.free[:n-1]
		t.byRef[s.ref] = s
	} else {
		s.ref = uint32(len(t.byRef))
		t.byRef = append(t.byRef, s)
	}
	t.byHash[at] = s.ref
}

// remove forgets a series.
func (t *table) remove(s *state) {
	_, at := t.find(s.labels)
	t.byHash[at] = 0
	if _, behind := t.byHash[at+1]; !behind {
		for ref, taken := t.byHash[at]; taken && ref == 0; ref, taken = t.byHash[at] {
			delete(t.byHash, at)
			at--
		}
	}
	t.byRef[s.ref] = nil
	t.free = append(t.free, s.ref)
}

// Family is the metadata of a metric family. It does not change, so that transactions share it.
type Family struct {
	segment.Metadata

	memo remotewrite.Memo
}

// maxFamilies and maxFamilyBytes are the number of families, and of bytes of their texts, from
// which on they are forgotten, and learned again.
const (
	maxFamilies    = 1 << 14
	maxFamilyBytes = 16 << 20
)

// families are those that were described lately: most targets describe the same ones in each
// scrape, in the same order. They are safe for concurrent use.
type families struct {
	mu     sync.Mutex
	byName map[string]*Family
	bytes  int // of texts since it was empty
}

// of returns the family with this metadata. It copies the name of a new one.
func (f *families) of(m *segment.Metadata) *Family {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byName[m.Metric]; known != nil && known.Metadata == *m {
		return known
	}
	if f.bytes += len(m.Metric) + len(m.Help) + len(m.Unit); len(f.byName) >= maxFamilies || f.bytes > maxFamilyBytes || f.byName == nil {
		f.byName, f.bytes = map[string]*Family{}, 0
	}
	family := &Family{Metadata: *m}
	family.Metric = strings.Clone(m.Metric)
	f.byName[family.Metric] = family
	return family
}
