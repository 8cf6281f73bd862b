package block

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Frame holds the times and divisors of a row group, decoded. They are one page each, which every
// read of a few rows would decode anew, and take little memory: series that are scraped together
// have equal times, and most divisors equal the one before. It is immutable.
type Frame struct {
	first int64   // row
	runs  []int32 // by run of ascending times: its first row, counted from first
	at    []int32 // by run: where its times begin in times; neighbours with equal ones share them
	times []int64 // ms
	ends  []int32 // by run of equal divisors: the row after its last one, counted from first
	divs  []float64
}

// The inverses of the shares of its rows that a row group's distinct times, runs of times and runs
// of divisors may be, if a frame is to hold them.
const (
	frameTimes = 8
	frameRuns  = 8
)

// frameRows is the number of rows that ReadFrame decodes at once.
const frameRows = 4 << 10

// ReadFrame reads the frame of a row group, whose file is in. It is empty if it would be large.
// Errors: ErrFormat, parquetfile.ErrFormat, and those of in.
func ReadFrame(in io.ReaderAt, g *RowGroup) (*Frame, error) {
	if g.Rows > maxGroupRows {
		return nil, fmt.Errorf("%w: row group of %d rows, the limit is %d", ErrFormat, g.Rows, maxGroupRows)
	}
	x := &Frame{first: g.FirstRow}
	var words parquetfile.WordReader
	read := func(leaf int, column func(*parquetfile.WordReader, int64) (bool, error)) (fits bool, err error) {
		if err := g.open(&words, in, leaf); err != nil {
			return false, err
		}
		if fits, err = column(&words, g.Rows); err != nil {
			return false, fmt.Errorf("column %d: %w", leaf, err)
		}
		return fits, nil
	}
	fits, err := read(leafTS, x.readTimes)
	if err == nil && fits {
		fits, err = read(leafDiv, x.readDivisors)
	}
	switch {
	case err != nil:
		return nil, err
	case !fits:
		return &Frame{}, nil
	}
	x.times, x.runs, x.at = slices.Clone(x.times), slices.Clone(x.runs), slices.Clone(x.at)
	x.ends, x.divs = slices.Clone(x.ends), slices.Clone(x.divs)
	return x, nil
}

// Empty reports whether the row group is better read without a frame.
func (x *Frame) Empty() bool { return len(x.runs) == 0 }

// Bytes is its size in memory.
func (x *Frame) Bytes() int64 {
	return int64(160 + 8*len(x.times) + 8*len(x.runs) + 12*len(x.ends))
}

// readTimes reads the times of all rows. It returns false if they would take much memory.
func (x *Frame) readTimes(words *parquetfile.WordReader, rows int64) (fits bool, err error) {
	some := make([]int64, min(rows, frameRows))
	begin := 0 // in times, of the open run
	for row := int64(0); row < rows; row += int64(len(some)) {
		some = some[:min(rows-row, frameRows)]
		if err := words.Int64s(some); err != nil {
			return false, err
		}
		for i, t := range some {
			if n := len(x.times); n == begin || t <= x.times[n-1] {
				begin = x.endRun(begin)
				x.runs, x.at = append(x.runs, int32(row)+int32(i)), append(x.at, int32(begin))
			}
			x.times = append(x.times, t)
		}
		if limit := rows/frameTimes + frameRows; int64(len(x.times)) > limit || int64(len(x.runs)) > rows/frameRuns+1 {
			return false, nil
		}
	}
	x.endRun(begin)
	return true, nil
}

// endRun ends the run whose times begin at a position, and shares the times of the run before it if
// they are equal. It returns where the times of the next run begin.
func (x *Frame) endRun(begin int) int {
	if k := len(x.at) - 1; k > 0 && slices.Equal(x.times[x.at[k-1]:begin], x.times[begin:]) {
		x.times, x.at[k] = x.times[:begin], x.at[k-1]
	}
	return len(x.times)
}

// readDivisors reads the divisors of all rows. It returns false if they would take much memory.
func (x *Frame) readDivisors(words *parquetfile.WordReader, rows int64) (fits bool, err error) {
	var some [someDivisors]float64
	for row := int64(0); row < rows; {
		bits, n, err := words.Equal(int(rows - row))
		if err != nil {
			return false, err
		}
		if n > 0 {
			row += int64(n)
			x.divisor(math.Float64frombits(bits), row)
		} else {
			each := some[:min(rows-row, someDivisors)]
			if err := words.Doubles(each); err != nil {
				return false, err
			}
			for _, d := range each {
				row++
				x.divisor(d, row)
			}
		}
		if int64(len(x.ends)) > rows/frameRuns+1 {
			return false, nil
		}
	}
	return true, nil
}

// divisor adds rows up to end with a divisor.
func (x *Frame) divisor(d float64, end int64) {
	if n := len(x.divs); n > 0 && math.Float64bits(x.divs[n-1]) == math.Float64bits(d) {
		x.ends[n-1] = int32(end)
		return
	}
	x.ends, x.divs = append(x.ends, int32(end)), append(x.divs, d)
}

// TimesOf returns where in FloatReader.AllTimes the times of rows begin, which must be of one
// series. Errors: ErrFormat.
func (x *Frame) TimesOf(r Rows) (at int, err error) {
	if r.N == 0 {
		return 0, nil
	}
	from := int32(r.From - x.first)
	k := sort.Search(len(x.runs), func(i int) bool { return x.runs[i] > from }) - 1
	if k < 0 {
		return 0, fmt.Errorf("%w: row %d is before the row group", ErrFormat, r.From)
	}
	at = int(x.at[k]) + int(from-x.runs[k])
	if k+1 < len(x.runs) && from+int32(r.N) > x.runs[k+1] || at+int(r.N) > len(x.times) {
		return 0, fmt.Errorf("%w: the times of rows %d to %d do not ascend", ErrFormat, r.From, r.From+r.N)
	}
	return at, nil
}

// divide makes the values of rows of v, which holds their integers. It reports whether one of the
// divisors is no finite number.
func (x *Frame) divide(r Rows, v []float64) (odd bool) {
	row := int(r.From - x.first)
	k := sort.Search(len(x.ends), func(i int) bool { return int(x.ends[i]) > row })
	for ; len(v) > 0; k++ {
		n := min(len(v), int(x.ends[k])-row)
		odd = odd || !(x.divs[k] <= math.MaxFloat64)
		divideAll(v[:n], x.divs[k])
		v, row = v[n:], row+n
	}
	return odd
}
