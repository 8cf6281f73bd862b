package selfwrite_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/selfwrite"
	"github.com/promlake/promlake/internal/base/settings"
)

func TestSettingsValidate(t *testing.T) {
	require.NoError(t, settings.Default[selfwrite.Settings]().Validate())
	require.NoError(t, selfwrite.Settings{}.Validate(), "off")
	for _, url := range []string{"here", "http://127.0.0.1:9009", "https://x.example/", "https://x.example/prometheus/api/v1/push"} {
		require.NoError(t, configured(url).Validate(), url)
	}
	for name, tc := range map[string]struct {
		change func(*selfwrite.Settings)
		want   string
	}{
		"no URL":         {func(s *selfwrite.Settings) { s.URL = "there" }, "self.url: want http://host, https://host or here"},
		"other scheme":   {func(s *selfwrite.Settings) { s.URL = "s3://bucket" }, "self.url: want http://host"},
		"password in it": {func(s *selfwrite.Settings) { s.URL = "https://u:hush@x.example" }, "self.url: want no user and password"},
		"no tenant":      {func(s *selfwrite.Settings) { s.Tenant = "" }, `self.tenant: want a tenant's name, got ""`},
		"bad tenant":     {func(s *selfwrite.Settings) { s.Tenant = "a/b" }, `self.tenant: want a tenant's name, got "a/b"`},
		"too often":      {func(s *selfwrite.Settings) { s.Interval = time.Millisecond }, "self.interval: want at least 1s, got 1ms"},
		"no metrics":     {func(s *selfwrite.Settings) { s.Metrics = nil }, "self.metrics: want at least 1, got []"},
		"no job":         {func(s *selfwrite.Settings) { s.Job = "" }, "self.job: want a name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := configured("https://x.example")
			tc.change(&s)
			err := s.Validate()
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "hush")
		})
	}
}

func TestLabelsOutsideOfAFunction(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "")
	t.Setenv("AWS_LAMBDA_LOG_STREAM_NAME", "")
	rec := &receiver{}
	p := newProcess(t, configured(selfwrite.Here), rec)
	p.writer.Flush(t.Context())
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Contains(t, rec.take(t, 1), fmt.Sprintf("__name__=go_goroutines,instance=%s-%d,job=ingest-fn", host, os.Getpid()))
}

func TestURLWithAPath(t *testing.T) {
	rec := &receiver{}
	srv := httptest.NewServer(rec)
	defer srv.Close()
	p := newProcess(t, configured(srv.URL+"/prometheus/api/v1/push"), nil)
	p.writer.Flush(t.Context())
	require.Equal(t, []string{"/prometheus/api/v1/push"}, rec.paths)
}

// TestTokenFromItsPlace: a token that changes at its source is used five minutes later.
func TestTokenFromItsPlace(t *testing.T) {
	rec := &receiver{}
	srv := httptest.NewServer(rec)
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("pl_one\n"), 0o600))
	s := configured(srv.URL)
	s.Token = "file:" + file
	p := newProcess(t, s, nil)
	write := func() string {
		t.Helper()
		p.clock = p.clock.Add(time.Minute)
		p.writer.MaybeWrite(t.Context())
		return rec.headers[len(rec.headers)-1].Get("Authorization")
	}
	require.Equal(t, "Bearer pl_one", write())
	require.NoError(t, os.WriteFile(file, []byte("pl_two"), 0o600))
	for range 4 {
		require.Equal(t, "Bearer pl_one", write())
	}
	require.Equal(t, "Bearer pl_two", write())
	require.NoError(t, os.Remove(file))
	for range 6 {
		require.Equal(t, "Bearer pl_two", write(), "the last one, while there is no other")
	}
}
