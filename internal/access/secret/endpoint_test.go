package secret

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/stretchr/testify/require"
)

func TestEndpoint(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	for _, tc := range []struct{ region, all, ssm, want string }{
		{"eu-central-1", "", "", "https://ssm.eu-central-1.amazonaws.com/"},
		{"us-gov-west-1", "", "", "https://ssm.us-gov-west-1.amazonaws.com/"},
		{"cn-north-1", "", "", "https://ssm.cn-north-1.amazonaws.com.cn/"},
		{"us-east-1", "http://127.0.0.1:4566", "", "http://127.0.0.1:4566/"},
		{"us-east-1", "http://127.0.0.1:4566", "http://127.0.0.1:4567/", "http://127.0.0.1:4567/"},
	} {
		t.Setenv("AWS_REGION", tc.region)
		t.Setenv("AWS_ENDPOINT_URL", tc.all)
		t.Setenv("AWS_ENDPOINT_URL_SSM", tc.ssm)
		cfg, err := config.LoadDefaultConfig(t.Context())
		require.NoError(t, err)
		require.Equal(t, tc.want, endpoint(&cfg))
	}
}
