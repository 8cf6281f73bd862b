package plantest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Section is the lines of a file that follow a name in brackets.
type Section struct {
	Name  string
	Lines []string
}

// Sections reads a file of sections. It skips empty lines and lines that start with #. Lines before
// the first name form a section without a name.
func Sections(t testing.TB, path string) []Section {
	out := []Section{{}}
	for l := range strings.Lines(Read(t, path)) {
		switch l = strings.TrimSpace(l); {
		case l == "" || l[0] == '#':
		case l[0] == '[':
			out = append(out, Section{Name: strings.Trim(l, "[]")})
		default:
			s := &out[len(out)-1]
			s.Lines = append(s.Lines, l)
		}
	}
	return slices.DeleteFunc(out, func(s Section) bool { return len(s.Lines) == 0 })
}

// Read returns the text of a file.
func Read(t testing.TB, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
