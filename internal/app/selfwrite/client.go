package selfwrite

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/access/secret"
	"github.com/promlake/promlake/internal/access/tenant"
)

const (
	writePath = "/api/v1/write"
	// tokenAge is how long a token is used before it is read again.
	tokenAge = 5 * time.Minute
)

// network returns a transport without keep-alive: a function is frozen until its next write, and by
// then the other end has closed the connection.
func network() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.DisableKeepAlives = true
		return t
	}
	return http.DefaultTransport
}

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
	from secret.Source // nil: none
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
