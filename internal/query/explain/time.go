package explain

import "strconv"

// microsPerMilli: DuckDB reads TIMESTAMP_MS with a time zone as microseconds.
const microsPerMilli = 1000

// timeLiteral renders a timestamp (ms) as SQL.
func timeLiteral(ms int64) string {
	return "make_timestamptz(" + strconv.FormatInt(ms*microsPerMilli, 10) + "::BIGINT)"
}
