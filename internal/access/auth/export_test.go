package auth

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/secret"
)

// NewRemote returns a guard with a remote document.
func NewRemote(from secret.Source, logger *slog.Logger, now func() time.Time) *Guard {
	return newGuard(newRemoteKeys(from, logger, now), prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"result"}))
}
