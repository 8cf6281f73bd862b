package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/segment"
)

// blockScan is the statement that reads parts of one kind. Its columns are: the part's position, the row's position in its file, ts if
// asked for, and those of the payload. Rows are known by their place, so neither metric nor series_id is read, and DuckDB rules
// row groups out by their place as well.
type blockScan struct {
	parts      []part
	paths      []string // parallel to parts
	mint, maxt int64    // ms
	payload    []string // columns after ts
	st         bool     // some part has start timestamps: they are the last column
}

// Positions of the columns that every block scan has.
const (
	colPart = iota
	colRow
	colTime
	colPayload // and what follows
)

func newBlockScan(k kind, parts []part, mint, maxt int64, values bool) *blockScan {
	// What is read whole, and alike, is one table to DuckDB.
	slices.SortStableFunc(parts, func(a, b part) int { return a.class() - b.class() })
	s := &blockScan{parts: parts, mint: mint, maxt: maxt}
	if !values {
		return s
	}
	if k.prefix == histFiles.prefix {
		s.payload = []string{segment.ColHist}
		return s
	}
	s.payload = []string{block.ColInt, block.ColDiv}
	s.st = slices.ContainsFunc(parts, func(p part) bool { return p.st })
	return s
}

// class numbers the parts that a table expression can have in common; 0 is none.
func (p *part) class() int {
	if !p.whole {
		return 0
	}
	class := 1
	if p.inside {
		class += 1
	}
	if p.st {
		class += 2
	}
	return class
}

// types are the SQL types of the columns.
func (s *blockScan) types() []string {
	out := []string{duck.UBigInt, duck.BigInt, duck.Time}
	for _, c := range s.payload {
		switch c {
		case block.ColInt:
			out = append(out, duck.BigInt)
		case segment.ColHist:
			out = append(out, duck.Blob)
		default:
			out = append(out, duck.Double)
		}
	}
	if s.st {
		out = append(out, duck.Time)
	}
	return out
}

// String renders the statement.
func (s *blockScan) String() string {
	var b strings.Builder
	for i := 0; i < len(s.parts); {
		n := 1
		if c := s.parts[i].class(); c > 0 {
			for i+n < len(s.parts) && s.parts[i+n].class() == c {
				n++
			}
		}
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		s.branch(&b, i, n)
		i += n
	}
	return b.String()
}

// branch renders the parts from i to i+n-1, which are one part, or whole files of one class.
func (s *blockScan) branch(b *strings.Builder, i, n int) {
	p := &s.parts[i]
	fmt.Fprintf(b, "SELECT %d::UBIGINT + file_index AS part, file_row_number AS row, ts", i)
	for _, c := range s.payload {
		b.WriteString(", " + c)
	}
	if s.st && p.st {
		b.WriteString(", " + segment.ColST)
	} else if s.st {
		b.WriteString(", NULL::TIMESTAMPTZ AS " + segment.ColST)
	}
	b.WriteString(" FROM read_parquet([" + duck.Literals(s.paths[i:i+n]) + "], hive_partitioning = false)")
	var conds []string
	if !p.whole {
		conds = append(conds, fmt.Sprintf("file_row_number >= %d AND file_row_number < %d", p.from, p.to))
	}
	if !p.inside {
		conds = append(conds, "ts >= "+timeLiteral(s.mint)+" AND ts <= "+timeLiteral(s.maxt))
	}
	if len(conds) > 0 {
		b.WriteString(" WHERE " + strings.Join(conds, " AND "))
	}
}
