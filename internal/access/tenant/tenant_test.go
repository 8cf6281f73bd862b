package tenant_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
)

func TestParse(t *testing.T) {
	longest := strings.Repeat("x", tenant.MaxLen)
	for in, want := range map[string]string{
		"": tenant.Default, "a": "a", "anonymous": "anonymous", "Team-7_x.y": "Team-7_x.y", "!-_.*'()": "!-_.*'()", "...": "...", ".a": ".a", longest: longest,
	} {
		got, err := tenant.Parse(in)
		require.NoError(t, err, "%q", in)
		assert.Equal(t, want, got)
	}
}

func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		".":                                    `"."`,
		"..":                                   `".."`,
		strings.Repeat("x", tenant.MaxLen+1):   "max 150 characters",
		strings.Repeat("ä", tenant.MaxLen/2+1): "max 150 characters",
		"a/b":                                  `'/'`,
		"../a":                                 `'/'`,
		"a b":                                  `' '`,
		"a|b":                                  `'|'`,
		"a\x00":                                `'\x00'`,
		"ä":                                    `'ä'`,
		"\xff":                                 `'�'`,
		"a\\b":                                 `'\\'`,
		"a%2Fb":                                `'%'`,
	} {
		_, err := tenant.Parse(in)
		assert.ErrorContains(t, err, want, "%q", in)
	}
}

func TestContext(t *testing.T) {
	assert.Equal(t, tenant.Default, tenant.From(context.Background()))
	ctx := tenant.With(context.Background(), "a")
	assert.Equal(t, "a", tenant.From(ctx))
	assert.Equal(t, "b", tenant.From(tenant.With(ctx, "b")))
	assert.Equal(t, "a", tenant.From(ctx))
}
