package auth

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const account = "arn:aws:iam::123456789012:"

// TestPrincipal: an entry is for one role, one user or one account, whatever the path of its name
// is.
func TestPrincipal(t *testing.T) {
	for arn, want := range map[string]string{
		account + "role/prometheus":              account + "role/prometheus",
		account + "role/team/a/prometheus":       account + "role/prometheus",
		account + "user/writer":                  account + "user/writer",
		account + "user/division_abc/a.b@c,d=e+": account + "user/a.b@c,d=e+",
		account + "root":                         account + "root",
		"arn:aws-cn:iam::123456789012:role/x":    "arn:aws-cn:iam::123456789012:role/x",
		"arn:aws-us-gov:iam::123456789012:root":  "arn:aws-us-gov:iam::123456789012:root",
		account + "role/aws-reserved/sso.amazonaws.com/eu-central-1/AWSReservedSSO_Admin_0123456789abcdef": account + "role/AWSReservedSSO_Admin_0123456789abcdef",
	} {
		got, err := principal(arn)
		require.NoError(t, err, arn)
		require.Equal(t, want, got)
	}
	for _, arn := range []string{
		"", "123456789012", "*", account, account + "*", account + "role/", account + "role/*", account + "role/a/", account + "role/team-*/a",
		account + "role/team?/a", account + "role/a b", account + "role", account + "group/a", account + "root/a", account + "ROLE/a", " " + account + "root",
		account + "root\n", account + "role/" + strings.Repeat("x", 65), "arn:aws:iam:::root", "arn:aws:iam::12345678901:root", "arn:aws:iam::1234567890123:root",
		"arn:aws:iam:eu-central-1:123456789012:root", "arn:evil:iam::123456789012:root", "arn:aws:sts::123456789012:assumed-role/a/session",
		"arn:aws:sts::123456789012:role/a", "arn:aws:s3:::bucket",
	} {
		_, err := principal(arn)
		require.ErrorContains(t, err, "principal: want arn:aws:iam::ACCOUNT:role/NAME", arn)
	}
}

// TestPrincipals: a caller's role or user comes before its account, and nothing else is a key.
func TestPrincipals(t *testing.T) {
	root := account + "root"
	const sts = "arn:aws:sts::123456789012:"
	for arn, want := range map[string][]string{
		sts + "assumed-role/prometheus/i-0123456789":    {account + "role/prometheus", root},
		sts + "assumed-role/x/a.b@c,d=e+":               {account + "role/x", root},
		"arn:aws-cn:sts::123456789012:assumed-role/x/s": {"arn:aws-cn:iam::123456789012:role/x", "arn:aws-cn:iam::123456789012:root"},
		account + "user/division/writer":                {account + "user/writer", root},
		account + "role/team/prometheus":                {account + "role/prometheus", root},
		root:                                            {root},
		sts + "federated-user/x":                        {root},
		sts + "assumed-role/x":                          {root},
		sts + "assumed-role/a/b/c":                      {root},
		sts + "assumed-role/a*/s":                       {root},
		"123456789012":                                  nil,
		"arn:aws:s3::123456789012:bucket/x":             nil,
		"arn:aws:sts::12345678901:assumed-role/x/s":     nil,
		"x" + root: nil,
		"arn:evil:sts::123456789012:assumed-role/x/s":      nil,
		"arn:aws:sts::123456789012:\nassumed-role/x/s":     nil,
		"arn:aws:sts::123456789012:assumed-role/x/s\nroot": nil,
	} {
		require.Equal(t, want, principals(arn), "%q", arn)
	}
}
