package index

import (
	"context"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
)

// TestMatchingEndsWithItsRequest: a regular expression can take milliseconds for each of many
// values.
func TestMatchingEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := &dict{text: "abc", ends: []uint32{0, 1, 2, 3}}
	for _, m := range []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchRegexp, "l", "(.*b){2}.*"),
		labels.MustNewMatcher(labels.MatchNotRegexp, "l", "(.*b){2}.*"),
		labels.MustNewMatcher(labels.MatchRegexp, "l", "a|c"),
		labels.MustNewMatcher(labels.MatchEqual, "l", "b"),
	} {
		_, err := d.matching(ctx, m)
		require.ErrorIs(t, err, context.Canceled, m)
		_, err = d.matching(t.Context(), m)
		require.NoError(t, err, m)
	}
}
