package uploadapp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/uploadapp"
)

// only limits the pending uploads of one tenant.
type only struct {
	tenant string
	limit  int
}

// PendingUploads implements uploadapp.Tenants.
func (o only) PendingUploads(_ context.Context, tenant string) int {
	if tenant == o.tenant {
		return o.limit
	}
	return 0
}

// TestPendingLimit: a block beyond the limit is refused until another one is imported or deleted.
// Uploads that have begun go on.
func TestPendingLimit(t *testing.T) {
	c := &clock{}
	store := newStore(c)
	s := serve(t, store, func(o *options) { o.settings.MaxPending = 2 })
	a, b, third := small(t, "a"), small(t, "b"), small(t, "c")
	const text = "the tenant has 2 blocks whose upload has begun and that are not imported, the limit is 2: finish these, wait for their import, or raise --compactor.block-upload-max-pending-blocks"
	s.send(a)
	s.want(200, "", b.id, "start", b.meta)
	s.want(http.StatusTooManyRequests, text, third.id, "start", third.meta)
	s.want(200, "", b.id, "start", b.meta)
	s.want(http.StatusNotFound, "not started", third.id, "finish", nil)
	require.NoError(t, testutil.GatherAndCompare(s.reg, strings.NewReader(`# HELP promlake_block_upload_limited_requests_total Uploads of blocks that were refused by a limit.
# TYPE promlake_block_upload_limited_requests_total counter
promlake_block_upload_limited_requests_total{limit="compactor.block-upload-max-pending-blocks"} 1
`), "promlake_block_upload_limited_requests_total"))

	s.upload(a)
	s.want(200, "", third.id, "start", third.meta)
	s.want(http.StatusConflict, "already exists", a.id, "start", a.meta)
	other := small(t, "d")
	s.want(http.StatusTooManyRequests, text, other.id, "start", other.meta)
	c.pass(25 * time.Hour)
	require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
	s.want(200, "", other.id, "start", other.meta)
}

// TestPendingLimitOfTenant: the limits of single tenants count instead of the flag; 0 is no limit.
func TestPendingLimitOfTenant(t *testing.T) {
	for _, tc := range []struct {
		limits only
		status int
	}{
		{only{name, 1}, http.StatusTooManyRequests},
		{only{"another", 1}, http.StatusOK},
	} {
		s := serve(t, newStore(&clock{}), func(o *options) { o.settings.MaxPending, o.settings.Tenants = 1, tc.limits })
		for i, b := range []block{small(t, "a"), small(t, "b")} {
			s.want([]int{http.StatusOK, tc.status}[i], "", b.id, "start", b.meta)
		}
	}
}
