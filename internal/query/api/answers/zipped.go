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

// zippers keep the memory of compressors: it is a megabyte, far more than most answers.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

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
		w.Header().Set(contentEncoding, "gzip")
		zip := zippers.Get().(*gzip.Writer)
		zip.Reset(w)
		next.ServeHTTP(zippedWriter{w, zip}, plain) // after a panic the compressor is not used again
		// As upstream does, so that the bytes are the same. A client that went away needs no answer.
		_, _ = zip.Flush(), zip.Close()
		zip.Reset(io.Discard)
		zippers.Put(zip)
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

// zippedWriter writes an answer through a compressor. The length of the answer is not that of its
// text.
type zippedWriter struct {
	http.ResponseWriter
	zip *gzip.Writer
}

// WriteHeader implements http.ResponseWriter.
func (w zippedWriter) WriteHeader(code int) {
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w zippedWriter) Write(p []byte) (int, error) {
	w.Header().Del("Content-Length")
	return w.zip.Write(p)
}
