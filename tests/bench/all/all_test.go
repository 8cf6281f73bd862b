package all

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/table"
)

// TestDraw: the drawing is well-formed, has a bar for each ratio, and 1 is in the middle.
func TestDraw(t *testing.T) {
	svg := draw([]table.Comparison{
		{Name: `sum by (g) (rate(m{dc="<3>"}[5m]))`, Promlake: 1, Peer: 2},
		{Name: "slower", Promlake: 300, Peer: 2},
		{Name: "only here", Promlake: 3},
	})
	d := xml.NewDecoder(strings.NewReader(svg))
	var err error
	for err == nil {
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 2, strings.Count(svg, `fill="#2f7d4f"`)+strings.Count(svg, `fill="#b5483a"`))
	require.Contains(t, svg, ">150.00</text>")
	require.NotContains(t, svg, "only here")
	require.Equal(t, []float64{textWidth, textWidth + barWidth/2, textWidth + barWidth}, []float64{position(0.01), position(1), position(150)})
}

func TestSteps(t *testing.T) {
	f := Flags{Large: true}
	require.Len(t, f.steps(), len(loads())+3)
}

func TestComparisons(t *testing.T) {
	rows := table.Comparisons([]table.Comparison{{Name: "a", Unit: "ms", Promlake: 1.234, Peer: 2.468}, {Name: "b", Unit: "MB", Promlake: 1234}})
	require.Equal(t, [][]string{{"a", "ms", "1.23", "2.47", "0.50"}, {"b", "MB", "1234", "–", "–"}}, rows[1:])
}
