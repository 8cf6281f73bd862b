package auth_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/promlake/promlake/internal/access/auth"
)

// BenchmarkProtect measures the guard with an accepted request.
func BenchmarkProtect(b *testing.B) {
	text := []byte(`{"version":1,"tokens":[{"sha256":"` + sumA + `","tenants":["a"],"access":["read"]}]}`)
	remote := newParameter(text)
	file, _, _ := newGuard(b, text, io.Discard)
	for name, g := range map[string]*auth.Guard{"file": file, "remote": remote.guard(&bytes.Buffer{})} {
		b.Run("source="+name, func(b *testing.B) {
			h := g.Protect(auth.Read, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Authorization", "Bearer token-a")
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
			if w.Code != http.StatusOK {
				b.Fatal(w.Code)
			}
		})
	}
}
