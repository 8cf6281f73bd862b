package fetch

import "context"

// Whole returns the path of a local copy of an object, valid until release. size is the object's
// size in bytes, or -1 if unknown; if it is known, a large object is fetched in parallel ranges.
// Errors: those of the store, and FullError.
func (c *Cache) Whole(ctx context.Context, key string, size int64) (path string, release func(), err error) {
	s := c.slots(ctx)
	for {
		cl, err := c.claimWhole(key, size)
		if err != nil {
			return "", nil, err
		}
		pinned, err := c.settle(ctx, cl, s, true)
		if err != nil {
			return "", nil, err // nothing is pinned: claimWhole claims one file at most
		}
		if len(pinned) > 0 {
			return pinned[0].path, func() { c.release(pinned[0]) }, nil
		}
	}
}
