// Package orderedmap has the maps of the OpenAPI document, which hold nothing.
package orderedmap

// Map is a part of the document.
type Map[K comparable, V any] struct{}

// New returns a map.
func New[K comparable, V any]() *Map[K, V] { return nil }

// Set drops the value.
func (*Map[K, V]) Set(K, V) {}

// First returns nil: a map has no values.
func (*Map[K, V]) First() *Pair[K, V] { return nil }

// Pair is a key with its value.
type Pair[K comparable, V any] struct{}

// Next returns nil.
func (*Pair[K, V]) Next() *Pair[K, V] { return nil }

// Key returns no key.
func (*Pair[K, V]) Key() (k K) { return k }

// Value returns no value.
func (*Pair[K, V]) Value() (v V) { return v }
