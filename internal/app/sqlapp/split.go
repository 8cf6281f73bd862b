package sqlapp

import "strings"

// Split divides a text into statements, each without its semicolon, and the rest that no semicolon
// ends. Semicolons in texts, names and comments end nothing. Empty statements are left out, as is a
// rest of blanks and comments.
func Split(text string) (statements []string, rest string) {
	begin, some := 0, false // some: the statement has more than blanks and comments
	for i := 0; i < len(text); {
		end, blank := token(text[i:])
		switch {
		case text[i] == ';':
			if some {
				statements = append(statements, strings.TrimSpace(text[begin:i]))
			}
			begin, some = i+1, false
		case !blank:
			some = true
		}
		i += end
	}
	if rest = strings.TrimLeft(text[begin:], " \t\r\n"); !some && !strings.HasPrefix(rest, "/*") {
		rest = ""
	}
	return statements, rest
}

// token returns the length of the text, name, comment or character at the beginning of s, and
// whether it is a blank or a comment. What has no end reaches to the end of s.
func token(s string) (n int, blank bool) {
	until := func(from int, end string) int {
		if i := strings.Index(s[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(s)
	}
	switch {
	case s[0] == '\'' || s[0] == '"': // a doubled quote is two texts here, which ends the same
		return until(1, s[:1]), false
	case strings.HasPrefix(s, "--"):
		return until(2, "\n"), true
	case strings.HasPrefix(s, "/*"):
		return until(2, "*/"), true
	case s[0] == '$':
		if i := strings.IndexByte(s[1:], '$'); i >= 0 && !strings.ContainsAny(s[1:i+1], " \t\n;,()0123456789") {
			return until(i+2, s[:i+2]), false
		}
	}
	return 1, strings.ContainsRune(" \t\r\n", rune(s[0]))
}
