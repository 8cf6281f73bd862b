// Package settings reads the tags of settings structs. A field that an operator may set carries
//
//	name:"query.max-samples"   the flag, the key in a settings file, and the base of the variable
//	default:"50000000"         in the notation of the flag; none: the zero value
//	min:"1" max:"100"          limits, in the same notation
//	above:"0"                the value must be more than zero
//	enum:"a,b"                 the valid texts
//	type:"bytes"               sizes such as 64MiB; type:"period": durations such as 30d, or a map
//	                           of them by tenant
//	help:"…" when:"…"          what it does, with its unit; when an operator should change it
//
// Structs nest. Zero stands for the default, except in a bool, and in a number that has
// no lower limit or min:"0".
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Tag is a field's tag, such as a reflect.StructTag. A key that is missing is "".
type Tag interface{ Get(key string) string }

// Default returns a T whose fields have the defaults of their tags.
func Default[T any]() T {
	var s T
	each(reflect.ValueOf(&s).Elem(), func(f reflect.StructField, v reflect.Value) { setDefault(f, v) })
	return s
}

// Fill gives each field of s, a pointer to a struct, its default where it has a zero that stands
// for the default.
func Fill(s any) {
	each(reflect.ValueOf(s).Elem(), func(f reflect.StructField, v reflect.Value) {
		if v.IsZero() && !zeroCounts(f.Tag, v) {
			setDefault(f, v)
		}
	})
}

// Check reports every field of s, a struct or a pointer to one, that is outside of its limits, by
// its name.
func Check(s any) error {
	var errs []error
	each(reflect.Indirect(reflect.ValueOf(s)), func(f reflect.StructField, v reflect.Value) {
		if f.Tag.Get("name") != "" {
			errs = append(errs, checkField(f.Tag, v))
		}
	})
	return errors.Join(errs...)
}

// CheckGiven is checkField for a value that an operator gave: a zero that only stands for the
// default is an error too.
func CheckGiven(tag Tag, v reflect.Value) error {
	if err := checkField(tag, v); err != nil {
		return err
	}
	if v.IsZero() && v.CanInt() && !zeroCounts(tag, v) {
		return outside(tag, "a number other than 0", v)
	}
	return nil
}

// checkField reports a field that is outside of its tag's limits.
func checkField(tag Tag, v reflect.Value) error {
	if choices := tag.Get("enum"); choices != "" && !slices.Contains(strings.Split(choices, ","), v.String()) {
		return outside(tag, "one of "+strings.ReplaceAll(choices, ",", ", "), v)
	}
	if v.Kind() == reflect.Map {
		for _, k := range v.MapKeys() {
			if v.MapIndex(k).Int() < 0 {
				return outside(tag, "0 or more", v)
			}
		}
	}
	for _, limit := range []struct {
		tag, want string
		met       func(order int) bool
	}{
		{"above", "more than ", func(order int) bool { return order > 0 }},
		{"min", "at least ", func(order int) bool { return order >= 0 }},
		{"max", "at most ", func(order int) bool { return order <= 0 }},
	} {
		text := tag.Get(limit.tag)
		if text == "" {
			continue
		}
		if order := compare(v, text, tag); !limit.met(order) {
			return outside(tag, limit.want+text, v)
		}
	}
	return nil
}

func outside(tag Tag, want string, v reflect.Value) error {
	got := Format(v, tag.Get("type"))
	if k := v.Kind(); k == reflect.String || k == reflect.Slice {
		got = fmt.Sprintf("%q", v.Interface())
	}
	return fmt.Errorf("%s: want %s, got %s", tag.Get("name"), want, got)
}

func setDefault(f reflect.StructField, v reflect.Value) {
	if text := f.Tag.Get("default"); text != "" {
		must(f.Tag, Parse(text, f.Tag.Get("type"), v))
	}
}

// must ends the program for a tag that is wrong, which every use of its struct finds.
func must(tag Tag, err error) {
	if err != nil {
		panic(fmt.Sprintf("tag %s: %v", tag, err))
	}
}

// zeroCounts reports whether the zero value of a field is a value of its own.
func zeroCounts(tag Tag, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool:
		return true
	case reflect.Int, reflect.Int64, reflect.Float64:
		return tag.Get("min") == "0" || tag.Get("min") == "" && tag.Get("above") == ""
	}
	return false
}

// compare returns -1, 0 or 1, as v is less than, equal to or more than a limit. The limits of a
// list are those of its length.
func compare(v reflect.Value, limit string, tag Tag) int {
	if v.Kind() == reflect.Slice {
		v = reflect.ValueOf(v.Len())
	}
	bound := reflect.New(v.Type()).Elem()
	must(tag, Parse(limit, tag.Get("type"), bound))
	if v.CanFloat() {
		return cmp.Compare(v.Float(), bound.Float())
	}
	return cmp.Compare(v.Int(), bound.Int())
}

// each calls f for every exported field that is not a struct.
func each(v reflect.Value, f func(reflect.StructField, reflect.Value)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch {
		case !field.IsExported():
		case field.Type.Kind() == reflect.Struct:
			each(v.Field(i), f)
		default:
			f(field, v.Field(i))
		}
	}
}
