package telemetry

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Instrument returns a middleware that measures handlers:
//
//	promlake_http_request_duration_seconds{handler,method,code}   histogram, until the handler
//	                                                              returns
//	promlake_http_requests_in_flight{handler}                     gauge
//
// The handler name becomes a label, so it must be from a fixed set and never from a request.
// Methods unknown to HTTP are counted as "unknown". The wrapped ResponseWriter flushes if the
// server's does. Instrument may be called several times with one registry; the middlewares share
// the metrics. A nil reg publishes nothing. It panics if reg has other metrics of these names,
// which is a bug.
func Instrument(reg prometheus.Registerer) func(handlerName string, h http.Handler) http.Handler {
	duration := Registered(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "promlake_http_request_duration_seconds",
		Help:    "Seconds from a request's arrival at its handler until the handler returned.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
	}, []string{"handler", "method", "code"}))
	inFlight := Registered(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "promlake_http_requests_in_flight",
		Help: "Requests that a handler is serving now.",
	}, []string{"handler"}))
	return func(handlerName string, h http.Handler) http.Handler {
		label := prometheus.Labels{"handler": handlerName}
		return promhttp.InstrumentHandlerInFlight(inFlight.With(label),
			promhttp.InstrumentHandlerDuration(duration.MustCurryWith(label), h))
	}
}

// Registered registers c with reg, or returns the equal collector that reg already has. A nil reg
// publishes nothing. It panics if reg has another collector of the name, which is a bug.
func Registered[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	if err == nil {
		return c
	}
	if old, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := old.ExistingCollector.(C); ok {
			return existing
		}
	}
	panic(err)
}
