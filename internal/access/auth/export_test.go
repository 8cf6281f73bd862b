package auth

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// NewRemote returns a guard with a remote document.
func NewRemote(from Secret, logger *slog.Logger, now func() time.Time) *Guard {
	return newGuard(newRemoteKeys(from, logger, now), prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"result"}))
}
