package promapp

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
)

// reload reads the configuration again and applies it. If it cannot be read, the former one stays.
func (m *Monitor) reload() error {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	if m.met.stopped {
		return errors.New("the process is shutting down")
	}
	c, err := m.set.load(m.parts)
	if err == nil {
		err = m.apply(c)
	}
	m.met.note(err, m.parts.Now())
	if err != nil {
		m.parts.Logger.Error("the configuration was not reloaded", "file", m.set.ConfigFile, "err", err)
		return err
	}
	m.parts.Logger.Info("the configuration was reloaded", "file", m.set.ConfigFile)
	return nil
}

// onHangup calls f for every SIGHUP until the returned function is called, but not before ready is
// closed.
func onHangup(ready <-chan struct{}, f func()) (end func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		select {
		case <-ready:
		case <-done:
			return
		}
		for {
			select {
			case <-signals:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// graph leads the links of notifications, which are those of Prometheus' page, to the page.
func (m *Monitor) graph(w http.ResponseWriter, r *http.Request) {
	parameters := r.URL.Query()
	if m.tenant != tenant.Default && !parameters.Has(tenantLabel) {
		parameters.Set(tenantLabel, m.tenant)
	}
	// relative, so that it works behind a proxy that removes a prefix
	w.Header().Set("Location", "./#/explore?"+parameters.Encode())
	w.WriteHeader(http.StatusFound)
}

// Routes implements process.Stage: the links of notifications, and with a configuration Prometheus'
// endpoint for reloads.
func (m *Monitor) Routes() []process.Route {
	routes := []process.Route{{Pattern: "GET /graph", Name: "/graph", Access: auth.Public, Handler: http.HandlerFunc(m.graph)}}
	if !m.set.Configured() {
		return routes
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !m.set.Lifecycle {
			http.Error(w, "Lifecycle API is not enabled: set --web.enable-lifecycle.", http.StatusForbidden)
			return
		}
		if err := m.reload(); err != nil {
			http.Error(w, fmt.Sprintf("failed to reload config: %s", err), http.StatusInternalServerError)
		}
	})
	return append(routes,
		process.Route{Pattern: "POST /-/reload", Name: "/-/reload", Access: auth.Operate, Handler: h},
		process.Route{Pattern: "PUT /-/reload", Name: "/-/reload", Access: auth.Operate, Handler: h},
	)
}
