package imports

import (
	"context"
	"fmt"
	"math"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
)

// readAhead is how many bytes are read of an object at once.
const readAhead = 1 << 20

// held is what a store holds.
type held struct {
	content content
	blocks  int
	bytes   int64
}

// read reads the samples of all live blocks.
func read(ctx context.Context, store objstore.Store) (h held, err error) {
	m, _, err := catalog.ReadManifest(ctx, store, tenant.Default)
	if err != nil {
		return h, err
	}
	for _, b := range m.Blocks {
		rows, _, err := compacttest.ReadBlock(blockio.NewReader(ctx, store, b.Key(tenant.Default), readAhead))
		if err != nil {
			return h, fmt.Errorf("read block %s: %w", b.ID, err)
		}
		h.blocks++
		h.bytes += b.Bytes
		for _, r := range rows {
			series := hashOf(r.Labels.String())
			for _, f := range r.Floats {
				h.content.add(series, f.T, math.Float64bits(f.V))
			}
			for _, x := range r.Hists {
				if x.H == nil {
					return h, fmt.Errorf("read block %s: %s has a float histogram, and the source none", b.ID, r.Labels)
				}
				h.content.add(series, x.T, hashOf(x.H.String()))
			}
		}
	}
	return h, nil
}

// compare returns an error unless the store holds exactly the samples of the source.
func (h held) compare(s *source) error {
	if h.content != s.content {
		return fmt.Errorf("the store has %s, the source %s", h.content, s.content)
	}
	return nil
}
