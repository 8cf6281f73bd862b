package pushdown

import "bytes"

// Finite returns JSON as DuckDB writes it with null in place of NaN and infinities, which JSON does
// not have. No condition is read from them.
func Finite(in []byte) []byte {
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); {
		if in[i] == '"' {
			end := stringEnd(in, i)
			out = append(out, in[i:end]...)
			i = end
			continue
		}
		if n := wordLen(in[i:]); n > 0 {
			out = append(out, "null"...)
			i += n
			continue
		}
		out = append(out, in[i])
		i++
	}
	return out
}

// stringEnd returns the position after the string that begins at i.
func stringEnd(in []byte, i int) int {
	for i++; i < len(in); i++ {
		switch in[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(in)
}

var words = [][]byte{[]byte("NaN"), []byte("Infinity"), []byte("-NaN"), []byte("-Infinity")}

func wordLen(in []byte) int {
	for _, w := range words {
		if bytes.HasPrefix(in, w) {
			return len(w)
		}
	}
	return 0
}
