package answers

import (
	"context"
	"net/http"
	"strconv"

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
	stream           stream              // where a large body is sent
}

type answerKey struct{}

// Handler lets the codec encode the answers of next, one of upstream's handlers of queries, in
// memory that is used again, sends large ones in parts, and compresses those of clients that ask
// for gzip.
func Handler(next http.Handler) http.Handler { return answering(Zipped(streamed(next))) }

// answering lets the answers of next be encoded in memory that is used again: once next returns,
// the body is written.
func answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{}
		sized := &sizedWriter{ResponseWriter: w, answer: a}
		next.ServeHTTP(sized, r.WithContext(context.WithValue(r.Context(), answerKey{}, a)))
		sized.head()
		if a.held != nil {
			a.held.release()
		}
	})
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

// sizedWriter gives an answer that is written at once its length, so that it is sent in one piece.
type sizedWriter struct {
	http.ResponseWriter
	answer *answer
	code   int // of a header that is not written yet; 0: there is none
}

// WriteHeader implements http.ResponseWriter.
func (w *sizedWriter) WriteHeader(code int) {
	w.head()
	w.code = code
}

// Write implements http.ResponseWriter.
func (w *sizedWriter) Write(p []byte) (int, error) {
	if body := w.answer.body(); w.code != 0 && len(p) > 0 && len(p) == len(body) && &p[0] == &body[0] {
		w.Header().Set("Content-Length", strconv.Itoa(len(p)))
	}
	w.head()
	return w.ResponseWriter.Write(p)
}

// head writes the header.
func (w *sizedWriter) head() {
	if w.code != 0 {
		w.ResponseWriter.WriteHeader(w.code)
		w.code = 0
	}
}

// Flush implements http.Flusher.
func (w *sizedWriter) Flush() {
	w.head()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a failed flush shows as a failed write
}

// Unwrap gives http.ResponseController access to the connection.
func (w *sizedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// body is the encoded answer, empty if there is none.
func (a *answer) body() []byte {
	if a.held == nil {
		return nil
	}
	return a.held.out
}
