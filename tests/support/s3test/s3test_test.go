package s3test_test

import (
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/s3test"
)

func TestGatewaysAreSeparate(t *testing.T) {
	before, err := os.Getwd()
	require.NoError(t, err)
	a, b := s3test.Start(t), s3test.Start(t)
	bucket := a.Bucket(t)
	_, err = a.Client().PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &bucket, Key: aws.String("k"), Body: strings.NewReader("hello"),
	})
	require.NoError(t, err)
	head, err := a.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: aws.String("k")})
	require.NoError(t, err)
	assert.EqualValues(t, 5, aws.ToInt64(head.ContentLength))
	_, err = b.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: aws.String("k")})
	assert.Error(t, err)
	after, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, before, after)
}
