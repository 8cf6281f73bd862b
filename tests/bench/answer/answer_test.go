package answer_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/answer"
)

func TestParse(t *testing.T) {
	a, err := answer.Parse([]byte(`{"status":"success","data":{"result":[{"metric":{"a":"b"},"values":[[1.5,"2"],[2,"NaN"]]},{"metric":{},"value":[3,"+Inf"]}]}}`))
	require.NoError(t, err)
	require.Len(t, a, 2)
	require.Equal(t, 2.0, a[`{a="b"}`][1500])
	require.True(t, math.IsNaN(a[`{a="b"}`][2000]))
	require.Equal(t, map[int64]float64{3000: math.Inf(1)}, a[`{}`])
	for _, bad := range []string{`{"status":"error"}`, `no`, `{"status":"success","data":{"result":[{"metric":{},"value":[3,"x"]}]}}`} {
		_, err := answer.Parse([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestWithoutNames(t *testing.T) {
	v := map[int64]float64{1: 2}
	a := answer.Answer{`{__name__="m", g="1"}`: v, `{__name__="m"}`: v, `{g="__name__"}`: v}
	require.Equal(t, answer.Answer{`{g="1"}`: v, `{}`: v, `{g="__name__"}`: v}, a.WithoutNames())
}
