package flags

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"
	"github.com/alecthomas/units"
)

// bytesMapper reads a size in bytes into an integer field: 1048576, 1024KiB and 1MiB are equal.
type bytesMapper struct{}

// Decode implements kong.Mapper.
func (bytesMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("size", &text); err != nil {
		return err
	}
	n, err := ParseBytes(text)
	if err != nil {
		return err
	}
	if target.OverflowInt(n) {
		return fmt.Errorf("size %q: does not fit", text)
	}
	target.SetInt(n)
	return nil
}

// ParseBytes reads a size in bytes: a plain number, or one with a unit (KiB, MiB, GiB, TiB).
func ParseBytes(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	n, err := units.ParseBase2Bytes(text)
	if err != nil {
		return 0, fmt.Errorf("size %q: want bytes such as 1048576 or 64MiB", text)
	}
	return int64(n), nil
}
