package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/tenant"
)

// Version is the version of documents that this package reads and writes.
const Version = 1

// AnyTenant in an entry's place of a tenant stands for all of them.
const AnyTenant = "*"

// Document lists the tokens that are good. Its JSON is
//
//	{"version":1,"tokens":[{"sha256":"…","tenants":["team-a"],"access":["write","read"],"comment":"…"}]}
type Document struct {
	Version int     `json:"version"`
	Tokens  []Entry `json:"tokens"`
}

// Entry is what one token may do.
type Entry struct {
	SHA256  string   `json:"sha256"`            // of the token, 64 hexadecimal digits
	Tenants []string `json:"tenants"`           // their names, or AnyTenant alone
	Access  []string `json:"access"`            // of read, write, admin; none implies another
	Comment string   `json:"comment,omitempty"` // for people
}

// NewEntry returns the entry of a token. It fails if ParseDocument would refuse it.
func NewEntry(token string, tenants, access []string, comment string) (Entry, error) {
	e := Entry{SHA256: SumOf(token).String(), Tenants: tenants, Access: access, Comment: comment}
	_, err := e.grant()
	return e, err
}

// ParseDocument reads a document. It is strict: unknown, repeated and misspelt fields are errors,
// and so are entries that give nothing, for a document that is understood in part may open what it
// was meant to close. The error says which entry is wrong.
func ParseDocument(text []byte) (Document, error) {
	var d Document
	if err := strictJSON(text, &d); err != nil {
		return Document{}, fmt.Errorf("parse document of tokens: %w", err)
	}
	if d.Version != Version {
		return Document{}, fmt.Errorf("parse document of tokens: version %d, this program reads %d", d.Version, Version)
	}
	if _, err := d.grants(); err != nil {
		return Document{}, fmt.Errorf("parse document of tokens: %w", err)
	}
	return d, nil
}

// Text is the document as people read and change it: a line for each entry.
func (d Document) Text() ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "{\"version\":%d,\"tokens\":[", d.Version)
	for i, e := range d.Tokens {
		line, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("write entry %d: %w", i+1, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return []byte(b.String()), nil
}

// grant is an entry that was understood.
type grant struct {
	tenants []string // sorted; nil: any
	access  map[Access]bool
}

// grants returns what each token may do, by its sum.
func (d Document) grants() (map[Sum]*grant, error) {
	all := make(map[Sum]*grant, len(d.Tokens))
	where := make(map[Sum]int, len(d.Tokens))
	var errs []error
	for i, e := range d.Tokens {
		g, err := e.grant()
		if err != nil {
			errs = append(errs, fmt.Errorf("entry %d%s: %w", i+1, e.about(), err))
			continue
		}
		var sum Sum
		if err := sum.UnmarshalText([]byte(e.SHA256)); err != nil {
			return nil, err // grant read it
		}
		if first, ok := where[sum]; ok {
			errs = append(errs, fmt.Errorf("entry %d%s: has the token of entry %d", i+1, e.about(), first))
			continue
		}
		all[sum], where[sum] = g, i+1
	}
	return all, errors.Join(errs...)
}

// about is the comment as errors quote it.
func (e Entry) about() string {
	if e.Comment == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", e.Comment)
}

func (e Entry) grant() (*grant, error) {
	var sum Sum
	errs := []error{sum.UnmarshalText([]byte(e.SHA256))}
	if sum == SumOf("") {
		errs = append(errs, errors.New("sha256: is that of no text at all"))
	}
	g := &grant{access: map[Access]bool{}}
	if len(e.Tenants) == 0 {
		errs = append(errs, errors.New(`tenants: want at least one, or "*" for any`))
	}
	for i, name := range e.Tenants {
		errs = append(errs, checkTenant(name, len(e.Tenants)))
		if slices.Contains(e.Tenants[:i], name) {
			errs = append(errs, fmt.Errorf("tenants: %q stands twice", name))
		}
	}
	if !slices.Contains(e.Tenants, AnyTenant) {
		g.tenants = slices.Sorted(slices.Values(e.Tenants))
	}
	if len(e.Access) == 0 {
		errs = append(errs, errors.New("access: want at least one of read, write, admin"))
	}
	for _, name := range e.Access {
		a, err := ParseAccess(name)
		if err == nil && g.access[a] {
			err = fmt.Errorf("access: %q stands twice", name)
		}
		errs = append(errs, err)
		g.access[a] = true
	}
	return g, errors.Join(errs...)
}

func checkTenant(name string, of int) error {
	switch {
	case name == AnyTenant && of > 1:
		return errors.New(`tenants: "*" stands alone`)
	case name == AnyTenant:
		return nil
	case name == "":
		return fmt.Errorf("tenants: want a name, got nothing; requests without a tenant are %q", tenant.Default)
	}
	if _, err := tenant.Parse(name); err != nil {
		return fmt.Errorf("tenants: %w", err)
	}
	return nil
}
