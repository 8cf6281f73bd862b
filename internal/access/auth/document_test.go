package auth_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
)

var (
	sumA = auth.SumOf("token-a")
	sumB = auth.SumOf("token-b")
)

func TestParseDocument(t *testing.T) {
	d, err := auth.ParseDocument([]byte(`{"version":1,"tokens":[
		{"sha256":"` + sumA + `","tenants":["team-a","team-b"],"access":["write","read"],"comment":"the fleet","max_query_dollars_per_day":0.5,"max_query_dollars_per_month":10},
		{"sha256":"` + strings.ToUpper(sumB) + `","tenants":["*"],"access":["admin"]},
		{"principal":"arn:aws:iam::123456789012:role/team/prometheus","tenants":["team-a"],"access":["write"]}]}`))
	require.NoError(t, err)
	require.Equal(t, auth.Document{Version: 1, Tokens: []auth.Entry{
		{SHA256: sumA, Tenants: []string{"team-a", "team-b"}, Access: []string{"write", "read"}, Comment: "the fleet", Allowance: auth.Allowance{Day: 0.5, Month: 10}},
		{SHA256: strings.ToUpper(sumB), Tenants: []string{"*"}, Access: []string{"admin"}},
		{Principal: "arn:aws:iam::123456789012:role/team/prometheus", Tenants: []string{"team-a"}, Access: []string{"write"}},
	}}, d)

	text, err := d.Text()
	require.NoError(t, err)
	require.Equal(t, 2+len(d.Tokens), strings.Count(string(text), "\n"), "a line for each entry")
	again, err := auth.ParseDocument(text)
	require.NoError(t, err)
	require.Equal(t, d, again)
}

func TestParseDocumentWithoutTokens(t *testing.T) {
	text, err := auth.Document{Version: auth.Version}.Text()
	require.NoError(t, err)
	d, err := auth.ParseDocument(text)
	require.NoError(t, err)
	require.Empty(t, d.Tokens)
}

func TestParseDocumentRefuses(t *testing.T) {
	entry := func(fields string) string { return `{"version":1,"tokens":[{` + fields + `}]}` }
	good := `"sha256":"` + sumA + `","tenants":["a"],"access":["read"]`
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                 {``, "not JSON"},
		"cut":                     {`{"version":1,"tokens":[`, "not JSON"},
		"two documents":           {`{"version":1,"tokens":[]}{}`, "text after the end"},
		"not an object":           {`[]`, "cannot unmarshal"},
		"a tenant twice":          {entry(`"sha256":"` + sumA + `","tenants":["a","a"],"access":["read"]`), `entry 1: tenants: "a" occurs twice`},
		"an access twice":         {entry(`"sha256":"` + sumA + `","tenants":["a"],"access":["read","read"]`), `entry 1: access: "read" occurs twice`},
		"no version":              {`{"tokens":[]}`, "version 0, this program reads 1"},
		"later version":           {`{"version":2,"tokens":[]}`, "version 2, this program reads 1"},
		"unknown field":           {`{"version":1,"tokens":[],"deny":[]}`, `unknown field "deny"`},
		"unknown in an entry":     {entry(good + `,"tenant":"a"`), `unknown field "tenant"`},
		"field in capitals":       {entry(`"SHA256":"` + sumA + `"`), `unknown field "SHA256"`},
		"a negative allowance":    {entry(good + `,"max_query_dollars_per_day":-1`), "max_query_dollars_per_day, max_query_dollars_per_month: want 0 or more"},
		"repeated field":          {entry(good + `,"tenants":["*"]`), `field "tenants" occurs twice`},
		"no sum":                  {entry(`"tenants":["a"],"access":["read"]`), "entry 1: sha256: want 64 hexadecimal digits, got 0"},
		"short sum":               {entry(`"sha256":"abcd","tenants":["a"],"access":["read"]`), "entry 1: sha256: want 64 hexadecimal digits, got 4"},
		"sum of nothing":          {entry(`"sha256":"` + auth.SumOf("") + `","tenants":["a"],"access":["read"]`), "entry 1: sha256: is the hash of an empty token"},
		"a token for a sum":       {entry(`"sha256":"` + auth.NewToken() + `","tenants":["a"],"access":["read"]`), "sha256: want 64 hexadecimal digits, got 46"},
		"no tenants":              {entry(`"sha256":"` + sumA + `","tenants":[],"access":["read"]`), "entry 1: tenants: want at least one"},
		"empty tenant":            {entry(`"sha256":"` + sumA + `","tenants":[""],"access":["read"]`), "entry 1: tenants: want a name, got nothing"},
		"path as a tenant":        {entry(`"sha256":"` + sumA + `","tenants":["../a"],"access":["read"],"comment":"bad"`), `entry 1 (bad): tenants: tenant ID "../a" contains unsupported character '/'`},
		"any and one":             {entry(`"sha256":"` + sumA + `","tenants":["*","a"],"access":["read"]`), `entry 1: tenants: "*" must be the only one`},
		"no access":               {entry(`"sha256":"` + sumA + `","tenants":["a"],"access":[]`), "entry 1: access: want at least one"},
		"unknown access":          {entry(`"sha256":"` + sumA + `","tenants":["a"],"access":["Read"]`), `entry 1: access "Read": want read, write or admin`},
		"same token twice":        {`{"version":1,"tokens":[{` + good + `},{` + strings.Replace(good, sumA, strings.ToUpper(sumA), 1) + `}]}`, "entry 2: has the token or principal of entry 1"},
		"a token and a principal": {entry(good + `,"principal":"arn:aws:iam::123456789012:root"`), "entry 1: sha256 and principal: want one of them"},
		"no ARN of a principal":   {entry(`"principal":"prometheus","tenants":["a"],"access":["read"],"comment":"bad"`), "entry 1 (bad): principal: want arn:aws:iam::ACCOUNT:role/NAME"},
		"same principal twice": {`{"version":1,"tokens":[{"principal":"arn:aws:iam::123456789012:role/x","tenants":["a"],"access":["read"]},` +
			`{"principal":"arn:aws:iam::123456789012:role/team/x","tenants":["b"],"access":["read"]}]}`, "entry 2: has the token or principal of entry 1"},
		"two wrong entries": {`{"version":1,"tokens":[{},{` + good + `},{"access":["x"]}]}`, "entry 3: sha256"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := auth.ParseDocument([]byte(tc.text))
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "parse document of tokens: ")
		})
	}
}

func TestNewToken(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token := auth.NewToken()
		require.Regexp(t, `^pl_[A-Za-z0-9_-]{43}$`, token)
		require.False(t, seen[token])
		seen[token] = true
	}
}

func TestNewEntry(t *testing.T) {
	e, err := auth.NewEntry("token-a", []string{"a"}, []string{"write"}, "")
	require.NoError(t, err)
	require.Equal(t, auth.Entry{SHA256: sumA, Tenants: []string{"a"}, Access: []string{"write"}}, e)
	_, err = auth.NewEntry("", []string{"a"}, []string{"write"}, "")
	require.ErrorContains(t, err, "sha256")
	_, err = auth.NewEntry("token-a", nil, []string{"write"}, "")
	require.ErrorContains(t, err, "tenants")
	e, err = auth.NewPrincipalEntry("arn:aws:iam::123456789012:root", []string{"a"}, []string{"write"}, "all")
	require.NoError(t, err)
	require.Equal(t, auth.Entry{Principal: "arn:aws:iam::123456789012:root", Tenants: []string{"a"}, Access: []string{"write"}, Comment: "all"}, e)
	_, err = auth.NewPrincipalEntry("123456789012", []string{"a"}, []string{"write"}, "")
	require.ErrorContains(t, err, `got "123456789012"`)
}

func FuzzParseDocument(f *testing.F) {
	f.Add([]byte(`{"version":1,"tokens":[{"sha256":"` + sumA + `","tenants":["*"],"access":["admin"],"comment":"x"}]}`))
	f.Add([]byte(`{"version":1,"tokens":[{"sha256":"","sha256":""}]}`))
	f.Add([]byte(`{"version":1,"tokens":[{"principal":"arn:aws:iam::123456789012:role/a/b","tenants":["*"],"access":["admin"]}]}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := auth.ParseDocument(text)
		if err != nil {
			return
		}
		out, err := d.Text()
		require.NoError(t, err)
		_, err = auth.ParseDocument(out)
		require.NoError(t, err, "what was read can be written and read again")
	})
}
