// Package selfwrite writes a process's own metrics with remote_write. It is for processes that are
// not scraped: Lambda functions, and a single process that stores its own metrics.
package selfwrite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/settings"
)

// Here is the URL of the process's own write stage, which is called without HTTP.
const Here = "here"

// Settings configure where the metrics are written. The tags are those of package settings.
type Settings struct {
	URL      string        `name:"self.url" placeholder:"URL" help:"Server to which this process writes its own metrics: its URL, the whole URL of its remote_write, or \"here\" for this process. Default: none." when:"Set it where nobody scrapes /metrics, as in functions."`
	Token    string        `name:"self.token" placeholder:"TOKEN" secret:"" help:"Token for --self.url, or its source: file:PATH or ssm:NAME." when:"With --self.url, if that server has tokens."`
	Tenant   string        `name:"self.tenant" default:"promlake" help:"Tenant that these metrics are written to." when:"Set it to keep them among your own metrics."`
	Interval time.Duration `name:"self.interval" default:"1m" min:"1s" help:"Least time between two writes of these metrics." when:"Raise it to write fewer samples."`
	Metrics  []string      `name:"self.metrics" placeholder:"PREFIX" default:"promlake_,process_cpu_seconds_total,process_resident_memory_bytes,process_start_time_seconds,go_goroutines,go_memstats_heap_inuse_bytes" min:"1" help:"Prefixes of the names of these metrics. Others are not written." when:"Set it to write more or fewer metrics."`
	Job      string        `name:"self.job" default:"promlake" help:"Value of the label job of these metrics." when:"Rarely; functions have their own by default."`
}

// Enabled reports whether metrics are written.
func (s Settings) Enabled() bool { return s.URL != "" }

// Validate returns an error that names the flags of invalid settings.
func (s Settings) Validate() error {
	if !s.Enabled() {
		return nil
	}
	errs := []error{settings.Check(s)}
	if s.URL != Here {
		_, err := s.target()
		errs = append(errs, err)
	}
	if _, err := tenant.Parse(s.Tenant); err != nil || s.Tenant == "" {
		errs = append(errs, fmt.Errorf("self.tenant: want a tenant's name, got %q", s.Tenant))
	}
	if s.Job == "" {
		errs = append(errs, errors.New("self.job: want a name, got nothing"))
	}
	return errors.Join(errs...)
}

// target returns the URL of the remote_write endpoint.
func (s Settings) target() (string, error) {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("self.url: want http://host, https://host or %s", Here)
	case u.User != nil:
		return "", errors.New("self.url: want no user and password in it: give the token as self.token")
	case strings.Trim(u.Path, "/") == "":
		u.Path = writePath
	}
	return u.String(), nil
}

// keeps reports whether a family is written.
func (s Settings) keeps(family string) bool {
	return slices.ContainsFunc(s.Metrics, func(prefix string) bool { return strings.HasPrefix(family, prefix) })
}

// labels returns the labels of all series: the job, the instance, and the name of the function in
// Lambda.
func (s Settings) labels() (map[string]string, error) {
	all := map[string]string{model.JobLabel: s.Job}
	if name := os.Getenv("AWS_LAMBDA_FUNCTION_NAME"); name != "" {
		all["function"] = name
	}
	if stream := os.Getenv("AWS_LAMBDA_LOG_STREAM_NAME"); stream != "" {
		all[model.InstanceLabel] = stream // one per environment of a function
		return all, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read host name: %w", err)
	}
	all[model.InstanceLabel] = host + "-" + strconv.Itoa(os.Getpid())
	return all, nil
}

const (
	writePath = "/api/v1/write"
	// tokenAge is how long a token is used before it is read again.
	tokenAge = 5 * time.Minute
)

// headers names the tenant and gives the token. It implements http.RoundTripper.
type headers struct {
	tenant string
	token  *token
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := h.token.read(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set(tenant.Header, h.tenant)
	if text != "" {
		r.Header.Set("Authorization", "Bearer "+text)
	}
	return h.next.RoundTrip(r)
}

// token reads its source at the first use, and again after tokenAge.
type token struct {
	from auth.Secret // nil: none
	now  func() time.Time

	mu   sync.Mutex
	text string
	at   time.Time // when text was read
}

func (t *token) read(ctx context.Context) (string, error) {
	if t.from == nil {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// without the monotonic part, which may stop while a function is frozen
	now := t.now().Round(0)
	if !t.at.IsZero() && now.Sub(t.at) < tokenAge {
		return t.text, nil
	}
	text, err := t.from.Read(ctx)
	if err != nil {
		if t.at.IsZero() {
			return "", err
		}
		// the previous one is probably still valid; otherwise the server rejects it
		return t.text, nil
	}
	t.text, t.at = strings.TrimSpace(text), now
	return t.text, nil
}
