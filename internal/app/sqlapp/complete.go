package sqlapp

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
)

// words are completed beside the names of the tables and columns.
var words = strings.Fields(`SELECT FROM WHERE GROUP BY ALL ORDER LIMIT JOIN USING HAVING WITH AS AND OR NOT NULL IN LIKE BETWEEN INTERVAL DISTINCT UNION
	DESCRIBE EXPLAIN ANALYZE SUMMARIZE VALUES CASE WHEN THEN ELSE END OVER PARTITION DESC ASC
	promlake_metric( promql( now() time_bucket( date_trunc( count(*) count( sum( avg( min( max( arg_max( arg_min( median( quantile_cont( unnest( map_keys(
	prom_rate( prom_increase( prom_delta( prom_irate( prom_avg_over_time( prom_min_over_time( prom_max_over_time( prom_sum_over_time(
	prom_count_over_time( prom_last_over_time( prom_quantile_over_time( \d \pager \q \?`)

// Names returns the words that a shell completes, sorted: also without an answer, then those that
// are always there.
func Names(ctx context.Context, ask Asker) []string {
	names := slices.Clone(words)
	a, err := ask(ctx, "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'main'")
	if err == nil {
		defer a.Close()
		for {
			row, err := a.Next()
			if errors.Is(err, io.EOF) || err != nil {
				break
			}
			names = append(names, row...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Complete returns the words that the word before a position (in characters) of a line may become,
// and what is before and behind it.
func Complete(names []string, line string, position int) (head string, completions []string, tail string) {
	chars := []rune(line)
	before, tail := string(chars[:position]), string(chars[position:])
	begin := strings.LastIndexFunc(before, func(r rune) bool { return strings.ContainsRune(" \t,;()[]'\"=<>+-*/.", r) }) + 1
	head, word := before[:begin], before[begin:]
	if word == "" {
		return head, nil, tail
	}
	// All completions begin with the same letters, because the line editor writes what they have in
	// common in the place of the word: with those of the word, or else in the case of the first
	// name.
	if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, word) }) {
		i := slices.IndexFunc(names, func(n string) bool { return len(n) >= len(word) && strings.EqualFold(n[:len(word)], word) })
		if i < 0 {
			return head, nil, tail
		}
		word = names[i][:len(word)]
	}
	for _, n := range names {
		if strings.HasPrefix(n, word) {
			completions = append(completions, n)
		}
	}
	return head, completions, tail
}
