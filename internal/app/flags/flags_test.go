package flags_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
)

// grammar has a flag of each kind that the project uses.
type grammar struct {
	Text    string        `name:"text" help:"Text."`
	Wait    time.Duration `name:"a.wait-time" help:"A duration."`
	Size    int64         `name:"size" type:"bytes" help:"A size."`
	Count   int           `name:"count" help:"A number."`
	Ratio   float64       `name:"ratio" help:"A ratio."`
	On      bool          `name:"on" help:"A switch." negatable:""`
	List    []string      `name:"list" help:"A list."`
	Nothing int64         `name:"nothing" help:"A number without a default."`
	Keep    time.Duration `name:"keep" type:"period" help:"A period."`

	Tenants map[string]time.Duration `name:"tenants" type:"period" help:"Periods of tenants."`

	Share    int64         `name:"share" default:"1" min:"1" max:"2" help:"A number with limits."`
	Patience time.Duration `name:"patience" default:"1m" above:"0" max:"1h" help:"A duration with limits."`

	Kind  string `name:"kind" enum:"red,blue" required:"" help:"One of ${enum}."`
	Store string `name:"store" help:"A URL."`
	Token string `name:"token" help:"A secret." secret:""`
	Other string `name:"other-token" help:"A secret that is not given." secret:""`

	fail error
	seen flags.Values
}

func defaults() grammar {
	return grammar{
		Text: "$HOME ${x}", Wait: 90 * time.Minute, Size: 64 << 20, Count: 7, Ratio: 0.5, On: true, Kind: "red", List: []string{"a", "b"},
		Keep: 36 * time.Hour, Share: 1, Patience: time.Minute, Tenants: map[string]time.Duration{"a": 7 * 24 * time.Hour},
	}
}

func (g *grammar) Run(ctx context.Context, io flags.Streams, vs flags.Values) error {
	g.seen = vs
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := io.Out.Write([]byte("ran\n")); err != nil {
		return err
	}
	return g.fail
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		want func(*grammar)
	}{
		{"defaults come from the struct", nil, nil, func(*grammar) {}},
		{
			"arguments", []string{"--text=x", "--a.wait-time=5s", "--size=1KiB", "--count=0", "--no-on", "--list=c", "--nothing=3"}, nil,
			func(g *grammar) {
				g.Text, g.Wait, g.Size, g.Count, g.On, g.List, g.Nothing = "x", 5*time.Second, 1024, 0, false, []string{"c"}, 3
			},
		},
		{
			"variables", nil,
			map[string]string{"PROMLAKE_TEXT": "e", "PROMLAKE_A_WAIT_TIME": "1s", "PROMLAKE_SIZE": "12", "PROMLAKE_ON": "false", "PROMLAKE_LIST": "x,y,z"},
			func(g *grammar) {
				g.Text, g.Wait, g.Size, g.On, g.List = "e", time.Second, 12, false, []string{"x", "y", "z"}
			},
		},
		{
			"an argument beats its variable", []string{"--count=1"}, map[string]string{"PROMLAKE_COUNT": "2"},
			func(g *grammar) { g.Count = 1 },
		},
		{
			"periods", []string{"--keep=30d", "--tenants=a=1w", "--tenants", "b=0"}, nil,
			func(g *grammar) {
				g.Keep = 30 * 24 * time.Hour
				g.Tenants = map[string]time.Duration{"a": 7 * 24 * time.Hour, "b": 0}
			},
		},
		{
			"periods as variables", nil, map[string]string{"PROMLAKE_KEEP": "0", "PROMLAKE_TENANTS": "a=1d,b=2h30m"},
			func(g *grammar) {
				g.Keep = 0
				g.Tenants = map[string]time.Duration{"a": 24 * time.Hour, "b": 150 * time.Minute}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			got, want := defaults(), defaults()
			k, err := flags.NewParser("test", "A test.", &got)
			require.NoError(t, err)
			_, err = k.Parse(tc.args)
			require.NoError(t, err)
			tc.want(&want)
			require.Equal(t, want, got)
		})
	}
}

func TestMain_ExitCodes(t *testing.T) {
	for _, tc := range []struct {
		name           string
		args           []string
		fail           error
		code           int
		stdout, stderr string
	}{
		{"fine", nil, nil, 0, "ran\n", ""},
		{"error on one line", nil, errors.Join(errors.New("one"), errors.New("two")), 1, "ran\n", "test: error: one; two\n"},
		{"unknown flag", []string{"--bogus"}, nil, 2, "", "test: error: unknown flag --bogus (see test --help)\n"},
		{"bad enum", []string{"--kind=green"}, nil, 2, "", `test: error: --kind must be one of "red","blue" but got "green" (see test --help)` + "\n"},
		{"bad period", []string{"--keep=long"}, nil, 2, "", `test: error: --keep: period "long": want one such as 90m, 36h or 30d (see test --help)` + "\n"},
		{
			"bad period of a tenant", []string{"--tenants=a"}, nil, 2, "",
			`test: error: --tenants: period of a tenant "a": want tenant=period such as team-a=30d (see test --help)` + "\n",
		},
		{"bad size", []string{"--size=many"}, nil, 2, "", `test: error: --size: size "many": want bytes such as 1048576 or 64MiB (see test --help)` + "\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			g := defaults()
			g.fail = tc.fail
			code := flags.Main(t.Context(), "test", "A test.", &g, tc.args, flags.Streams{Out: &stdout, Err: &stderr})
			require.Equal(t, tc.code, code)
			require.Equal(t, tc.stdout, stdout.String())
			require.Equal(t, tc.stderr, stderr.String())
		})
	}
}

func TestBadVariable(t *testing.T) {
	t.Setenv("PROMLAKE_COUNT", "many")
	var stderr bytes.Buffer
	g := defaults()
	require.Equal(t, 2, flags.Main(t.Context(), "test", "A test.", &g, nil, flags.Streams{Out: &stderr, Err: &stderr}))
	require.Contains(t, stderr.String(), `PROMLAKE_COUNT="many"`)
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "4KiB": 4096, "64MiB": 64 << 20, "1GiB": 1 << 30, "1TiB": 1 << 40} {
		got, err := settings.ParseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "x", "1 apple", "KiB"} {
		_, err := settings.ParseBytes(text)
		require.ErrorContains(t, err, "want bytes", text)
	}
}

func TestValues(t *testing.T) {
	g := defaults()
	args := []string{"--store=s3://bucket/p?secret=x", "--text=a \"b\"", "--token=hush"}
	require.Equal(t, 0, flags.Main(t.Context(), "test", "A test.", &g, args, flags.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}))
	require.Equal(t, `a.wait-time: "1h30m"
count: "7"
keep: "1d12h"
kind: "red"
list: "a,b"
nothing: "0"
on: "true"
other-token: ""
patience: "1m"
ratio: "0.5"
settings.file: ""
share: "1"
size: "64MiB"
store: "s3://bucket/p"
tenants: "a=1w"
text: "a \"b\""
token: "<secret>"
`, g.seen.YAML())
	require.Equal(t, "64MiB", g.seen.Map()["size"])
}

// TestVersion: every program prints its version, which is no setting.
func TestVersion(t *testing.T) {
	t.Setenv("PROMLAKE_VERSION", "no switch")
	g := defaults()
	var out bytes.Buffer
	require.PanicsWithValue(t, 0, func() {
		flags.Main(t.Context(), "test", "A test.", &g, []string{"--version"}, flags.Streams{Out: &out, Err: &out}, kong.Exit(func(code int) { panic(code) }))
	})
	require.Equal(t, telemetry.ReadBuild().String()+"\n", out.String())
	require.Equal(t, 0, flags.Main(t.Context(), "test", "A test.", &g, nil, flags.Streams{Out: &out, Err: &out}), out.String())
}
