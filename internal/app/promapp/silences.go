package promapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/notifier"

	"github.com/promlake/promlake/internal/access/tenant"
)

// The paths of silences in Alertmanager's API, version 2:
// https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
const (
	silences   = "/alertmanager/api/v2/silences"
	oneSilence = "/alertmanager/api/v2/silence/"
)

const (
	// maxSilence bounds a silence in a request, in bytes.
	maxSilence = 64 << 10
	// maxSilences bounds the answer of an Alertmanager, in bytes.
	maxSilences = 4 << 20
	// maxComplaint is how much of another answer an error repeats, in bytes.
	maxComplaint = 512
)

var silenceID = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`)

// silence passes a request for silences to an Alertmanager. As with Alertmanager, an error is a
// JSON text:
//
//	400   the tenant, the identifier of a silence, or what Alertmanager refuses
//	404   the tenant has no Alertmanager, or Alertmanager no such silence
//	413   the silence is too large
//	415   it is not sent as application/json, which no page of another site may do
//	502   no Alertmanager answered
func (m *Monitor) silence(w http.ResponseWriter, r *http.Request) {
	code, answer, err := m.silenced(w, r)
	if err != nil {
		answer, _ = json.Marshal(err.Error()) // a text
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(answer) // errors mean that the client closed the connection
}

// silenced returns the answer of the first Alertmanager that answers: those of a configuration are
// a cluster, whose members share silences.
func (m *Monitor) silenced(w http.ResponseWriter, r *http.Request) (code int, answer []byte, err error) {
	id, err := tenant.FromRequest(r)
	if err != nil {
		return http.StatusBadRequest, nil, err
	}
	var all []alertmanager
	if m.shows(tenant.With(r.Context(), id)) {
		all = m.notifying.alertmanagers()
	}
	if len(all) == 0 {
		return http.StatusNotFound, nil, fmt.Errorf("tenant %q has no Alertmanager: --config.file names Alertmanagers below alerting, and --config.tenant the tenant", id)
	}
	below := "silences"
	var body []byte
	switch r.Method {
	case http.MethodDelete:
		if !silenceID.MatchString(r.PathValue("id")) {
			return http.StatusBadRequest, nil, fmt.Errorf("silence %q: want the UUID of a silence", r.PathValue("id"))
		}
		below = "silence/" + r.PathValue("id")
	case http.MethodPost:
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			return http.StatusUnsupportedMediaType, nil, fmt.Errorf("content type %q: want application/json", r.Header.Get("Content-Type"))
		}
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxSilence)); err != nil {
			if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
				return http.StatusRequestEntityTooLarge, nil, fmt.Errorf("the silence has more than %d bytes", maxSilence)
			}
			return http.StatusBadRequest, nil, fmt.Errorf("read the silence: %w", err)
		}
	}
	var errs []error
	for _, a := range all {
		code, answer, err := a.ask(r.Context(), r.Method, below, r.URL.RawQuery, body)
		if err == nil {
			return code, answer, nil
		}
		errs = append(errs, fmt.Errorf("ask Alertmanager: %w", err))
		// Two would store a new silence twice if the first one has got it.
		if refused := new(net.OpError); r.Method == http.MethodPost && !(errors.As(err, &refused) && refused.Op == "dial") {
			break
		}
	}
	return http.StatusBadGateway, nil, errors.Join(errs...)
}

// alertmanager is one to which the notifier sends alerts.
type alertmanager struct {
	url     url.URL // of alerts
	timeout time.Duration
	client  *http.Client // with the credentials of the configuration
}

// alertmanagers returns those that are discovered, by their addresses.
func (n *notifying) alertmanagers() (all []alertmanager) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, groups := range n.found {
		set, ok := n.sets[name]
		if !ok {
			continue // of the configuration before
		}
		for _, g := range groups {
			found, _, err := notifier.AlertmanagerFromGroup(g, set.config)
			if err != nil {
				continue // the notifier logs it
			}
			for _, a := range found { // upstream's type has the labels, and no address that others may read
				if l, ok := a.(interface{ Get(name string) string }); ok {
					u := url.URL{Scheme: l.Get(model.SchemeLabel), Host: l.Get(model.AddressLabel), Path: l.Get("__alerts_path__")}
					all = append(all, alertmanager{u, time.Duration(set.config.Timeout), set.client})
				}
			}
		}
	}
	slices.SortFunc(all, func(x, y alertmanager) int { return strings.Compare(x.url.String(), y.url.String()) })
	return all
}

// ask returns what the Alertmanager answers to a request: that it was done, that it is invalid, or
// that there is no such silence. Everything else is an error.
func (a alertmanager) ask(ctx context.Context, method, below, query string, body []byte) (code int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	to := a.url
	to.Path, to.RawQuery = path.Join(path.Dir(to.Path), below), query
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := a.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxSilences+1))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return 0, nil, err
	}
	switch code = res.StatusCode; {
	case len(answer) > maxSilences:
		return 0, nil, fmt.Errorf("%s: the answer has more than %d bytes", to.Redacted(), maxSilences)
	case code/100 == 2 || code == http.StatusBadRequest || code == http.StatusNotFound && method == http.MethodDelete:
		return code, answer, nil
	default:
		return 0, nil, fmt.Errorf("%s: %s: %q", to.Redacted(), res.Status, answer[:min(len(answer), maxComplaint)])
	}
}
