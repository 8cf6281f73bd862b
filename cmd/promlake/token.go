package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/flags"
)

// The largest size of a parameter of AWS Systems Manager, in bytes, by its tier.
const (
	standardParameter = 4096
	advancedParameter = 8192
)

type tokenCmd struct {
	Tenant    []string `name:"tenant" required:"" placeholder:"NAME" help:"Tenants that the token is for; \"*\" is any."`
	Access    []string `name:"access" required:"" placeholder:"read,write,admin" help:"What it may do there."`
	Principal string   `name:"principal" placeholder:"ARN" help:"IAM role or user, or the root of an AWS account, that the entry is for instead of a new token. Functions on AWS identify it by the signature of a request."`
	Comment   string   `name:"comment" placeholder:"TEXT" help:"What the entry says about the token, for people."`
	Tokens    string   `name:"tokens" placeholder:"FILE" help:"Document that the entry is added to; it is made if it is missing. Otherwise the entry is printed."`
}

// Run creates a token and prints it, which is the only time, as the token is stored nowhere. For a
// principal it prints only the entry.
func (c *tokenCmd) Run(io flags.Streams) error {
	credential, newEntry, token := c.Principal, auth.NewPrincipalEntry, "" // a line
	if credential == "" {
		credential, newEntry = auth.NewToken(), auth.NewEntry
		token = credential + "\n"
	}
	entry, err := newEntry(credential, c.Tenant, c.Access, c.Comment)
	if err != nil {
		return err
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("write entry: %w", err)
	}
	if c.Tokens == "" {
		return io.Print("the entry", token+string(line)+"\n")
	}
	size, err := addEntry(c.Tokens, entry)
	if err != nil {
		return err
	}
	if note := sizeNote(size); note != "" {
		if _, err := fmt.Fprintln(io.Err, "note:", note); err != nil {
			return fmt.Errorf("print note: %w", err)
		}
	}
	return io.Print("the token", cmp.Or(token, string(line)+"\n"))
}

// sizeNote describes the parameters of AWS Systems Manager for which a document of size bytes is
// too large.
func sizeNote(size int) string {
	switch {
	case size > advancedParameter:
		return fmt.Sprintf("the document has %d bytes, more than the %d of any parameter of AWS Systems Manager: only a file holds it", size, advancedParameter)
	case size > standardParameter:
		return fmt.Sprintf("the document has %d bytes: of the parameters of AWS Systems Manager only an advanced one holds it", size)
	default:
		return ""
	}
}

// addEntry adds the entry to the document in a file and returns the document's size in bytes. A
// concurrent reader of the file sees either the old document or the new one.
func addEntry(path string, e auth.Entry) (int, error) {
	d := auth.Document{Version: auth.Version}
	mode := fs.FileMode(0o600)
	switch text, err := os.ReadFile(path); {
	case err == nil:
		if d, err = auth.ParseDocument(text); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return 0, fmt.Errorf("read mode of document: %w", err)
		}
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("read document: %w", err)
	}
	d.Tokens = append(d.Tokens, e)
	text, err := d.Text()
	if err == nil {
		_, err = auth.ParseDocument(text) // the document may have the principal
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return len(text), replaceFile(path, text, mode)
}

// replaceFile writes a temporary file in the directory of path and renames it to path.
func replaceFile(path string, text []byte, mode fs.FileMode) (err error) {
	// A link stays one, and its target is replaced.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write document: %w", err), os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
