package app

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/demo"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/promapp"
	"github.com/promlake/promlake/internal/app/promconfig"
)

// demoPath shows whether the demo runs (GET), and starts it (POST).
const demoPath = "/api/v1/demo"

// offersDemo reports whether operators may start the demo of a process that was started without it.
// Where requests need no token, only this machine may reach the process.
func (s Settings) offersDemo() bool {
	host, _, _ := net.SplitHostPort(s.Process.Listen)
	return s.Feeder.Offer && s.Prometheus.Enabled() && !s.Prometheus.Configured() && s.Process.WebFile == "" &&
		(s.Process.Auth.Enabled() || host == "localhost" || net.ParseIP(host).IsLoopback())
}

// demoConfig is the configuration of the demo (promapp.Source).
func (s Settings) demoConfig(url, token string, logger *slog.Logger) (*promconfig.Config, error) {
	return demo.Config(s.Feeder, url, token, logger)
}

// demonstration is the demo, or waits for an operator who starts it. It then runs until the process
// ends. It implements process.Stage.
type demonstration struct {
	process.Stage // prints the welcome of --demo
	monitor       *promapp.Monitor
	set           Settings
	machine       http.Handler
}

// demonstrate builds the demonstration, whose welcome goes to out.
func demonstrate(s Settings, monitor *promapp.Monitor, out io.Writer) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		d := demonstration{process.Idle{}, monitor, s, demo.NodeHandler(s.Feeder, p.Logger, p.Now)}
		if s.Demo {
			d.Stage = process.InBackground(p, "demo", func(ctx context.Context) {
				demo.Welcome(ctx, s.Feeder, p.URL, p.Token, out, p.Logger)
			})
		}
		return d, nil
	}
}

// Routes implements process.Stage. The machine has no metrics before the demo runs.
func (d demonstration) Routes() []process.Route {
	node := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.monitor.Configured() {
			http.Error(w, "the demo does not run", http.StatusNotFound)
			return
		}
		d.machine.ServeHTTP(w, r)
	})
	return []process.Route{
		{Pattern: "GET " + demoPath, Name: demoPath, Access: auth.Operate, Handler: d},
		// Pages of other origins can reach a loopback address, too: their browsers say so.
		{Pattern: "POST " + demoPath, Name: demoPath, Access: auth.Operate, Handler: http.NewCrossOriginProtection().Handler(d)},
		{Pattern: "GET " + demo.NodePath, Name: demo.NodePath, Access: auth.Operate, Handler: node},
	}
}

// ServeHTTP starts the demo on POST, unless it runs. The answer says whether it runs, and which
// tenant gets its samples.
func (d demonstration) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		if err := d.monitor.Adopt(d.set.demoConfig); err != nil {
			process.Reply{Status: "error", ErrorType: "unavailable", Error: err.Error()}.Send(w, http.StatusServiceUnavailable)
			return
		}
	}
	data := map[string]any{"running": d.monitor.Configured(), "tenant": d.set.Prometheus.Tenant}
	process.Reply{Status: "success", Data: data}.Send(w, http.StatusOK)
}
