package fetch

import "context"

// Whole returns the path of a local copy of an object, valid until release. size is that of the
// object in bytes, -1 if it is not known: the copy of a large object comes in parallel then.
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
			return "", nil, err // nothing is pinned: there is one file that does, or none
		}
		if len(pinned) > 0 {
			return pinned[0].path, func() { c.release(pinned[0]) }, nil
		}
	}
}
