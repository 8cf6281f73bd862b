package series_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/series"
)

func TestLastOfEach(t *testing.T) {
	l := func(pairs ...string) (out []series.Label) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, series.Label{Name: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	require.Empty(t, series.LastOfEach(nil))
	require.Equal(t, l("a", "1"), series.LastOfEach(l("a", "1")))
	require.Equal(t, l("a", "4", "b", "", "c", "3"), series.LastOfEach(l("b", "1", "a", "2", "c", "3", "a", "4", "b", "")))
}
