package duck

import "strings"

// Literal renders a string as a SQL literal. NUL bytes, which no statement text may hold, become
// chr(0).
func Literal(s string) string {
	q := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if !strings.Contains(q, "\x00") {
		return q
	}
	return "(" + strings.ReplaceAll(q, "\x00", "' || chr(0) || '") + ")"
}

// Ident quotes an identifier.
func Ident(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// HasGlob reports whether DuckDB would read a path as a pattern.
func HasGlob(path string) bool { return strings.ContainsAny(path, `*?[]{}\`) }
