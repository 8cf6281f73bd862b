package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachLeaf calls f with every number, text and truth value below v, and where it is.
func eachLeaf(v reflect.Value, at string, f func(at string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachLeaf(v.Field(i), at+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachLeaf(v.Index(i), fmt.Sprintf("%s[%d]", at, i), f)
		}
	default:
		f(at, v)
	}
}

// TestEqual changes every value of a manifest with an entry of every kind, one at a time, and makes
// every list shorter.
func TestEqual(t *testing.T) {
	raw, err := os.ReadFile("testdata/manifest-v2.json")
	require.NoError(t, err)
	read := func() *Manifest {
		m := &Manifest{}
		require.NoError(t, json.Unmarshal(raw, m))
		return m
	}
	want, m := read(), read()
	require.True(t, m.equal(want))
	n := 0
	eachLeaf(reflect.ValueOf(m).Elem(), "", func(at string, v reflect.Value) {
		n++
		was := reflect.ValueOf(v.Interface())
		switch {
		case v.CanInt():
			v.SetInt(v.Int() + 1)
		case v.CanUint():
			v.SetUint(v.Uint() + 1)
		case v.Kind() == reflect.Bool:
			v.SetBool(!v.Bool())
		default:
			v.SetString(v.String() + "x")
		}
		require.False(t, m.equal(want), at)
		v.Set(was)
		require.True(t, m.equal(want), at)
	})
	require.Greater(t, n, 100)
	top := reflect.ValueOf(m).Elem()
	for i := range top.NumField() {
		l := top.Field(i)
		if l.Kind() != reflect.Slice {
			continue
		}
		name := top.Type().Field(i).Name
		require.NotZero(t, l.Len(), name)
		was := reflect.ValueOf(l.Interface())
		l.Set(l.Slice(0, l.Len()-1))
		require.False(t, m.equal(want), name)
		require.False(t, want.equal(m), name)
		l.Set(was)
	}
	m.Imports, want.Imports = []Import{}, nil
	require.True(t, m.equal(want), "JSON has no empty list")
}
