package fetch

import "context"

// Whole returns the path of a local copy of an object, valid until release. size is that of the object in bytes, -1 if it is not known: the
// copy of a large object comes in parallel then. Errors: those of the store.
func (c *Cache) Whole(ctx context.Context, key string, size int64) (path string, release func(), err error) {
	f, err := c.acquire(ctx, c.whole(key, size), c.slots())
	if err != nil {
		return "", nil, err
	}
	return f.path, func() { c.release(f) }, nil
}

func (c *Cache) whole(key string, size int64) plan {
	return plan{
		kind: kindWhole, key: key,
		fits: func(f *file) bool { return f.whole },
		begin: func() *file {
			f := &file{whole: true, object: size, size: size}
			if size > 0 {
				f.pieces = []*piece{{span: Span{Length: size}}}
				layOut(f.pieces, 0)
			}
			return f
		},
	}
}
