package rulestore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/promlake/promlake/internal/format/checksum"
)

// Encode returns the document of rules. Equal rules have equal bytes.
func Encode(r Rules) ([]byte, error) {
	if r.Namespaces == nil {
		r.Namespaces = []Namespace{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // expressions stay readable
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("encode rules: %w", err)
	}
	return checksum.Append(b.Bytes())
}

// Decode reads a document. It returns checksum.ErrDamaged for damaged bytes, and an error for a
// version that it does not know.
func Decode(b []byte) (Rules, error) {
	var r Rules
	if err := checksum.Unmarshal(b, &r); err != nil {
		return Rules{}, fmt.Errorf("decode rules: %w", err)
	}
	if r.Version != Version {
		return Rules{}, fmt.Errorf("decode rules: version %d, this program reads %d", r.Version, Version)
	}
	if err := r.check(); err != nil {
		return Rules{}, fmt.Errorf("decode rules: %w", err)
	}
	return r, nil
}

// check returns an error if the document is not as Set and Remove leave it.
func (r Rules) check() error {
	if !ascending(r.Namespaces, func(n Namespace) string { return n.Name }) {
		return errors.New("the namespaces are not in ascending order")
	}
	for _, n := range r.Namespaces {
		if len(n.Groups) == 0 {
			return fmt.Errorf("namespace %q has no groups", n.Name)
		}
		if !ascending(n.Groups, func(g Group) string { return g.Name }) {
			return fmt.Errorf("the groups of namespace %q are not in ascending order", n.Name)
		}
	}
	return nil
}

// ascending reports whether names ascend and differ.
func ascending[T any](all []T, name func(T) string) bool {
	for i := 1; i < len(all); i++ {
		if name(all[i-1]) >= name(all[i]) {
			return false
		}
	}
	return true
}
