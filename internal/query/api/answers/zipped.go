package answers

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

const (
	acceptEncoding  = "Accept-Encoding"
	contentEncoding = "Content-Encoding"
)

// zippedFrom is the size (bytes) from which an answer is compressed. A shorter one fits into a
// packet as it is, and its compression takes a tenth of all that a small query takes.
const zippedFrom = 1 << 10

// compressors keep the memory of compressors, which is far more than most answers. They compress at
// the fastest level: upstream's takes up to three times as long, which is a third of all that a
// query of many series takes, for texts that are 1 to 16 % smaller.
var compressors = sync.Pool{New: func() any {
	zip, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // it knows the level
	return zip
}}

// Zipped compresses the answers of one of upstream's compressing handlers in its place, if the
// client asks for gzip: upstream makes a compressor for each answer, which takes several times as
// long as a small query.
func Zipped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !asksForGzip(r.Header.Get(acceptEncoding)) {
			next.ServeHTTP(w, r)
			return
		}
		plain := r.WithContext(r.Context())
		plain.Header = maps.Clone(r.Header)
		plain.Header.Del(acceptEncoding)
		zipped := &zippedWriter{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(zipped, plain) // after a panic the compressor is not used again
		zipped.end()
	})
}

// asksForGzip reports whether upstream would answer with gzip: it takes the first encoding that it
// knows, whatever its weight.
func asksForGzip(accepted string) bool {
	for encoding := range strings.SplitSeq(accepted, ",") {
		switch strings.TrimSpace(encoding) {
		case "gzip":
			return true
		case "deflate":
			return false
		}
	}
	return false
}

// zippedWriter holds an answer until it ends, or is large enough to be compressed.
type zippedWriter struct {
	http.ResponseWriter
	code int
	held []byte
	zip  *gzip.Writer // nil: the answer is held
}

// WriteHeader implements http.ResponseWriter.
func (w *zippedWriter) WriteHeader(code int) { w.code = code }

// Write implements http.ResponseWriter.
func (w *zippedWriter) Write(p []byte) (int, error) {
	if w.zip == nil {
		if len(w.held)+len(p) < zippedFrom {
			w.held = append(w.held, p...)
			return len(p), nil
		}
		w.Header().Del("Content-Length") // that of the text
		w.Header().Set(contentEncoding, "gzip")
		w.ResponseWriter.WriteHeader(w.code)
		w.zip = compressors.Get().(*gzip.Writer)
		w.zip.Reset(w.ResponseWriter)
		if _, err := w.zip.Write(w.held); err != nil {
			return 0, err
		}
	}
	return w.zip.Write(p)
}

// end sends what is held. The handler of an answer learns of errors when it writes, not here.
func (w *zippedWriter) end() {
	if w.zip == nil {
		w.ResponseWriter.WriteHeader(w.code)
		_, _ = w.ResponseWriter.Write(w.held)
		return
	}
	_ = w.zip.Close()
	w.zip.Reset(io.Discard)
	compressors.Put(w.zip)
}
