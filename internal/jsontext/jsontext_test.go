package jsontext_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/jsontext"
)

// TestRaw: a value ends where its JSON ends, whatever its strings contain.
func TestRaw(t *testing.T) {
	for _, value := range []string{
		`{}`, `[]`, `""`, `1`, `-0.5e3`, `null`, `{"a":"b"}`, `{"a":{"b":"c"}}`, `{"a":[1,{"b":2}],"c":"]"}`, `[{"a":"}"},"{"]`,
		`{"a":"}"}`, `{"a":"{"}`, `{"a":"\""}`, `{"a":"\\"}`, `{"a":"\\\"}"}`, `{"}":"}"}`, `{"a":"x}y}z"}`, `"\\\""`, `"\\"`, `{"a":"\"","b":"}"}`,
	} {
		require.True(t, json.Valid([]byte(value)), value)
		for _, after := range []string{"", ",", "}", "]", `,"x":{"y":"}"}`} {
			raw, err := jsontext.New([]byte(" " + value + after)).Raw()
			if after == "" && value[0] != '{' && value[0] != '[' && value[0] != '"' {
				require.Error(t, err, "nothing ends %s", value)
				continue
			}
			require.NoError(t, err, value+after)
			require.Equal(t, value, string(raw), value+after)
		}
	}
	for _, cut := range []string{`{"a":"b"`, `{"a":"}`, `"a`, `"\"`, `"\\\"`, `[{"a":1}`, `{"a":{}`, `{`, `"`, `1`} {
		_, err := jsontext.New([]byte(cut)).Raw()
		require.Error(t, err, cut)
	}
	_, err := jsontext.New([]byte(`,1`)).Raw()
	require.EqualError(t, err, `',' at byte 1, where a value is expected`)
}

// TestObject: names and strings are those of encoding/json.
func TestObject(t *testing.T) {
	const text = `{ "a" : "b" , "\u00fc\n" : "\"}" , "" : "ü" }`
	var want map[string]string
	require.NoError(t, json.Unmarshal([]byte(text), &want))
	got := map[string]string{}
	p := jsontext.New([]byte(text))
	require.NoError(t, p.Object(func(name string) error {
		value, err := p.String()
		got[name] = value
		return err
	}))
	require.NoError(t, p.End())
	require.Equal(t, want, got)
}

// FuzzRaw: the end of a valid value is found, whatever follows.
func FuzzRaw(f *testing.F) {
	f.Add([]byte(`{"a":"\\\"}","b":[{}, "]"]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		var compact json.RawMessage
		if json.Unmarshal(value, &compact) != nil {
			return
		}
		raw, err := jsontext.New(append(append([]byte{}, compact...), `,"}"`...)).Raw()
		require.NoError(t, err)
		require.Equal(t, string(compact), string(raw))
	})
}
