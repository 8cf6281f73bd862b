package rulestore_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// example is a document with every field.
func example() rulestore.Rules {
	offset := model.Duration(time.Minute)
	r := rulestore.Rules{Version: rulestore.Version, Generation: 3, ID: ulid.MustParse("01K1GZ8V6D8Q7N0XJ5W3C2B1A9")}
	r = r.Set("b", rulestore.Group{Name: "second", Rules: []rulestore.Rule{}})
	return r.Set("a", rulestore.Group{
		Name: "first", Interval: model.Duration(30 * time.Second), QueryOffset: &offset, Limit: 7, Labels: map[string]string{"team": "x"},
		Rules: []rulestore.Rule{
			{Record: "job:v:sum", Expr: `sum by (job) (v{x!~"a|b"} > 1)`, Labels: map[string]string{"l": "v"}},
			{Alert: "High", Expr: "v > 10", For: model.Duration(time.Hour), KeepFiringFor: model.Duration(90 * time.Second), Annotations: map[string]string{"summary": "<é>"}},
		},
	})
}

// golden is the text of example.
const golden = `{"version":1,"generation":3,"id":"01K1GZ8V6D8Q7N0XJ5W3C2B1A9","namespaces":[` +
	`{"name":"a","groups":[{"name":"first","interval":"30s","query_offset":"1m","limit":7,"labels":{"team":"x"},"rules":[` +
	`{"record":"job:v:sum","expr":"sum by (job) (v{x!~\"a|b\"} > 1)","labels":{"l":"v"}},` +
	`{"alert":"High","expr":"v > 10","for":"1h","keep_firing_for":"1m30s","annotations":{"summary":"<é>"}}]}]},` +
	`{"name":"b","groups":[{"name":"second","rules":[]}]}],"crc32c":"5cb760f8"}` + "\n"

func TestGolden(t *testing.T) {
	b, err := rulestore.Encode(example())
	require.NoError(t, err)
	require.Equal(t, golden, string(b))
	back, err := rulestore.Decode(b)
	require.NoError(t, err)
	require.Equal(t, example(), back)
	b, err = rulestore.Encode(rulestore.Rules{Version: rulestore.Version})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(b), `{"version":1,"generation":0,"id":"00000000000000000000000000","namespaces":[],"crc32c":`), string(b))
}

// TestExampleOfTheSchema: what schemas/rules.md shows is a document.
func TestExampleOfTheSchema(t *testing.T) {
	page, err := os.ReadFile("../../../schemas/rules.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	r, err := rulestore.Decode([]byte(text))
	require.NoError(t, err)
	b, err := rulestore.Encode(r)
	require.NoError(t, err)
	require.Equal(t, text, string(b))
}

func TestDecodeRefuses(t *testing.T) {
	damaged := []byte(golden)
	damaged[100] ^= 1
	_, err := rulestore.Decode(damaged)
	require.ErrorIs(t, err, checksum.ErrDamaged)
	_, err = rulestore.Decode([]byte(`{"version":1,"namespaces":[]}`))
	require.ErrorIs(t, err, checksum.ErrDamaged, "no checksum")
	for want, text := range map[string]string{
		"version 2, this program reads 1":             `{"version":2}`,
		`namespace "a" has no groups`:                 `{"version":1,"namespaces":[{"name":"a","groups":[]}]}`,
		"the namespaces are not in ascending order":   `{"version":1,"namespaces":[{"name":"b","groups":[{"name":"x"}]},{"name":"a","groups":[{"name":"x"}]}]}`,
		`the groups of namespace "a" are not in asce`: `{"version":1,"namespaces":[{"name":"a","groups":[{"name":"x"},{"name":"x"}]}]}`,
		"cannot unmarshal":                            `{"version":"1"}`,
	} {
		b, err := checksum.Append([]byte(text))
		require.NoError(t, err)
		_, err = rulestore.Decode(b)
		require.ErrorContains(t, err, want)
	}
}

func TestEdits(t *testing.T) {
	r := example()
	before, err := json.Marshal(r)
	require.NoError(t, err)
	more := r.Set("a", rulestore.Group{Name: "another"}).Set("aa", rulestore.Group{Name: "g"}).Set("a", rulestore.Group{Name: "first", Limit: 1})
	require.Equal(t, 4, more.Groups())
	require.Equal(t, []string{"a", "aa", "b"}, names(more))
	require.Equal(t, "another", more.Namespace("a")[0].Name)
	g, err := more.Group("a", "first")
	require.NoError(t, err)
	require.Equal(t, 1, g.Limit)
	_, err = more.Group("aa", "first")
	require.ErrorIs(t, err, rulestore.ErrNoGroup)

	fewer, err := more.Remove("aa", "g")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names(fewer), "a namespace ends with its last group")
	_, err = fewer.Remove("aa", "g")
	require.ErrorIs(t, err, rulestore.ErrNoGroup)
	fewer, err = fewer.RemoveNamespace("a")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, names(fewer))
	_, err = fewer.RemoveNamespace("a")
	require.ErrorIs(t, err, rulestore.ErrNoNamespace)

	after, err := json.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "edits change nothing in place")
	require.Equal(t, r.Namespaces[0].Groups[0], rulestore.FromUpstream(r.Namespaces[0].Groups[0].Upstream()))
}

func names(r rulestore.Rules) (out []string) {
	for _, n := range r.Namespaces {
		out = append(out, n.Name)
	}
	return out
}
