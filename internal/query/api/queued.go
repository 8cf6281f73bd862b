package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/request"
)

// queue lets the handler of a route take its turn among the queries.
func (s *server) queue(c choice) choice {
	return func(upstream http.Handler) http.Handler { return s.queued(c(upstream)) }
}

// queued lets a handler run when it is its turn among the queries, until the first byte of its
// answer. The answer is complete by then.
func (s *server) queued(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := false
		err := s.backend.Run(r.Context(), func(ctx context.Context) error {
			began = true
			next.ServeHTTP(&leaving{w, request.From(ctx).Leave}, r.WithContext(ctx))
			return nil
		})
		if err != nil && !began {
			s.respond.StorageError(w, r, err)
		}
	})
}

// leaving is the answer of a handler that has a turn.
type leaving struct {
	http.ResponseWriter
	leave func() // nil: there are no turns
}

func (w *leaving) Write(p []byte) (int, error) {
	if w.leave != nil {
		w.leave()
	}
	return w.ResponseWriter.Write(p)
}

// maxCopied bounds the bytes that upstream copies to format an expression or to translate it to
// JSON: each part of it again at each level around it, or more often. Nothing can end it; this many
// take about a second.
const maxCopied = 1 << 29

// printing refuses expressions that would take long to print; cost is that of the handler.
func (s *server) printing(cost func(*copied) int) choice {
	return func(upstream http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, r := formValue(r, "query")
			if expr, err := s.parser.ParseExpr(text); err == nil { // upstream answers the error
				c := copiedOf(expr, 0)
				if n := cost(&c); n > maxCopied {
					s.respond.Error(w, r, respond.BadData, fmt.Errorf("printing the expression copies %d bytes, at most %d are allowed; print its parts, or nest it less", n, maxCopied))
					return
				}
			}
			upstream.ServeHTTP(w, r)
		})
	}
}

// copied is about what printing a part of an expression takes, in bytes that are copied.
type copied struct {
	text   int // by String
	pretty int // by Pretty, which calls String at each node
	json   int // by the translation to JSON
	indent int // bytes, of a line for each node
	nodes  int
}

// jsonBytes is about the length of a node's JSON.
const jsonBytes = 300

func copiedOf(n parser.Node, level int) (c copied) {
	c.indent, c.nodes = 2*level, 1
	for child := range parser.ChildrenIter(n) {
		p := copiedOf(child, level+1)
		c.text, c.pretty, c.json, c.indent, c.nodes = c.text+p.text, c.pretty+p.pretty, c.json+p.json, c.indent+p.indent, c.nodes+p.nodes
	}
	at := n.PositionRange()
	length := int(at.End - at.Start)
	c.text += length
	c.pretty += c.text + c.indent
	c.json += length + jsonBytes*c.nodes
	return c
}
