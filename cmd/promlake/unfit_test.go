package main

import (
	"context"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

// carelessS3 speaks as much of S3 as a check needs, and ignores the conditions of writes.
type carelessS3 struct {
	mu      sync.Mutex
	objects map[string]string
	puts    int
}

func (s *carelessS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
		s.list(w, r.URL.Query().Get("prefix"), r.URL.Query().Get("start-after"))
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		body, ok := s.objects[key]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
			return
		}
		w.Header().Set("ETag", strconv.Quote(body))
		_, _ = io.WriteString(w, body)
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		s.puts++
		s.objects[key] = string(body)
		w.Header().Set("ETag", strconv.Quote(string(body)))
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *carelessS3) list(w io.Writer, prefix, after string) {
	type entry struct{ Key, ETag string }
	out := struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []entry
	}{}
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.HasPrefix(k, prefix) && k > after {
			out.Contents = append(out.Contents, entry{k, s.objects[k]})
		}
	}
	_ = xml.NewEncoder(w).Encode(out)
}

// TestWritersRefuseAStoreThatIgnoresConditions: a process that would lose commits does not start,
// and names the reason. Programs that only read write nothing.
func TestWritersRefuseAStoreThatIgnoresConditions(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		puts bool
	}{
		{[]string{"serve", "--listen", "127.0.0.1:0"}, 1, true},
		{[]string{"compact"}, 1, true},
		{[]string{"compact", "--no-store-check"}, 0, false},
		{[]string{"inspect"}, 0, false},
		{[]string{"query", "1"}, 0, false},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			careless := &carelessS3{objects: map[string]string{}}
			server := httptest.NewServer(careless)
			defer server.Close()
			var out, errs strings.Builder
			store := "s3://bucket?region=here&access_key=k&secret_key=s&endpoint=" + server.URL
			code := run(context.Background(), append(tc.args, "--store", store), flags.Streams{Out: &out, Err: &errs})
			require.Equal(t, tc.code, code, errs.String())
			require.Equal(t, tc.puts, careless.puts > 0)
			if code != 0 {
				require.Contains(t, errs.String(), `it breaks the promise "If-None-Match: * refuses to replace an object"`)
				require.Contains(t, errs.String(), "use Amazon S3, or a server with conditional writes")
			}
			require.Empty(t, careless.objects)
		})
	}
}
