package auth

import (
	"context"
	"fmt"
	"regexp"
	"slices"
)

type principalKey struct{}

// WithPrincipal returns a ctx of a request whose sender AWS has identified by arn. A Guard decides
// such a request by the entries for principals and does not read its token. arn must come from the
// event of a Lambda function, never from the request itself; "" changes nothing.
func WithPrincipal(ctx context.Context, arn string) context.Context {
	if arn == "" {
		return ctx
	}
	return context.WithValue(ctx, principalKey{}, arn)
}

// The ARNs of principals ("IAM identifiers" in the user guide of AWS IAM). IAM takes each name of a
// role or user once in an account, whatever its path is.
var (
	principalARN = regexp.MustCompile(`^(arn:aws[a-z-]*:iam::\d{12}:)(root|(?:(role/|user/)(?:[^*?\s]+/)?([\w+=,.@-]{1,64})))$`)
	sessionARN   = regexp.MustCompile(`^(arn:aws[a-z-]*:)sts(::\d{12}:)assumed-role/([^/]+)/[^/\s]+$`)
	accountARN   = regexp.MustCompile(`^(arn:aws[a-z-]*:)(?:iam|sts)(::\d{12}:).+$`)
)

// principal returns the key of the entry for a role, a user or an account: its ARN without the path
// of the name, because the ARN of an assumed role has no path.
func principal(arn string) (string, error) {
	m := principalARN.FindStringSubmatch(arn)
	switch {
	case m == nil:
		return "", fmt.Errorf("principal: want arn:aws:iam::ACCOUNT:role/NAME, …:user/NAME or, for a whole account, …:root, got %q", arn)
	case m[2] == "root":
		return arn, nil
	}
	return m[1] + m[3] + m[4], nil
}

// principals returns the keys of the entries that may hold for a caller, the one that counts first:
// of its role or user, and of its account. Other callers, such as federated users, have only the
// latter.
func principals(arn string) (keys []string) {
	if key, err := principal(sessionARN.ReplaceAllString(arn, "${1}iam${2}role/${3}")); err == nil {
		keys = append(keys, key)
	}
	if accountARN.MatchString(arn) {
		keys = append(keys, accountARN.ReplaceAllString(arn, "${1}iam${2}root"))
	}
	return slices.Compact(keys) // the root user is its account
}
