package flags

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/promlake/promlake/internal/base/settings"
)

// file reads settings from a YAML file: a mapping of flags' names to values, which are written as
// their arguments are, and lists of them for flags that can be repeated. It implements
// kong.Resolver.
type file struct {
	Path string `name:"settings.file" placeholder:"FILE" help:"YAML file with settings: a flag's name without its dashes, and its value. Default: promlake/promlake.yaml in $$XDG_CONFIG_HOME or ~/.config, or else /etc/promlake/promlake.yaml." when:"Set it to keep many settings in one place."`

	read   bool
	err    error // of the file as a whole
	values map[string]entry
}

// entry is the value of one key.
type entry struct {
	texts []string
	list  bool   // written as a list
	where string // file and line
}

// Validate implements kong.Resolver: it reports errors of the file as a whole.
func (f *file) Validate(*kong.Application) error { return f.err }

// Resolve implements kong.Resolver: it returns the file's value for a flag, or nil if the file has
// none or if the flag's environment variable is set.
func (f *file) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !f.read {
		f.read = true
		f.err = f.load(ctx)
	}
	e, ok := f.values[flag.Name]
	if _, inEnv := os.LookupEnv(settings.Env(flag.Name)); !ok || inEnv || !isSetting(flag) {
		return nil, nil
	}
	value := e.texts[0]
	switch {
	case !e.list:
	case flag.IsSlice():
		value = kong.JoinEscaped(e.texts, flag.Tag.Sep)
	case flag.IsMap():
		value = strings.Join(e.texts, ",")
	default:
		return nil, fmt.Errorf("%s: want one value, got a list", e.where)
	}
	// Kong reads the value again and does not know where it comes from.
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value})
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, reflect.New(flag.Target.Type()).Elem()); err != nil {
		return nil, fmt.Errorf("%s: %w", e.where, err)
	}
	return value, nil
}

// load reads the file that the flag or its variable names, if any.
func (f *file) load(ctx *kong.Context) error {
	var path string
	known := map[string]bool{}
	err := visit(ctx.Model.Node, func(_ *kong.Node, flag *kong.Flag) error {
		known[flag.Name] = known[flag.Name] || isSetting(flag)
		if flag.Name == SettingsFile {
			path = ctx.FlagValue(flag).(string)
		}
		return nil
	})
	if err != nil || path == "" {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	f.values, err = parseFile(path, text, known)
	return err
}

// defaultFile returns the settings file that a program reads without being told: the user's, or
// else the machine's; "" if there is none.
func defaultFile() string {
	paths := []string{"/etc/promlake/promlake.yaml"}
	if dir, err := os.UserConfigDir(); err == nil { // $XDG_CONFIG_HOME or ~/.config
		paths = []string{filepath.Join(dir, "promlake", "promlake.yaml"), paths[0]}
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// SettingsFile is the flag that names the file, and neither a key in it nor a setting.
const SettingsFile = "settings.file"

// parseFile returns the entries of a settings file. known are the settings of the program.
func parseFile(path string, text []byte, known map[string]bool) (map[string]entry, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // nothing but comments
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want one YAML document", path)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want lines such as query.timeout: 2m", path, root.Line)
	}
	values := map[string]entry{}
	for i := 0; i < len(root.Content); i += 2 {
		key, node := root.Content[i], root.Content[i+1]
		e := entry{where: fmt.Sprintf("%s:%d: %s", path, key.Line, key.Value)}
		if first, twice := values[key.Value]; twice {
			return nil, fmt.Errorf("%s: the key is there twice, first in %s", e.where, strings.TrimSuffix(first.where, ": "+key.Value))
		}
		if !known[key.Value] || key.Value == SettingsFile {
			return nil, fmt.Errorf("%s: no such setting", e.where)
		}
		elements := []*yaml.Node{node}
		if node.Kind == yaml.SequenceNode {
			elements, e.list = node.Content, true
		}
		for _, n := range elements {
			if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
				return nil, fmt.Errorf("%s: want a value or a list of values", e.where)
			}
			e.texts = append(e.texts, n.Value)
		}
		if e.texts == nil {
			e.texts = []string{""}
		}
		values[key.Value] = e
	}
	return values, nil
}
