package snapshot

// span is the range of time from mint to maxt (ms, inclusive). The zero value is empty.
type span struct{ mint, maxt int64 }

// with returns the smallest span that has both.
func (s span) with(o span) span {
	switch {
	case s == span{}:
		return o
	case o == span{}:
		return s
	}
	return span{min(s.mint, o.mint), max(s.maxt, o.maxt)}
}

// covers reports whether the span has all of [mint, maxt] (ms).
func (s span) covers(mint, maxt int64) bool {
	return s != span{} && s.mint <= mint && s.maxt >= maxt
}
