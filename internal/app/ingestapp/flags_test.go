package ingestapp_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/ingestapp"
)

// TestEverySettingHasAFlag sets every flag to something and finds every setting changed by it.
func TestEverySettingHasAFlag(t *testing.T) {
	f := ingestapp.Flags{NameScheme: "legacy", Mode: "auto", QueueURL: "https://sqs.eu-central-1.amazonaws.com/1/q"}
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanInt() {
			v.Field(i).SetInt(int64(i + 1))
		}
	}
	s := f.Settings()
	for _, part := range []any{s, s.Limits} {
		p := reflect.ValueOf(part)
		for i := range p.NumField() {
			require.False(t, p.Field(i).IsZero(), "no flag sets %s.%s", p.Type(), p.Type().Field(i).Name)
		}
	}
}
