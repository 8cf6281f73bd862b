package settings_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
)

type part struct {
	Size  int64         `name:"size" type:"bytes" default:"4KiB" min:"1KiB" max:"1MiB"`
	Pause time.Duration `name:"pause" default:"1m" above:"0"`
}

type all struct {
	Part  part
	Count int                      `name:"count" default:"7" min:"-1"`
	Zero  int                      `name:"zero" default:"5" min:"0"`
	Free  int                      `name:"free" default:"3"`
	On    bool                     `name:"on" default:"true"`
	Kind  string                   `name:"kind" default:"red" enum:"red,blue"`
	List  []string                 `name:"list" default:"a,b" min:"1"`
	Keep  time.Duration            `name:"keep" type:"period" default:"1w" min:"0"`
	Of    map[string]time.Duration `name:"of" type:"period"`
	Other any
	own   int
}

func TestDefault(t *testing.T) {
	want := all{Part: part{4096, time.Minute}, Count: 7, Zero: 5, Free: 3, On: true, Kind: "red", List: []string{"a", "b"}, Keep: 7 * 24 * time.Hour}
	require.Equal(t, want, settings.Default[all]())
	require.NoError(t, settings.Check(want))
	require.NoError(t, settings.Check(&want))
}

// TestFill: a zero that is a value of its own is kept.
func TestFill(t *testing.T) {
	s := all{own: 1, Kind: "blue"}
	settings.Fill(&s)
	require.Equal(t, all{Part: part{4096, time.Minute}, Count: 7, Kind: "blue", List: []string{"a", "b"}, own: 1}, s)
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*all){
		"size: want at least 1KiB, got 1023":                                   func(s *all) { s.Part.Size = 1023 },
		"size: want at most 1MiB, got 2MiB":                                    func(s *all) { s.Part.Size = 2 << 20 },
		"pause: want more than 0, got 0s":                                      func(s *all) { s.Part.Pause = 0 },
		"count: want at least -1, got -2":                                      func(s *all) { s.Count = -2 },
		`kind: want one of red, blue, got "green"`:                             func(s *all) { s.Kind = "green" },
		"list: want at least 1, got []":                                        func(s *all) { s.List = nil },
		"keep: want at least 0, got -1ns":                                      func(s *all) { s.Keep = -1 },
		"of: want 0 or more, got a=-1ns":                                       func(s *all) { s.Of = map[string]time.Duration{"a": -1} },
		"zero: want at least 0, got -1\nkind: want one of red, blue, got \"\"": func(s *all) { s.Zero, s.Kind = -1, "" },
	} {
		s := settings.Default[all]()
		change(&s)
		require.EqualError(t, settings.Check(s), want)
	}
}

// TestCheckGiven: a zero that only stands for the default is not what an operator may give.
func TestCheckGiven(t *testing.T) {
	v := reflect.ValueOf(all{})
	for name, want := range map[string]string{"Count": "count: want a number other than 0, got 0", "Zero": "", "Free": "", "On": "", "Keep": ""} {
		f, _ := v.Type().FieldByName(name)
		err := settings.CheckGiven(f.Tag, v.FieldByName(name))
		if want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

// TestTexts: what is written is read back.
func TestTexts(t *testing.T) {
	want := all{Part: part{1536, 90 * time.Minute}, Count: -1, On: true, Kind: "x", List: []string{"p"}, Keep: 36 * time.Hour, Of: map[string]time.Duration{"b": 0, "a": time.Hour}}
	var got all
	for _, name := range []string{"Count", "On", "Kind", "List", "Keep", "Of"} {
		f, _ := reflect.TypeFor[all]().FieldByName(name)
		typ := f.Tag.Get("type")
		text := settings.Format(reflect.ValueOf(want).FieldByName(name), typ)
		require.NoError(t, settings.Parse(text, typ, reflect.ValueOf(&got).Elem().FieldByName(name)), "%s %s", name, text)
	}
	want.Part = part{}
	require.Equal(t, want, got)
	require.Equal(t, "a=1h,b=0s", settings.Format(reflect.ValueOf(want.Of), "period"))
}
