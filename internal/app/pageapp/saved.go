package pageapp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	// MaxSaved is how many dashboards a tenant may save.
	MaxSaved = 500
	// MaxSavedBytes is how large a dashboard that is saved may be.
	MaxSavedBytes = 1 << 20
	// MaxNameBytes is how long the name of a dashboard that is saved may be.
	MaxNameBytes = 80
)

// The names of limits in metrics.
const (
	limitCount = "dashboards"
	limitBytes = "bytes"
	limitName  = "name"
)

// Saved are the dashboards that tenants saved: each is an object of the store, which is replaced by
// compare-and-swap. A version is the ETag of the object.
type Saved struct {
	store objstore.Store
}

// storeError is an error of the store. It names objects, so only the log has it.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// checkName returns a *failure unless a dashboard of this name can be saved.
func checkName(name string) error {
	wrong := func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) }
	switch {
	case path.Ext(name) == ".json":
		return refuse(http.StatusMethodNotAllowed, "method_not_allowed", "dashboard %q: names that end in .json are those of files in the folder of --web.dashboards, which the server only reads: choose another name", name)
	case len(name) > MaxNameBytes:
		return limited(limitName, http.StatusBadRequest, "the name of the dashboard has %d bytes, the limit is %d", len(name), MaxNameBytes)
	case name == "" || name[0] == '.' || !utf8.ValidString(name) || strings.ContainsFunc(name, wrong):
		return refuse(http.StatusBadRequest, "bad_data", `name of a dashboard %q: want UTF-8 without control characters, / and \, that does not begin with a dot`, name)
	}
	return nil
}

// list appends the dashboards of a tenant, ordered by name.
func (s Saved) list(ctx context.Context, tenant string, out []Entry) ([]Entry, error) {
	for obj, err := range s.store.List(ctx, key.DashboardsPrefix(tenant), "") {
		if err != nil {
			return nil, storeError{fmt.Errorf("list dashboards of tenant %s: %w", tenant, err)}
		}
		if _, name, err := key.ParseDashboard(obj.Key); err == nil {
			out = append(out, Entry{Name: name, Title: name})
		}
	}
	return out, nil
}

// read returns a dashboard and its version. Errors wrap ErrNotFound if there is none of that name.
func (s Saved) read(ctx context.Context, tenant, name string) (content []byte, version string, err error) {
	if checkName(name) != nil {
		return nil, "", fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	content, obj, err := objstore.ReadAll(ctx, s.store, key.Dashboard(tenant, name))
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return nil, "", fmt.Errorf("%w: %q", ErrNotFound, name)
	case err != nil:
		return nil, "", storeError{fmt.Errorf("read dashboard %q of tenant %s: %w", name, tenant, err)}
	case !json.Valid(content):
		return nil, "", fmt.Errorf("dashboard %q is not JSON", name)
	}
	return content, obj.ETag, nil
}

// write saves a dashboard and returns its version. The put is the commit point.
func (s Saved) write(ctx context.Context, tenant, name string, content []byte, cond objstore.Condition) (version string, err error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	if err := json.Unmarshal(content, &map[string]json.RawMessage{}); err != nil {
		return "", refuse(http.StatusBadRequest, "bad_data", "dashboard %q is no JSON object: %w", name, err)
	}
	if cond.IfMatch == "" { // it may be a new one
		others := 0
		for obj, err := range s.store.List(ctx, key.DashboardsPrefix(tenant), "") {
			if err != nil {
				return "", storeError{fmt.Errorf("list dashboards of tenant %s: %w", tenant, err)}
			}
			if obj.Key != key.Dashboard(tenant, name) {
				others++
			}
		}
		if others >= MaxSaved {
			return "", limited(limitCount, http.StatusUnprocessableEntity, "the tenant has %d dashboards, the limit is %d: delete some", others, MaxSaved)
		}
	}
	version, err = s.store.Put(ctx, key.Dashboard(tenant, name), bytes.NewReader(content), cond)
	if errors.Is(err, objstore.ErrPrecondition) {
		// A store may repeat a put whose first answer was lost, and then find its own effect.
		if now, version, err := s.read(ctx, tenant, name); err == nil && bytes.Equal(now, content) {
			return version, nil
		}
	}
	switch {
	case errors.Is(err, objstore.ErrPrecondition) && cond.IfAbsent:
		return "", refuse(http.StatusPreconditionFailed, "conflict", "there is a dashboard %q already", name)
	case errors.Is(err, objstore.ErrPrecondition):
		return "", changed(name)
	case err != nil:
		return "", storeError{fmt.Errorf("save dashboard %q of tenant %s: %w", name, tenant, err)}
	}
	return version, nil
}

// remove deletes a dashboard. Stores delete without a condition, so it is checked before.
func (s Saved) remove(ctx context.Context, tenant, name string, cond objstore.Condition) error {
	if err := checkName(name); err != nil {
		return err
	}
	if cond != (objstore.Condition{}) {
		_, version, err := s.read(ctx, tenant, name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if version == "" || version != cond.IfMatch {
			return changed(name)
		}
	}
	if err := s.store.Delete(ctx, key.Dashboard(tenant, name)); err != nil {
		return storeError{fmt.Errorf("delete dashboard %q of tenant %s: %w", name, tenant, err)}
	}
	return nil
}

func changed(name string) error {
	return refuse(http.StatusPreconditionFailed, "conflict", "somebody else has saved or deleted the dashboard %q since you read it", name)
}

// etag writes a version as an ETag, and condition reads it from If-Match. Versions of some stores
// have quotes.
func etag(version string) string {
	return `"` + base64.RawURLEncoding.EncodeToString([]byte(version)) + `"`
}

// condition returns what If-Match and If-None-Match ask for. A proxy that compresses may have made
// the ETag a weak one.
func condition(h http.Header) (objstore.Condition, error) {
	match, none := h.Get("If-Match"), h.Get("If-None-Match")
	if match == "" && (none == "" || none == "*") {
		return objstore.Condition{IfAbsent: none == "*"}, nil
	}
	version, err := base64.RawURLEncoding.DecodeString(strings.Trim(strings.TrimPrefix(match, "W/"), `"`))
	if err != nil || len(version) == 0 || none != "" {
		return objstore.Condition{}, refuse(http.StatusBadRequest, "bad_data", "If-Match %q, If-None-Match %q: want one ETag that this server has sent, or If-None-Match: *", match, none)
	}
	return objstore.Condition{IfMatch: string(version)}, nil
}
