package inspectapp

import (
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/catalog"
)

// matchers writes a tombstone's matchers as a PromQL selector.
func matchers(all []catalog.Matcher) string {
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = m.Name + m.Type + strconv.Quote(m.Value)
	}
	return "{" + strings.Join(texts, ", ") + "}"
}
