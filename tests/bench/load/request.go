package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/promlake/promlake/tests/bench/wire"
)

// Outcomes of a request without a status code, or with a successful one that is not credible.
const (
	OutcomeTimeout   = "timeout"
	OutcomeTransport = "transport error"
	// 2xx, but the headers of protocol 2, or OTLP's answer, do not confirm every sample
	OutcomeUnconfirmed = "unconfirmed"
	// lines over TCP, which no server answers, are with the kernel
	OutcomeWritten = "written"
)

// headerWritten is how a receiver of protocol 2 confirms samples; without it none count as written
// (Remote-Write 2.0, "Required Written Response Headers").
const headerWritten = "X-Prometheus-Remote-Write-Samples-Written"

// maxMessage is how many bytes of an error's body are kept.
const maxMessage = 300

// outcome is the result of a request.
type outcome struct {
	kind    string // the status code, or one of the outcomes above
	message string // of a failure
	ok      bool
}

// requestHeaders returns the headers of a real sender of protocol v.
func requestHeaders(v wire.Version, further map[string]string) http.Header {
	h := http.Header{}
	h.Set("User-Agent", "promlake-bench")
	switch v {
	case wire.V2:
		h.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
		h.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
	case wire.Influx, wire.Text, wire.CSV:
		h.Set("Content-Type", "text/plain; charset=utf-8")
	case wire.OpenTSDB, wire.JSONLines:
		h.Set("Content-Type", "application/json")
	case wire.OTLP, wire.Datadog:
		h.Set("Content-Type", "application/x-protobuf")
	default:
		h.Set("Content-Type", "application/x-protobuf")
		h.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	}
	if v.Remote() {
		h.Set("Content-Encoding", "snappy")
	}
	for name, value := range further {
		h.Set(name, value)
	}
	return h
}

// post sends one body with samples many samples and judges the answer.
func (s *sender) post(ctx context.Context, body []byte, samples int) outcome {
	ctx, cancel := context.WithTimeout(ctx, s.settings.Timeout)
	defer cancel()
	if s.settings.Protocol == wire.Graphite {
		return s.stream(ctx, body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.settings.URL, bytes.NewReader(body))
	if err != nil {
		return outcome{kind: OutcomeTransport, message: fmt.Sprintf("make request: %v", err)}
	}
	req.Header = s.headers
	resp, err := s.client.Do(req)
	if err != nil {
		return broken(err)
	}
	defer resp.Body.Close() // read to its end below
	message, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body) // else the connection is not used again
	}
	if err != nil {
		return broken(fmt.Errorf("read answer: %w", err))
	}
	return judge(s.settings.Protocol, resp.StatusCode, resp.Header, message, samples)
}

// stream writes one body to the sender's connection, which the first one opens. A failure closes it.
func (s *sender) stream(ctx context.Context, body []byte) outcome {
	if s.conn == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(s.settings.URL, "tcp://"))
		if err != nil {
			return broken(err)
		}
		s.conn = conn
	}
	deadline, _ := ctx.Deadline()
	err := s.conn.SetWriteDeadline(deadline)
	if err == nil {
		_, err = s.conn.Write(body)
	}
	if err != nil {
		err = errors.Join(err, s.conn.Close())
		s.conn = nil
		return broken(err)
	}
	return outcome{kind: OutcomeWritten, ok: true}
}

func judge(v wire.Version, status int, h http.Header, message []byte, samples int) outcome {
	code := strconv.Itoa(status)
	if status < 200 || status > 299 {
		return outcome{kind: code, message: strings.TrimSpace(string(message))}
	}
	if v == wire.V2 && h.Get(headerWritten) != strconv.Itoa(samples) {
		return outcome{kind: OutcomeUnconfirmed, message: fmt.Sprintf("status %s, %s: %q, sent %d", code, headerWritten, h.Get(headerWritten), samples)}
	}
	if v == wire.OTLP && len(message) > 0 && status == http.StatusOK {
		return outcome{kind: OutcomeUnconfirmed, message: "partial success: " + strings.TrimSpace(string(message))}
	}
	return outcome{kind: code, ok: true}
}

func broken(err error) outcome {
	if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
		return outcome{kind: OutcomeTimeout, message: err.Error()}
	}
	return outcome{kind: OutcomeTransport, message: err.Error()}
}
