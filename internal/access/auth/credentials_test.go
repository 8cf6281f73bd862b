package auth

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		want   string
		err    error
	}{
		"none":                        {nil, "", errAbsent},
		"bearer":                      {[]string{"Bearer pl_x"}, "pl_x", nil},
		"scheme in any case":          {[]string{"bEARER pl_x"}, "pl_x", nil},
		"spaces around":               {[]string{"  Bearer   pl_x  "}, "pl_x", nil},
		"basic":                       {[]string{basic("anybody", "pl_x")}, "pl_x", nil},
		"basic without a user":        {[]string{basic("", "pl_x")}, "pl_x", nil},
		"basic, password with colons": {[]string{basic("u", "a:b")}, "a:b", nil},
		"empty":                       {[]string{""}, "", errMalformed},
		"bearer without token":        {[]string{"Bearer "}, "", errMalformed},
		"basic without password":      {[]string{basic("pl_x", "")}, "", errMalformed},
		"basic without colon":         {[]string{"Basic " + base64.StdEncoding.EncodeToString([]byte("pl_x"))}, "", errMalformed},
		"basic that is not base64":    {[]string{"Basic !!"}, "", errMalformed},
		"token alone":                 {[]string{"pl_x"}, "", errMalformed},
		"other scheme":                {[]string{"AWS4-HMAC-SHA256 Credential=x"}, "", errMalformed},
		"two headers":                 {[]string{"Bearer pl_x", "Bearer pl_x"}, "", errMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := credentials(http.Header{"Authorization": tc.values})
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, tc.want, got)
		})
	}
}

// FuzzCredentials: a token that is found is part of the header, in clear or in base64, and is never
// empty.
func FuzzCredentials(f *testing.F) {
	for _, s := range []string{"Bearer pl_x", basic("u", "p"), "Basic", "Bearer", "bearer\tx", "Basic Og==", "Basic \x00", " "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token, err := credentials(http.Header{"Authorization": {value}})
		if err != nil {
			require.Empty(t, token)
			return
		}
		require.NotEmpty(t, token)
		if strings.EqualFold(strings.TrimSpace(value)[:6], "Bearer") {
			require.True(t, strings.HasSuffix(strings.TrimSpace(value), token))
			return
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(strings.TrimSpace(value)[len("Basic "):]))
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(raw), ":"+token))
	})
}
