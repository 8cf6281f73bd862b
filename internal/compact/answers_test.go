package compact

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestAnswers: kept answers are deleted beyond their bytes and their age, and after a deletion of
// series, also those of queries that began before it.
func TestAnswers(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{AnswersBytes: 250, AnswersAge: 3 * time.Hour}, 1)
	put := func(at string, ids ...int) {
		for _, id := range ids {
			k := key.Answer{Tenant: "t", Question: fmt.Sprintf("%032x", id%2), Slice: fmt.Sprintf("%032x", id)}
			_, err := l.at(at).store.Put(t.Context(), k.String(), strings.NewReader(strings.Repeat("x", 100)), objstore.Condition{})
			require.NoError(t, err)
		}
	}
	left := func(at string) (out []string) {
		g, err := s.Collect(l.at(at).t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, 100*g.Answers.Objects, g.Answers.Bytes)
		for obj, err := range l.store.List(t.Context(), key.AnswersPrefix("t"), "") {
			require.NoError(t, err)
			a, err := key.ParseAnswer(obj.Key)
			if err != nil {
				out = append(out, "foreign")
				continue
			}
			out = append(out, strings.TrimLeft(a.Slice, "0"))
		}
		return out
	}
	l.at("0:05").write("t", seriesRows(2, 1, clock("0:01")))
	_, err := l.store.Put(t.Context(), key.AnswersPrefix("t")+"0/x", strings.NewReader("x"), objstore.Condition{})
	require.NoError(t, err)
	put("0:10", 2)
	put("0:11", 1)
	put("0:12", 4, 3)
	require.ElementsMatch(t, []string{"foreign", "4", "3"}, left("0:20"))
	put("0:21", 5)
	listings := func(at string) (n int) {
		l.each = func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.List && c.Key == key.AnswersPrefix("t") {
				n++
			}
			return memstore.Fault{}
		}
		defer func() { l.each = nil }()
		_, err := s.Collect(l.at(at).t.Context(), "t")
		require.NoError(t, err)
		return n
	}
	require.Zero(t, listings("1:19"), "an hour has not passed")
	require.Len(t, left("1:19"), 4)
	require.Equal(t, 1, listings("1:20"))
	require.Zero(t, listings("1:21"))
	require.Len(t, left("1:21"), 3)
	require.Contains(t, left("1:21"), "5")
	require.ElementsMatch(t, []string{"foreign"}, left("4:00"))

	put("4:10", 1)
	require.Len(t, left("4:11"), 2)
	l.at("4:12").delete("t", catalog.Matcher{Type: "=", Name: "i", Value: "1"}, "0:00", "1:00")
	require.Equal(t, []string{"foreign"}, left("4:13"), "what was kept before the deletion")
	put("4:14", 2) // of a query that began before
	require.Len(t, left("4:26"), 2)
	require.Equal(t, []string{"foreign"}, left("4:28"))
	put("4:29", 3)
	require.Len(t, left("4:30"), 2)
	require.Len(t, left("6:30"), 2)
}
