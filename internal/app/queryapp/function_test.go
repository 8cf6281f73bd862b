package queryapp_test

import (
	"bytes"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query"
)

// held is what all queries of a stage may hold at once, and the program: bytes.
func held(s queryapp.Settings) int64 {
	const program, sample = 112 << 20, 64
	n := int64(s.Query.MaxConcurrency)
	return program + s.Query.MemoryLimitBytes + s.Query.IndexCacheBytes + s.Query.FooterCacheBytes + n*(s.Query.QueryMemoryBytes+sample*int64(s.Query.MaxSamples))
}

func TestForFunction(t *testing.T) {
	const mb = 1 << 20
	threads := runtime.GOMAXPROCS(0)
	d := settings.Default[queryapp.Settings]().Query
	for _, tc := range []struct {
		memory                           int64 // MB
		duck, query, index, footer, heap int64 // MB
		samples, threads                 int
		perSecond                        int64 // of a thread
	}{
		{512, 100, 100, 25, 12, 250, 1_638_400, 1, 28_942_905},
		{1769, 414, 414, 103, 51, 1035, 6_787_072, 1, 100_000_000},
		{3008, 724, 724, 181, 90, 1810, 11_862_016, min(2, threads), 0},
		{10240, 2532, 2532, 633, 316, 6330, 41_484_288, min(6, threads), 0},
	} {
		s := queryapp.ForFunction(settings.Default[queryapp.Settings](), tc.memory*mb, nil)
		q := s.Query
		require.Equal(t, []int64{tc.duck, tc.query, tc.index, tc.footer}, []int64{q.MemoryLimitBytes / mb, q.QueryMemoryBytes / mb, q.IndexCacheBytes / mb, q.FooterCacheBytes / mb}, "%d MB", tc.memory)
		require.Equal(t, tc.samples, q.MaxSamples, "%d MB", tc.memory)
		require.Equal(t, tc.samples, s.API.RemoteReadSampleLimit)
		require.Equal(t, tc.threads, q.Threads)
		require.Equal(t, 1, q.MaxConcurrency)
		require.Equal(t, 1, s.API.RemoteReadConcurrency)
		require.Equal(t, tc.heap, queryapp.HeapBytes(q, tc.memory*mb)/mb, "%d MB", tc.memory)
		require.Equal(t, int64(384*mb), q.CacheBytes, "of the 512 MB of /tmp")
		require.Equal(t, "/tmp/promlake", q.CacheDir, "where a killed process' files are found")
		if tc.perSecond > 0 {
			require.Equal(t, tc.perSecond, q.SamplesPerSecond)
		}
		require.Less(t, q.FetchBytesPerSecond, d.FetchBytesPerSecond)
		spilled := max(q.IndexCacheBytes, 32*mb) // of objects that the disk has no room for
		require.LessOrEqual(t, held(s)+spilled, tc.memory*mb)
		require.LessOrEqual(t, q.MemoryLimitBytes+queryapp.HeapBytes(q, tc.memory*mb), tc.memory*mb)
		_, err := q.WithDefaults()
		require.NoError(t, err)
	}
}

// TestForFunctionShares: several concurrent queries share the limits of a single one, down to the
// smallest function.
func TestForFunctionShares(t *testing.T) {
	for _, memory := range []int64{128 << 20, 2048 << 20, 10240 << 20} {
		for _, n := range []int{1, 2, 16, 64} {
			s := settings.Default[queryapp.Settings]()
			s.Query.MaxConcurrency = n
			s = queryapp.ForFunction(s, memory, given("query.max-concurrency"))
			require.Equal(t, n, s.Query.MaxConcurrency)
			require.LessOrEqual(t, held(s)-112<<20, max(memory-112<<20, memory/4), "%d queries in %d bytes", n, memory)
			_, err := s.Query.WithDefaults()
			require.NoError(t, err)
		}
	}
}

// given are the values of flags that the operator gave.
func given(names ...string) (vs flags.Values) {
	for _, n := range names {
		vs = append(vs, flags.Value{Name: n, Source: flags.Environment})
	}
	return vs
}

// TestForFunctionKeeps: what was given is kept, and without a function everything is.
func TestForFunctionKeeps(t *testing.T) {
	plain := settings.Default[queryapp.Settings]()
	require.Equal(t, plain, queryapp.ForFunction(plain, 0, nil))
	require.Zero(t, queryapp.HeapBytes(plain.Query, 0))
	want := plain.Query
	want.MemoryLimitBytes, want.QueryMemoryBytes, want.MaxSamples, want.CacheDir, want.CacheBytes = 100<<20, 50<<20, 1000, "/mnt/x", 4<<30
	want.FetchBytesPerSecond, want.SamplesPerSecond = 1<<20, 5
	set := plain
	set.Query = want
	got := queryapp.ForFunction(set, 1769<<20, given("query.memory-limit", "query.max-memory", "query.max-samples", "query.cache-dir", "query.cache-bytes",
		"query.fetch-bytes-per-second", "query.samples-per-second")).Query
	for _, other := range []func(*query.Settings){ // what was not given
		func(s *query.Settings) { s.MaxConcurrency, s.SpillBytes, s.Threads = 0, 0, 0 },
		func(s *query.Settings) { s.IndexCacheBytes, s.FooterCacheBytes, s.MaxSubquerySteps = 0, 0, 0 },
	} {
		other(&want)
		other(&got)
	}
	require.Equal(t, want, got)
}

// asked is a program whose only settings are those of the query stage.
type asked struct {
	Query queryapp.Settings `embed:""`
	got   queryapp.Settings
}

// Run divides the memory of a function.
func (a *asked) Run(vs flags.Values) error {
	a.got = queryapp.ForFunction(a.Query, 1769<<20, vs)
	return nil
}

// TestAnExplicitDefaultIsKept: a variable that equals the default is not a variable that is
// missing.
func TestAnExplicitDefaultIsKept(t *testing.T) {
	run := func() query.Settings {
		a := asked{Query: settings.Default[queryapp.Settings]()}
		var errs bytes.Buffer
		require.Equal(t, 0, flags.Main(t.Context(), "test", "A test.", &a, nil, flags.Streams{Out: &errs, Err: &errs}), errs.String())
		return a.got.Query
	}
	d, unset := reflect.ValueOf(settings.Default[queryapp.Settings]().Query), reflect.ValueOf(run())
	for i := range d.NumField() {
		f := d.Type().Field(i)
		if reflect.DeepEqual(d.Field(i).Interface(), unset.Field(i).Interface()) || f.Name == "Threads" { // 0 threads are as many as there are processors
			continue
		}
		t.Run(f.Tag.Get("name"), func(t *testing.T) {
			t.Setenv(settings.Env(f.Tag.Get("name")), settings.Format(d.Field(i), f.Tag.Get("type")))
			require.Equal(t, d.Field(i).Interface(), reflect.ValueOf(run()).Field(i).Interface())
		})
	}
	t.Setenv("PROMLAKE_QUERY_MAX_CONCURRENCY", "20")
	require.Equal(t, 20, run().MaxConcurrency)
}

// TestStackParametersOfMemory: errors of a function name the parameter of its memory for exactly
// those limits that follow from it.
func TestStackParametersOfMemory(t *testing.T) {
	small := queryapp.ForFunction(settings.Default[queryapp.Settings](), 512<<20, nil)
	large := queryapp.ForFunction(settings.Default[queryapp.Settings](), 10240<<20, nil)
	large.Query.Threads = small.Query.Threads + 1 // as on a machine with more processors
	follow := []string{"memory-limit"}            // of the process
	var compare func(a, b reflect.Value)
	compare = func(a, b reflect.Value) {
		for i := range a.NumField() {
			switch f := a.Type().Field(i); {
			case f.Type.Kind() == reflect.Struct:
				compare(a.Field(i), b.Field(i))
			case f.Tag.Get("name") != "" && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
				follow = append(follow, f.Tag.Get("name"))
			}
		}
	}
	compare(reflect.ValueOf(small), reflect.ValueOf(large))
	require.ElementsMatch(t, follow, settings.StackParameters["query-memory"])
}
