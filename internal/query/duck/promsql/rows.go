package promsql

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/promlake/promlake/internal/query/duck/table"
)

// maxChunkValues bounds the values of a chunk, unless one list alone has more.
const maxChunkValues = 1 << 15

// Published is rows in Go's memory that SQL sees as the table prom_rows(<ID>), with the columns i
// UINTEGER and v DOUBLE[].
type Published struct {
	id    int64
	first []int // row of each chunk, and where the last one ends

	mu     sync.RWMutex // held while a chunk is written
	i      []uint32
	v      [][]float64
	closed bool
}

var (
	published     sync.Map // of *Published, by id
	lastPublished atomic.Int64
)

// Publish publishes rows of the ordinals i and the lists v, which must be equally many. Lists may
// have different lengths; an empty list is NULL. Statements copy them chunk by chunk, so they must
// not change until Close, which the caller must call.
func Publish(i []uint32, v [][]float64) *Published {
	if len(i) != len(v) {
		panic(fmt.Sprintf("promsql: %d ordinals for %d lists", len(i), len(v)))
	}
	p := &Published{id: lastPublished.Add(1), i: i, v: v}
	rows, values := table.ChunkRows, 0 // of a full chunk: the first row begins one
	for row, list := range v {
		if rows == table.ChunkRows || values+len(list) > maxChunkValues {
			p.first = append(p.first, row)
			rows, values = 0, 0
		}
		rows++
		values += len(list)
	}
	p.first = append(p.first, len(v))
	published.Store(p.id, p)
	return p
}

// ID identifies the rows in SQL. It is never 0, and unique in the process.
func (p *Published) ID() int64 { return p.id }

// Close withdraws the rows: once it returns, nothing reads them. Statements that have not read all
// of them fail ("rows 7 are not there"). Close may be repeated.
func (p *Published) Close() {
	published.Delete(p.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.i, p.v, p.closed = nil, nil, true
}

func missing(id int64) error { return fmt.Errorf("rows %d are not there", id) }

// rowsFunction is prom_rows.
var rowsFunction = table.Function{Name: "prom_rows", Parameters: 1, Bind: func(arguments []*string) (table.Table, error) {
	var id int64
	if arguments[0] != nil {
		id, _ = strconv.ParseInt(*arguments[0], 10, 64) // 0 is no id
	}
	p, ok := published.Load(id)
	if !ok {
		return nil, missing(id)
	}
	return &rowsScan{of: p.(*Published)}, nil
}}

// rowsScan is published rows as a table, as a scan of it, and as each of its cursors, which take
// one chunk after another.
type rowsScan struct {
	of   *Published
	next atomic.Int64 // chunk
}

// Columns implements table.Table.
func (s *rowsScan) Columns() []table.Column {
	return []table.Column{{Name: "i", Type: table.UInteger}, {Name: "v", Type: table.Doubles}}
}

// Rows implements table.Table.
func (s *rowsScan) Rows() int64 { return int64(s.of.first[len(s.of.first)-1]) }

// Open implements table.Table.
func (s *rowsScan) Open([]int) (table.Scan, error) { return &rowsScan{of: s.of}, nil }

// Threads implements table.Scan.
func (s *rowsScan) Threads() int { return len(s.of.first) - 1 }

// Cursor implements table.Scan.
func (s *rowsScan) Cursor() table.Cursor { return s }

// Close implements table.Scan and table.Cursor.
func (s *rowsScan) Close() {}

// Next implements table.Cursor.
func (s *rowsScan) Next(c *table.Chunk) error {
	p, chunk := s.of, int(s.next.Add(1))-1
	if chunk >= len(p.first)-1 {
		return nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return missing(p.id)
	}
	from, to := p.first[chunk], p.first[chunk+1]
	c.Rows = to - from
	copy(c.UInts(0), p.i[from:to])
	c.Lists(1).Set(p.v[from:to], func(out []float64) error {
		p.mu.RLock()
		defer p.mu.RUnlock()
		if p.closed {
			return missing(p.id)
		}
		for _, list := range p.v[from:to] {
			out = out[copy(out, list):]
		}
		return nil
	})
	return nil
}
