package jsontext_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/jsontext"
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

// TestPairs: pairs are those of encoding/json, and all other text is left to others.
func TestPairs(t *testing.T) {
	read := func(text string) (pairs [][2]int64, ok bool, p *jsontext.Parser) {
		p = jsontext.New([]byte(text))
		ok = p.Pairs(func(a, b int64) { pairs = append(pairs, [2]int64{a, b}) })
		return pairs, ok, p
	}
	for _, text := range []string{`[[1,2]]`, `[[0,0],[10,999999999999999]]`, `[[1,2],[3,4],[5,6]]`} {
		var want [][2]int64
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		for _, after := range []string{"", ",", "}"} {
			got, ok, p := read(text + after)
			require.True(t, ok, text)
			require.Equal(t, want, got)
			if after == "" {
				require.NoError(t, p.End())
			} else {
				require.Equal(t, after[0], p.Peek())
			}
		}
		for cut := range text {
			_, ok, _ := read(text[:cut])
			require.False(t, ok, text[:cut])
		}
	}
	for _, text := range []string{
		`[]`, `[1,2]`, `[[1]]`, `[[1,2,3]]`, `[[01,2]]`, `[[1,00]]`, `[[-1,2]]`, `[[1.5,2]]`, `[[1e3,2]]`, `[[1, 2]]`, `[[1,2] ]`, `[ [1,2]]`, `[[1,2],]`,
		`[[1,2][3,4]]`, `[,[1,2]]`, `[[1,1000000000000000]]`, `null`, `{"a":[[1,2]]}`, `[["1",2]]`,
	} {
		_, ok, p := read(text)
		require.False(t, ok, text)
		require.Equal(t, text[0], p.Peek(), "nothing is read")
		raw, err := p.Raw()
		if text[0] == '[' || text[0] == '{' {
			require.NoError(t, err)
			require.Equal(t, text, string(raw))
		}
	}
}

// TestRepeated: a string is what it is, whatever the last one was.
func TestRepeated(t *testing.T) {
	p := jsontext.New([]byte(`["a","a","b","\u0062",""]`))
	last, got := "", []string{}
	require.NoError(t, p.Array(func() (err error) {
		last, err = p.Repeated(last)
		got = append(got, last)
		return err
	}))
	require.Equal(t, []string{"a", "a", "b", "b", ""}, got)
	_, err := jsontext.New([]byte(`1`)).Repeated("1")
	require.Error(t, err)
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
