package api

import (
	"fmt"
	"reflect"
	"unsafe"

	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// bare builds upstream's API from the values of its fields, by name; nil means the zero value.
// Upstream's constructor also builds an OpenAPI document, twice, which Promlake does not serve.
// That is most of the processor time from the start of a process to its first answer (93 of 115 ms,
// and 14 MB of memory), and no option turns it off. The fields are unexported, so bare sets them by
// reflection. It fails if the API of the version in go.mod has other fields, or of other types.
func bare(values map[string]any) (*v1.API, error) {
	api := &v1.API{}
	fields := reflect.ValueOf(api).Elem()
	if n := fields.NumField(); n != len(values) {
		return nil, fmt.Errorf("make upstream's API: it has %d fields, expected %d", n, len(values))
	}
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		value, known := values[name]
		if !known {
			return nil, fmt.Errorf("make upstream's API: no value for its field %s", name)
		}
		if value == nil {
			continue
		}
		field, v := fields.Field(i), reflect.ValueOf(value)
		if !v.Type().AssignableTo(field.Type()) {
			return nil, fmt.Errorf("make upstream's API: its field %s has type %s, not %s", name, field.Type(), v.Type())
		}
		reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(v)
	}
	return api, nil
}
