package guard

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/request"
)

// patternParam is the parameter that is a regular expression.
const patternParam = "match_pattern"

// otherParam is the parameter that no limit on expressions bounds: the parameters of a SQL
// statement. All others count, so that none that a handler parses as PromQL can be forgotten.
const otherParam = "params"

// bounded checks the expressions of a request before any handler parses them.
func (g *Guard) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, r := Form(r)
		if a := request.From(r.Context()).Origin; a != nil {
			a.Text = cmp.Or(url.Values(form).Get("query"), strings.Join(form["match[]"], " "))
		}
		var texts []string
		for name, values := range form {
			if name != otherParam && name != patternParam {
				texts = append(texts, values...)
			}
		}
		g.Bounded(w, r, texts, form[patternParam], next)
	})
}

// Bounded lets next answer a request whose texts of PromQL and whose regular expressions are within
// the limits. Until the answer, it holds the memory that compiling the expressions takes.
func (g *Guard) Bounded(w http.ResponseWriter, r *http.Request, texts, patterns []string, next http.Handler) {
	err := g.Expressions.Check(texts...)
	if err == nil {
		err = g.Expressions.CheckPatterns(patterns...)
	}
	if err != nil {
		if limit, ok := errors.AsType[*expression.Error](err); ok {
			g.Refused.WithLabelValues(limit.Flag).Inc()
		}
		g.Respond.Error(w, r, respond.BadData, err)
		return
	}
	if n := expression.Memory(texts, patterns); n > 0 {
		if err := g.Memory.AcquireWithin(r.Context(), memoryWait, n); err != nil {
			g.unavailable(w, r, err)
			return
		}
		defer g.Memory.Release(n)
	}
	next.ServeHTTP(w, r)
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
