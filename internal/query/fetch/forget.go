package fetch

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// Forget removes the files of the objects whose keys have a prefix, so that their bytes are fetched
// again. Files that are pinned stay.
func (c *Cache) Forget(prefix string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		for _, f := range slices.Clone(c.objects[key]) {
			if f.entry != nil && f.entry.Pins == 0 {
				c.kept.Remove(f.entry)
				err = errors.Join(err, c.remove(f))
			}
		}
	}
	c.meter.Holds(c.kept.Used())
	return err
}
