package wire_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/datadog"
	"github.com/promlake/promlake/tests/bench/wire"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

func TestDatadog(t *testing.T) {
	const now = 1_700_000_000_000
	tmpl, err := wire.New(wire.Datadog, otherSeries())
	require.NoError(t, err)
	body := tmpl.Append(nil, now, []float64{1, 0.5, -2, 1e21})
	limits := remotewrite.DefaultLimits()
	b, err := datadog.Decode(datadog.Request{Body: body, Form: datadog.V2Protobuf}, remotewrite.NewGeneration(1),
		remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 1}, remotewrite.NewRoom(len(body), 1<<20, 1<<20, nil))
	require.NoError(t, err)
	require.NoError(t, b.Err)
	require.Len(t, b.Floats, 4)
	view := b.Generation.Table.View()
	require.Equal(t, `{__name__="a_total", instance="i", job="j", path="/x y,z=\"1\""}`, remotewritetest.Labels(&view, b.Floats[0].Ref))
	require.Equal(t, []any{int64(now), 1e21}, []any{b.Floats[3].T, b.Floats[3].V})
}
