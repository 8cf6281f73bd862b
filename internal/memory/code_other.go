//go:build !linux

package memory

// Code is the machine code and constants of the program's file. It is known on Linux only.
type Code struct{}

// ProgramCode returns nothing.
func ProgramCode() (Code, error) { return Code{}, nil }

// Divide does nothing.
func (Code) Divide() error { return nil }

// Release does nothing.
func (Code) Release() error { return nil }
