package guard

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/promlake/promlake/internal/expression"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// expressionParams are the parameters that hold PromQL, in any route.
var expressionParams = []string{"query", "match[]", "selector"}

// bounded checks the expressions of a request before any handler parses them.
func (g *Guard) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, r := Form(r)
		var texts []string
		for _, p := range expressionParams {
			texts = append(texts, form[p]...)
		}
		if err := g.Expressions.Check(texts...); err != nil {
			if limit, ok := errors.AsType[*expression.Error](err); ok {
				g.Refused.WithLabelValues(limit.Flag).Inc()
			}
			g.Respond.Error(w, r, respond.BadData, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Form returns the parameters of a request as its handler will parse them, and the request for
// the handler: without a body this one, with the parsed form, else a copy with an unread one. It
// ignores parse errors, which the handler reports. withBody has bounded the body.
func Form(r *http.Request) (map[string][]string, *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		if r.Form != nil {
			return r.Form, r
		}
		err := r.ParseForm()
		form := r.Form
		if err != nil {
			r.Form, r.PostForm = nil, nil
		}
		return form, r
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // impossible: the body is in memory
		return nil, r
	}
	c, next := r.WithContext(r.Context()), r.WithContext(r.Context())
	c.Body, next.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	_ = c.ParseMultipartForm(int64(len(body))) // parses other forms too
	return c.Form, next
}
