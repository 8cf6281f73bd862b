package plan

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// Scan is the SQL that returns the values of a leaf, or of its fold, as the columns i UINTEGER and
// v DOUBLE[] of the relation.
type Scan string

// Statement is SQL whose result has the columns i UINTEGER and v DOUBLE[].
type Statement struct {
	SQL string
	// Args are the parameters $1, $2, …: BLOBs.
	Args [][]byte
}

// Text returns the statement with literal arguments: it runs in any shell that has the functions.
func (s Statement) Text() string {
	return parameter.ReplaceAllStringFunc(s.SQL, func(p string) string {
		i, _ := strconv.Atoi(p[1:]) // blob has written it
		return "unhex('" + hex.EncodeToString(s.Args[i-1]) + "')"
	})
}

// parameter is the only use of the sign $ in a statement.
var parameter = regexp.MustCompile(`\$[0-9]+`)

// Statement returns the statement of the subtree. scans is parallel to Leaves. budget is added to
// the specs of C functions, unless it is "".
func (p *Pushed) Statement(scans []Scan, budget string) Statement {
	b := &builder{budget: budget, ctes: map[Node]*cte{}, blobs: map[string]int{}, known: map[Node]Scan{}}
	for i, l := range p.Leaves {
		b.known[p.known(l)] = scans[i]
	}
	root := b.rel(p.Root)
	parts := make([]string, len(b.order))
	for i, c := range b.order {
		how := ""
		if c.reads > 1 {
			how = "MATERIALIZED "
		}
		parts[i] = c.name + " AS " + how + "(" + c.body + ")"
	}
	sql := fmt.Sprintf("WITH %s SELECT i, v FROM %s WHERE i IS NOT NULL AND v IS NOT NULL", strings.Join(parts, ", "), root)
	return Statement{SQL: sql, Args: b.args}
}

// builder renders the nodes of a statement, each as a CTE.
type builder struct {
	budget string
	ctes   map[Node]*cte
	order  []*cte
	args   [][]byte
	blobs  map[string]int // index in args by content
	known  map[Node]Scan  // nodes whose values are those of a scan: leaves, or their folds
}

// cte is the relation of a node.
type cte struct {
	name, body string
	reads      int
}

// rel returns the name of a node's relation. Each call is one use in a FROM clause.
func (b *builder) rel(n Node) string {
	c, ok := b.ctes[n]
	if !ok {
		c = &cte{}
		if scan, ok := b.known[n]; ok {
			c.body = string(scan)
		} else {
			c.body = n.sql(b) // the CTEs of the inputs come first
		}
		c.name = "n" + strconv.Itoa(len(b.order))
		b.ctes[n] = c
		b.order = append(b.order, c)
	}
	c.reads++
	return c.name
}

// list returns the value of a scalar node as an SQL expression. It is packed inside the subquery,
// because DuckDB reads the row of a scalar subquery with an aggregate that keeps neither the bits
// of NaNs in a list nor the sign of zeros.
func (b *builder) list(n Node) string {
	if c, ok := n.(*constNode); ok {
		return c.list()
	}
	return "prom_unpack((SELECT prom_pack(v) FROM " + b.rel(n) + "))"
}

// blob returns an argument as an SQL expression. Equal arguments are passed once.
func (b *builder) blob(data []byte) string {
	i, ok := b.blobs[string(data)]
	if !ok {
		i = len(b.args)
		b.blobs[string(data)] = i
		b.args = append(b.args, data)
	}
	return "$" + strconv.Itoa(i+1)
}

// spec returns the constant parameter of a C function, with the budget of the execution, as an SQL
// literal.
func (b *builder) spec(s string) string {
	if b.budget != "" {
		s = strings.TrimSpace(s + " budget=" + b.budget)
	}
	return "'" + s + "'"
}

// counted returns a call of a C aggregate that counts its memory against the budget of the
// execution.
func (b *builder) counted(fn, args string) string {
	if b.budget == "" {
		return fn + "(" + args + ")"
	}
	return fn + "(" + args + ", " + b.spec("") + ")"
}

// fewGroups is the number of groups up to which their ordinals fit into eight bits.
const fewGroups = 1 << 8

// byGroup returns the SELECT of a value per group of the rows of a relation. to has the group of
// each ordinal i of the relation.
//
// A key of eight bits makes DuckDB aggregate into an array. Each of its threads otherwise clears a
// hash table of 2 MB first, whatever the number of groups.
func (b *builder) byGroup(to []uint32, value func(*builder) string, in Node) string {
	at := "prom_at(i, " + b.blob(vector.OrdinalArray(to)) + ")"
	few := !slices.ContainsFunc(to, func(o uint32) bool { return o >= fewGroups && o != vector.NoOrdinal })
	if few {
		at = "CAST(" + at + " AS UTINYINT)"
	}
	sql := fmt.Sprintf("SELECT %s AS i, %s AS v FROM %s GROUP BY 1", at, value(b), b.rel(in))
	if few {
		sql = "SELECT CAST(i AS UINTEGER) AS i, v FROM (" + sql + ")"
	}
	return sql
}
