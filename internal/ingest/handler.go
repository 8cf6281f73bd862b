package ingest

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/ingest/quota"
)

// Response headers of remote-write 2.0.
const (
	samplesWritten    = "X-Prometheus-Remote-Write-Samples-Written"
	histogramsWritten = "X-Prometheus-Remote-Write-Histograms-Written"
	exemplarsWritten  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

// unsupported is the error for a content type or an encoding that remote-write does not define; the
// answer is 415.
type unsupported struct{ msg string }

func (e unsupported) Error() string { return e.msg }

// negotiate finds the protocol version of a request (remote-write 2.0 specification, "Content
// negotiation"). A content type without a proto parameter means 1.0. As with Prometheus, an absent
// encoding means snappy.
func negotiate(h http.Header) (remotewrite.Protocol, error) {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "snappy") {
		return 0, unsupported{fmt.Sprintf("%s encoding is not supported, only snappy", e)}
	}
	ct := h.Get("Content-Type")
	if ct == "" {
		return remotewrite.V1, nil
	}
	mt, params, err := mime.ParseMediaType(ct)
	if err != nil || mt != "application/x-protobuf" {
		return 0, unsupported{fmt.Sprintf("content type %q is not supported, only application/x-protobuf", ct)}
	}
	switch p := params["proto"]; p {
	case "", "prometheus.WriteRequest":
		return remotewrite.V1, nil
	case "io.prometheus.write.v2.Request":
		return remotewrite.V2, nil
	default:
		return 0, unsupported{fmt.Sprintf("remote-write message %q is not supported, only prometheus.WriteRequest and io.prometheus.write.v2.Request", p)}
	}
}

// Handler serves POST remote_write requests of both protocol versions.
func (s *Stage) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "remote_write takes POST only", http.StatusMethodNotAllowed)
			return
		}
		version, err := negotiate(r.Header)
		var n remotewrite.Tally
		if err == nil {
			decode := func(msg []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				return remotewrite.Decode(version, msg, g, rules, room)
			}
			n, err = s.write(w, r, wireFormat{packing: body.Snappy, form: "protobuf", most: remotewrite.MostRoom, decode: decode})
		}
		code := s.answered(w, err, version.String())
		if version == remotewrite.V2 {
			h := w.Header()
			h.Set(samplesWritten, strconv.Itoa(n.Floats))
			h.Set(histogramsWritten, strconv.Itoa(n.Hists))
			h.Set(exemplarsWritten, strconv.Itoa(n.Exemplars))
		}
		if err == nil {
			w.WriteHeader(code)
			return
		}
		http.Error(w, s.public(r, err, code), code)
	})
}

// answered counts a request, sets the headers that go with its error, and returns its status code.
func (s *Stage) answered(w http.ResponseWriter, err error, protocol string) int {
	code := status(err)
	s.answeredWith(w, err, protocol, code)
	return code
}

// answeredWith is answered with a status code that the protocol chose.
func (s *Stage) answeredWith(w http.ResponseWriter, err error, protocol string, code int) {
	s.countLimited(err)
	s.met.requests.WithLabelValues(protocol, strconv.Itoa(code)).Inc()
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		wait := 1
		if rate, ok := errors.AsType[*quota.RateError](err); ok {
			wait = int(math.Ceil(rate.Wait.Seconds()))
		}
		w.Header().Set("Retry-After", strconv.Itoa(wait))
	}
	if is[*body.SlowError](err) {
		w.Header().Set("Connection", "close") // the rest of the body is not waited for
	}
}

// extraLabels are the labels of the parameters extra_label=name=value of a request, as
// remotewrite.Rules has them. VictoriaMetrics defines them: they are added to every series, instead
// of its labels of the same name.
func extraLabels(r *http.Request, limits *remotewrite.Limits) ([]series.Label, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	var labels []series.Label
	for _, text := range r.URL.Query()["extra_label"] {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, errParameter{fmt.Errorf("extra_label: label %q must have the form name=value", text)}
		}
		labels = append(labels, series.Label{Name: name, Value: value})
	}
	labels, err := limits.CheckExtra(labels)
	if err != nil {
		return nil, errParameter{fmt.Errorf("extra_label: %w", err)}
	}
	return labels, nil
}
