package auth

import "fmt"

// Access is a kind of request. The zero value is Read.
type Access uint8

const (
	// Read is reading a tenant's data.
	Read Access = iota
	// Write is adding to a tenant's data.
	Write
	// Admin is deleting a tenant's data, and changing its rules.
	Admin
	// Operate concerns the process and all of its tenants: metrics, compaction. It requires access
	// "admin" for tenants ["*"].
	Operate
	// Public is reading what holds no data, such as the page's scripts. It takes no token.
	Public
)

// names maps the names of kinds of access in a document.
var names = map[string]Access{"read": Read, "write": Write, "admin": Admin}

// parseAccess parses the name of a kind of access: read, write or admin.
func parseAccess(name string) (Access, error) {
	a, ok := names[name]
	if !ok {
		return 0, fmt.Errorf("access %q: want read, write or admin", name)
	}
	return a, nil
}

// String returns the name in a document of the access that a token needs for a.
func (a Access) String() string {
	switch a {
	case Read:
		return "read"
	case Write:
		return "write"
	case Admin, Operate:
		return "admin"
	case Public:
		return "none"
	default:
		return fmt.Sprintf("Access(%d)", uint8(a))
	}
}
