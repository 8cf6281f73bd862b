package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/access/tenant"
)

// Version is the version of documents that this package reads and writes.
const Version = 1

// AnyTenant, as the only tenant of an entry, means all tenants.
const AnyTenant = "*"

// Document lists the valid tokens and principals. Its JSON is
//
//	{"version":1,"tokens":[
//	{"sha256":"…","tenants":["team-a"],"access":["write","read"],"comment":"…"},
//	{"principal":"arn:aws:iam::123456789012:role/x","tenants":["team-a"],"access":["write"]}]}
type Document struct {
	Version int     `json:"version"`
	Tokens  []Entry `json:"tokens"`
}

// Entry is what one token or one principal of AWS IAM allows. It has either SHA256 or Principal.
type Entry struct {
	SHA256    string   `json:"sha256,omitempty"`    // of the token, 64 hexadecimal digits
	Principal string   `json:"principal,omitempty"` // ARN of a role, a user or an account's root
	Tenants   []string `json:"tenants"`             // names, or only AnyTenant
	Access    []string `json:"access"`              // read, write, admin; none implies another
	Comment   string   `json:"comment,omitempty"`   // for people

	Allowance // of its queries
}

// Allowance is the list price in US dollars of what queries may take on a UTC day, and in a month.
// 0 is no limit. The tags are those of package settings.
type Allowance struct {
	Day   float64 `json:"max_query_dollars_per_day,omitempty" name:"query.max-dollars-per-day" default:"0" min:"0" help:"List price in US dollars of what the queries of a tenant may take on one UTC day: their requests to the store and their time in functions. Further queries of the day are refused. The runtime configuration sets it for single tenants. 0 means no limit." when:"In a service that several teams share."`
	Month float64 `json:"max_query_dollars_per_month,omitempty" name:"query.max-dollars-per-month" default:"0" min:"0" help:"Like --query.max-dollars-per-day, in one UTC month." when:"In a service that several teams share."`
}

// NewEntry returns the entry of a token. It fails if ParseDocument would reject the entry.
func NewEntry(token string, tenants, access []string, comment string) (Entry, error) {
	e := Entry{SHA256: SumOf(token), Tenants: tenants, Access: access, Comment: comment}
	_, err := e.grant()
	return e, err
}

// NewPrincipalEntry returns the entry of the role, user or account root with an ARN. It fails if
// ParseDocument would reject the entry.
func NewPrincipalEntry(arn string, tenants, access []string, comment string) (Entry, error) {
	e := Entry{Principal: arn, Tenants: tenants, Access: access, Comment: comment}
	_, err := e.grant()
	return e, err
}

// ParseDocument parses a document. It is strict, because a document that is understood only in part
// may allow what it was meant to forbid: unknown, repeated and misspelt fields are errors, and so
// are entries that allow nothing. The error names the invalid entries.
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

// Text formats the document for people: one line per entry.
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

// grant is a validated entry.
type grant struct {
	tenants []string // sorted; nil: any
	access  map[Access]bool
	entry   Entry // that it was made of
}

// who names what a grant is for in errors.
func (g *grant) who() string {
	if g.entry.Principal != "" {
		return "the principal " + g.entry.Principal
	}
	return "the token"
}

// grants returns the grants by the keys of their entries.
func (d Document) grants() (map[string]*grant, error) {
	all := make(map[string]*grant, len(d.Tokens))
	where := make(map[string]int, len(d.Tokens))
	var errs []error
	for i, e := range d.Tokens {
		g, err := e.grant()
		key, _ := e.key() // grant has checked it
		if first, ok := where[key]; ok && err == nil {
			err = fmt.Errorf("has the token or principal of entry %d", first)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("entry %d%s: %w", i+1, e.about(), err))
			continue
		}
		all[key], where[key] = g, i+1
	}
	return all, errors.Join(errs...)
}

// key returns the text by which requests find an entry: the sum of a token in lower case, or the
// ARN of a principal without the path of its name.
func (e Entry) key() (string, error) {
	switch {
	case e.Principal != "" && e.SHA256 != "":
		return "", errors.New("sha256 and principal: want one of them")
	case e.Principal != "":
		return principal(e.Principal)
	case !isSum(e.SHA256):
		return "", fmt.Errorf("sha256: want %d hexadecimal digits, got %d bytes of text", 2*sha256.Size, len(e.SHA256))
	}
	sum := strings.ToLower(e.SHA256)
	if sum == SumOf("") {
		return "", errors.New("sha256: is the hash of an empty token")
	}
	return sum, nil
}

// about returns the comment for error messages.
func (e Entry) about() string {
	if e.Comment == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", e.Comment)
}

func (e Entry) grant() (*grant, error) {
	_, err := e.key()
	errs := []error{err}
	g := &grant{access: map[Access]bool{}, entry: e}
	if len(e.Tenants) == 0 {
		errs = append(errs, errors.New(`tenants: want at least one, or "*" for any`))
	}
	for i, name := range e.Tenants {
		errs = append(errs, checkTenant(name, len(e.Tenants)))
		if slices.Contains(e.Tenants[:i], name) {
			errs = append(errs, fmt.Errorf("tenants: %q occurs twice", name))
		}
	}
	if !slices.Contains(e.Tenants, AnyTenant) {
		g.tenants = slices.Sorted(slices.Values(e.Tenants))
	}
	if !(e.Day >= 0 && e.Month >= 0) {
		errs = append(errs, errors.New("max_query_dollars_per_day, max_query_dollars_per_month: want 0 or more"))
	}
	if len(e.Access) == 0 {
		errs = append(errs, errors.New("access: want at least one of read, write, admin"))
	}
	for _, name := range e.Access {
		a, err := parseAccess(name)
		if err == nil && g.access[a] {
			err = fmt.Errorf("access: %q occurs twice", name)
		}
		errs = append(errs, err)
		g.access[a] = true
	}
	return g, errors.Join(errs...)
}

func checkTenant(name string, of int) error {
	switch {
	case name == AnyTenant && of > 1:
		return errors.New(`tenants: "*" must be the only one`)
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

// strictJSON decodes one JSON value. In addition to what encoding/json rejects, it rejects unknown
// fields, fields that differ in case, repeated fields of an object, and text after the value.
func strictJSON(text []byte, into any) error {
	if err := checkFields(json.NewDecoder(bytes.NewReader(text))); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the document")
	}
	return nil
}

// checkFields checks the fields of the objects in one value: encoding/json accepts repeated fields,
// and ignores the case of field names.
func checkFields(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	switch t {
	case json.Delim('['):
		for dec.More() {
			if err := checkFields(dec); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		seen := map[string]bool{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return fmt.Errorf("not JSON: %w", err)
			}
			field, _ := name.(string)
			if seen[field] {
				return fmt.Errorf("field %q occurs twice", field)
			}
			if field != string(bytes.ToLower([]byte(field))) {
				return fmt.Errorf("unknown field %q", field)
			}
			seen[field] = true
			if err := checkFields(dec); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	if _, err := dec.Token(); err != nil { // the closing bracket
		return fmt.Errorf("not JSON: %w", err)
	}
	return nil
}
