package auth

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
)

// SiteSettings are the names by which browsers reach a server. The tags are those of package
// settings.
type SiteSettings struct {
	ExternalURL  string   `name:"web.external-url" basic:"" placeholder:"URL" help:"URL at which browsers reach this server." when:"Set it behind a proxy."`
	AllowedHosts []string `name:"web.allowed-hosts" placeholder:"HOST" help:"Further host names, without ports, that requests may use, besides the host of --web.external-url and localhost. Default: every name; on a loopback address, no further one." when:"Set it if browsers reach a server that has no tokens."`
}

// Validate returns an error that names the flag of an invalid setting.
func (s SiteSettings) Validate() error {
	if s.ExternalURL == "" {
		return nil
	}
	u, err := url.Parse(s.ExternalURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("web.external-url: want http://HOST or https://HOST, got %q", s.ExternalURL)
	}
	return nil
}

// Site rejects requests that a browser sends for a foreign web page. Such a page can make a browser
// send requests to any address, including one that only this machine reaches and where no token is
// needed. Other programs send neither Origin nor Sec-Fetch-Site. It is safe for concurrent use.
type Site struct {
	external *url.URL // nil: none
	hosts    []string // lower case
	named    bool     // requests must have one of the hosts
	refused  *prometheus.CounterVec
}

// NewSite returns the guard of a server. loopback: the server listens on a loopback address only.
// It counts in reg:
//
//	promlake_http_cross_site_requests_total{reason}   host, origin
func NewSite(s SiteSettings, loopback bool, reg prometheus.Registerer) (*Site, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	site := &Site{named: loopback || len(s.AllowedHosts) > 0}
	if s.ExternalURL != "" {
		// Validate has parsed it.
		site.external, _ = url.Parse(s.ExternalURL)
		site.hosts = append(site.hosts, strings.ToLower(site.external.Hostname()))
	}
	for _, h := range s.AllowedHosts {
		site.hosts = append(site.hosts, strings.ToLower(h))
	}
	site.refused = telemetry.Metrics{Registerer: reg, Prefix: "promlake_"}.Counters("http_cross_site_requests_total", "Rejected requests: sent by a page of another site (origin), or for a host name that is not of this server (host).", "reason")
	return site, nil
}

// Protect returns a handler that passes requests to next, but rejects with 403 requests that
//
//   - have a Host that is not this server's, if hosts are checked: a page whose name was rebound to
//     this address sends its own name;
//   - change data and come from a page of another origin.
func (s *Site) Protect(access Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.check(r, access); f != nil {
			s.refused.WithLabelValues(f.result).Inc()
			f.write(w, r, access)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Site) check(r *http.Request, access Access) *refusal {
	if s.named && !s.knows(r.Host) {
		return &refusal{"host", http.StatusForbidden, fmt.Errorf("this server does not answer as host %q: --web.allowed-hosts or --web.external-url names further ones", r.Host)}
	}
	if access == Read || access == Public || slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) {
		return nil
	}
	if from := r.Header.Get("Sec-Fetch-Site"); from == "cross-site" || from == "same-site" {
		return &refusal{"origin", http.StatusForbidden, fmt.Errorf("a page of another origin may not do this (Sec-Fetch-Site: %s)", from)}
	}
	if origin := r.Header.Get("Origin"); origin != "" && !s.own(origin, r.Host) {
		return &refusal{"origin", http.StatusForbidden, fmt.Errorf("a page of origin %q may not do this: --web.external-url names this server's own", origin)}
	}
	return nil
}

// knows reports whether a Host header is one of this server. HTTP/1.0 has none, and browsers do not
// use it.
func (s *Site) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(s.hosts, name) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// own reports whether an Origin header is this server's, given the Host of the request.
func (s *Site) own(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // also "null"
	}
	return strings.EqualFold(u.Host, host) || s.external != nil && u.Scheme == s.external.Scheme && strings.EqualFold(u.Host, s.external.Host)
}
