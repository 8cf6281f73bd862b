package all

import (
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
	"github.com/promlake/promlake/tests/bench/wire"
	"github.com/promlake/promlake/tests/support/servertest"
)

// TestDraw: the drawing is well-formed, has a bar for each ratio, and 1 is in the middle.
func TestDraw(t *testing.T) {
	svg := draw([]table.Comparison{
		{Name: `sum by (g) (rate(m{dc="<3>"}[5m]))`, Promlake: 1, Peer: 2},
		{Name: "slower", Unit: "ms", Promlake: 300, Peer: 2, Wanted: table.Wanted{Ratio: 0.5}},
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
	require.Contains(t, svg, ">slower, ms</text>")
	require.Equal(t, 1, strings.Count(svg, `stroke="#000"`))
	require.NotContains(t, svg, "only here")
	require.Equal(t, []float64{textWidth, textWidth + barWidth/2, textWidth + barWidth}, []float64{position(0.01), position(1), position(150)})
}

func TestChosen(t *testing.T) {
	f := Flags{Large: true}
	all := f.steps(full())
	require.Len(t, f.chosen(all), len(full().loads)+len(full().protocols)+8)
	names := func(rows ...string) (out []string) {
		f.Rows = rows
		for _, s := range f.chosen(all) {
			out = append(out, s.name)
		}
		return out
	}
	require.Equal(t, []string{"TSBS cpu-only"}, names("tsbs"))
	require.Equal(t, []string{"small queries, 10,140 series × 1,920 samples"}, names("DERIV"))
	require.Equal(t, []string{"10,140 series × 500 samples, 2,000 in a request", "1,014,000 series × 6 samples, 10,000 in a request"}, names("rollups on top"))
	require.Empty(t, names("no such row"))
	require.ErrorContains(t, f.Run(t.Context()), "no row contains")
	f.Only = []string{server.VictoriaMetrics}
	require.ErrorContains(t, f.Run(t.Context()), "every row is one of promlake")
}

func TestGoals(t *testing.T) {
	s := step{name: "x", goals: []goal{atMost("load", "s", 0.5), within("one", "", 3)}}
	rows := []table.Comparison{{Name: "x: load", Unit: "s"}, {Name: "one", Unit: "MB"}, {Name: "x: load, peak memory", Unit: "MB", Peer: 1}, {Name: "x: load", Unit: "MB"}}
	require.NoError(t, s.set(rows))
	require.Equal(t, []table.Wanted{{Ratio: 0.5}, {Figure: 3}, {Ratio: 1}, {}}, []table.Wanted{rows[0].Wanted, rows[1].Wanted, rows[2].Wanted, rows[3].Wanted})
	require.ErrorContains(t, s.set(rows[:1]), `there is no row "one"`)
	goals := growthGoals([]int{100_000, 1_000_000, 5_000_000})
	require.Len(t, goals, 6)
	require.Equal(t, within("4,999,527 series: samples", "times that of 99,879 series", 1.25), goals[3])
}

func TestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.csv")
	rows := []table.Comparison{{Name: `a{b="c"}: load, peak`, Unit: "MB", Promlake: 1, Peer: 3}, {Name: "alone", Unit: "s", Promlake: 1}}
	for range 2 {
		require.NoError(t, record(file, "1.2.3", time.Unix(86400, 0), rows))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	line := `1970-01-02,1.2.3,"a{b=""c""}: load, peak",MB,0.333` + "\n"
	require.Equal(t, "date,version,measured,unit,ratio\n"+line+line, string(text))
	require.Error(t, record(filepath.Join(file, "x"), "", time.Now(), nil))
}

// trial is as little as all steps can measure.
func trial() sizes {
	s := full()
	s.loads = []load{{1, 20, 200, 10 * time.Second, true, wire.V1, s.loads[0].goals}, {2, 3, 200, 15 * time.Second, true, wire.V1, s.loads[3].goals}}
	s.protocols = []load{{1, 3, 200, 15 * time.Second, false, wire.Influx, nil}}
	s.settle, s.day, s.dashboard, s.smallest = 0, 30*time.Minute, 30*time.Minute, 10*time.Second
	s.ranges = []time.Duration{15 * time.Minute}
	s.mixed = query.Flags{Series: 200, Samples: 200 * 130, History: 3 * time.Hour, Rounds: 1, Cold: true, Bucket: true, Mix: time.Second}
	s.hosts.Hosts, s.hosts.Span, s.hosts.Rounds = 8, 30*time.Minute, 1
	s.tsbs.Hosts, s.tsbs.Span, s.tsbs.Rounds = 10, 30*time.Minute, 1
	s.live = query.Live{Hosts: 2, Scrapes: 80, Pace: 2000, Rounds: 1, Mix: time.Millisecond}
	s.growth, s.growthQueries = []int{507, 1014}, 2
	return s
}

// TestTrial measures all rows of a Promlake with little data: there is a row for every goal.
func TestTrial(t *testing.T) {
	f := Flags{}
	var err error
	f.ServerBin, err = servertest.Program("cmd/promlake", t.TempDir())
	require.NoError(t, err)
	f.Only = []string{server.Promlake}
	gateway, err := exec.Command("go", "-C", "../../..", "tool", "-modfile=tests/tools/go.mod", "-n", "versitygw").Output()
	require.NoError(t, err)
	f.GatewayBin = strings.TrimSpace(string(gateway))
	all, err := f.measure(t.Context(), f.steps(trial()))
	require.NoError(t, err)
	zero := 0
	for _, c := range all {
		require.Zero(t, c.Peer, c.Name)
		if c.Promlake == 0 {
			zero++
		}
	}
	require.Greater(t, len(all), 100)
	require.Less(t, zero, len(all)/2)
	text := table.Comparisons(all)
	require.Equal(t, "wanted", text[0][5])
}
