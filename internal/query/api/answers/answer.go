// Package answers encodes and sends the answers of queries with the bytes of upstream's JSON codec
// at less cost: in memory that is used again, on all processors, and large ones in parts. It
// compresses small ones as upstream does, and large ones faster.
//
// An API has Codec as its codec, renders statistics by Lending, and serves queries by Handler.
package answers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/util/stats"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/query/request"
)

// answer is the body of the answer to one request. It reaches the codec, which sees no request, as
// the statistics of the query, which it holds.
type answer struct {
	stats.QueryStats                     // nil: none are asked for
	cost             *request.Comparison // nil: likewise
	held             *scratch            // has the body; nil: it is no float matrix
	to               *sender             // of a large body in parts; nil: the body must be written at once
}

type answerKey struct{}

// Handler lets the codec encode the answers of next, one of upstream's handlers of queries, in
// memory that is used again once next returns: the body is written by then. It sends large ones in
// parts, so that their text is never in memory at once, and compresses those of clients that ask
// for gzip.
func Handler(next http.Handler) http.Handler {
	return Zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{}
		r = r.WithContext(context.WithValue(r.Context(), answerKey{}, a))
		if strings.Contains(r.Header.Get(acceptEncoding), "deflate") { // which upstream's handler does
			next.ServeHTTP(w, r)
		} else {
			a.to = &sender{ResponseWriter: w, answer: a}
			next.ServeHTTP(a.to, r)
			a.to.head()
		}
		if a.held != nil {
			a.held.release()
		}
	}))
}

// Lending renders statistics as render does, and gives the codec the answer of the request.
func Lending(render v1.StatsRenderer) v1.StatsRenderer {
	return func(ctx context.Context, s *stats.Statistics, param string) stats.QueryStats {
		out := render(ctx, s, param)
		if a, ok := ctx.Value(answerKey{}).(*answer); ok {
			a.QueryStats, a.cost = out, request.Compare(ctx, s)
			return a
		}
		return out
	}
}

// streamPoints is the number of points from which an answer is sent in parts, as they are encoded.
const streamPoints = 64 << 10

// sender sends a body in parts; what its handler writes afterwards is the end of the body. It gives
// a body that is written at once its length, so that it is sent in one piece.
type sender struct {
	http.ResponseWriter
	answer *answer
	code   int   // of a header that is not written yet; 0: there is none
	began  bool  // parts are sent
	err    error // of the first part that could not be sent
}

// WriteHeader implements http.ResponseWriter. Parts that were sent had a header.
func (s *sender) WriteHeader(code int) {
	if !s.began {
		s.head()
		s.code = code
	}
}

// Write implements http.ResponseWriter.
func (s *sender) Write(p []byte) (int, error) {
	if held := s.answer.held; held != nil && s.code != 0 && len(p) > 0 && len(p) == len(held.out) && &p[0] == &held.out[0] {
		s.Header().Set("Content-Length", strconv.Itoa(len(p)))
	}
	s.head()
	return s.ResponseWriter.Write(p)
}

// head writes the header.
func (s *sender) head() {
	if s.code != 0 {
		s.ResponseWriter.WriteHeader(s.code)
		s.code = 0
	}
}

// sendParts sends parts, in order, and empties them. An answer that cannot be encoded to its end is
// cut off.
func (s *sender) sendParts(parts []*scratch, errs []error) error {
	for k, p := range parts {
		if errs[k] != nil {
			panic(http.ErrAbortHandler)
		}
		if !s.began {
			s.Header().Set("Content-Type", v1.JSONCodec{}.ContentType().String())
			s.WriteHeader(http.StatusOK)
			s.began = true
		}
		if s.err == nil && len(p.out) > 0 {
			_, s.err = s.Write(p.out)
		}
		p.out = p.out[:0]
	}
	return s.err
}
