package promapp

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

func TestLingerFollowsTheShortestInterval(t *testing.T) {
	scrapes := []*config.ScrapeConfig{{ScrapeInterval: model.Duration(time.Minute)}, {ScrapeInterval: model.Duration(10 * time.Second)}}
	require.Equal(t, 10*time.Second, shortest(scrapes, scrapeInterval))
	require.Zero(t, shortest(nil, scrapeInterval))
	for _, c := range []struct{ scrapes, rules, want time.Duration }{
		{0, 0, 4 * time.Second},
		{time.Minute, time.Minute, 4 * time.Second},
		{10 * time.Second, time.Minute, 2500 * time.Millisecond},
		{15 * time.Second, 8 * time.Second, 2 * time.Second},
		{100 * time.Millisecond, time.Minute, time.Second},
	} {
		intervals := map[any]time.Duration{}
		for origin, d := range map[string]time.Duration{"scrapes": c.scrapes, "rules": c.rules} {
			if d > 0 {
				intervals[origin] = d
			}
		}
		require.Equal(t, c.want, lingerOf(intervals), "%v", c)
	}
}
