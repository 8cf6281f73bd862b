package tenant_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
)

func TestFromRequest(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []string
		want   string
		err    string
	}{
		{name: "absent", want: tenant.Default},
		{name: "empty", values: []string{""}, want: tenant.Default},
		{name: "named", values: []string{"team-a"}, want: "team-a"},
		{name: "every allowed symbol", values: []string{"a!-_.*'()9Z"}, want: "a!-_.*'()9Z"},
		{name: "several tenants", values: []string{"a|b"}, err: `tenant ID "a|b" contains unsupported character '|'`},
		{name: "path", values: []string{".."}, err: `tenant ID is "..", which is not allowed`},
		{name: "too long", values: []string{strings.Repeat("x", tenant.MaxLen+1)}, err: "tenant ID is too long: max 150 characters"},
		{name: "twice", values: []string{"a", "b"}, err: "request carries 2 X-Scope-OrgID headers, at most 1 is allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			for _, v := range tc.values {
				r.Header.Add("x-scope-orgid", v)
			}
			got, err := tenant.FromRequest(r)
			if tc.err != "" {
				require.EqualError(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}
