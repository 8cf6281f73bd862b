package promconfig

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"go.yaml.in/yaml/v2"

	promcommon "github.com/prometheus/common/config"
)

// Lint says which doubtful things a check reports in addition to errors. Names are promtool's.
type Lint struct {
	DuplicateRules bool
	// Lookback is the lookback delta of queries: longer scrape intervals are reported. 0: none.
	Lookback time.Duration
}

// Checker checks files and prints what it finds: progress to Out, what is wrong to Err.
type Checker struct {
	Lint                Lint
	SyntaxOnly          bool // other files, such as certificates and rule files, need not exist
	IgnoreUnknownFields bool // of rule files
	Parser              parser.Parser
	Out, Err            io.Writer
	Logger              *slog.Logger
}

// Result is what a check found.
type Result struct {
	Errors bool // files that a server would refuse
	Lints  bool // doubtful things
}

func (r *Result) add(x Result) { r.Errors, r.Lints = r.Errors || x.Errors, r.Lints || x.Lints }

// say prints a line. An error of standard output cannot be reported.
func (c *Checker) say(format string, args ...any) { _, _ = fmt.Fprintf(c.Out, format+"\n", args...) }

// complain prints a line to Err.
func (c *Checker) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Err, format+"\n", args...)
}

func (c *Checker) fail(format string, args ...any) { c.complain("  FAILED: "+format, args...) }

// Config checks a configuration file and, unless only the syntax matters, all files that it names.
func (c *Checker) Config(path string) (r Result) {
	c.say("Checking %s", path)
	cfg, err := load(path, c.Logger, !c.SyntaxOnly)
	var files []string
	if err == nil && !c.SyntaxOnly {
		files, err = c.ruleFiles(cfg)
	}
	if err == nil {
		err = c.references(cfg)
	}
	if err != nil {
		c.fail("%s", err)
		c.say("")
		return Result{Errors: true}
	}
	for _, what := range cfg.Ignored {
		c.say("  WARNING: no effect: %s", what)
	}
	if len(files) > 0 {
		c.say("  SUCCESS: %d rule files found", len(files))
	}
	c.say(" SUCCESS: %s is valid prometheus config file syntax\n", path)
	if c.SyntaxOnly {
		return r
	}
	for _, s := range cfg.Scrapes {
		if c.Lint.Lookback > 0 && time.Duration(s.ScrapeInterval) >= c.Lint.Lookback {
			c.fail("too long scrape interval found, data point will be marked as stale - job: %s, interval: %s", s.JobName, s.ScrapeInterval)
			r.Lints = true
		}
	}
	r.add(c.rules(files, cfg.GlobalConfig.MetricNameValidationScheme))
	return r
}

// ruleFiles returns the rule files. A path without * must match a file, as in promtool.
func (c *Checker) ruleFiles(cfg *Config) ([]string, error) {
	for _, pattern := range cfg.RuleFiles {
		if strings.Contains(pattern, "*") {
			continue
		}
		if files, err := filepath.Glob(pattern); err == nil && len(files) == 0 {
			return nil, fmt.Errorf("%q does not point to an existing file", pattern)
		}
	}
	return cfg.RulePaths()
}

// references checks the targets of a configuration and, unless only the syntax matters, the files
// that it names.
func (c *Checker) references(cfg *Config) error {
	for _, s := range cfg.Scrapes {
		if err := c.client(s.HTTPClientConfig); err != nil {
			return err
		}
		err := c.groups(s.ServiceDiscoveryConfigs, fmt.Sprintf("scrape job %q", s.JobName), func(g *targetgroup.Group) error {
			_, failures := scrape.TargetsFromGroup(g, s, nil, labels.NewBuilder(labels.EmptyLabels()))
			if len(failures) == 0 {
				return nil
			}
			return failures[0]
		})
		if err != nil {
			return err
		}
	}
	for _, a := range cfg.AlertingConfig.AlertmanagerConfigs {
		if err := c.client(a.HTTPClientConfig); err != nil {
			return fmt.Errorf("alertmanager: %w", err)
		}
		err := c.groups(a.ServiceDiscoveryConfigs, "alertmanager config", func(g *targetgroup.Group) error {
			_, _, err := notifier.AlertmanagerFromGroup(g, a)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// groups calls check for the target groups that are known without asking anybody.
func (c *Checker) groups(configs discovery.Configs, owner string, check func(*targetgroup.Group) error) error {
	for _, d := range configs {
		switch d := d.(type) {
		case discovery.StaticConfig:
			for _, g := range d {
				if err := check(g); err != nil {
					return err
				}
			}
		case *file.SDConfig:
			if err := c.discovered(d, owner, check); err != nil {
				return err
			}
		default:
			// Checks often run outside of the cluster, where its CA and token do not exist. As in
			// promtool, only the client certificate must.
			if err := c.exist(certificate(kubernetesTLS(d))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Checker) discovered(d *file.SDConfig, owner string, check func(*targetgroup.Group) error) error {
	if c.SyntaxOnly {
		return nil
	}
	for _, pattern := range d.Files {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			c.say("  WARNING: file %q for file_sd in %s does not exist", pattern, owner)
		}
		for _, f := range files {
			var groups []*targetgroup.Group
			text, err := os.ReadFile(f)
			switch { // as upstream's discovery reads it
			case err != nil:
			case strings.EqualFold(filepath.Ext(f), ".json"):
				err = json.Unmarshal(text, &groups)
			default:
				err = yaml.UnmarshalStrict(text, &groups)
			}
			if err != nil {
				return fmt.Errorf("checking SD file %q: %w", f, err)
			}
			for i, g := range groups {
				if g == nil {
					return fmt.Errorf("checking SD file %q: nil target group item found (index %d)", f, i)
				}
				if err := check(g); err != nil {
					return fmt.Errorf("checking SD file %q: %w", f, err)
				}
			}
		}
	}
	return nil
}

// client checks the files of an HTTP client, in the order of promtool.
func (c *Checker) client(h promcommon.HTTPClientConfig) error {
	files := [][2]string{{"bearer token file", h.BearerTokenFile}}
	if h.Authorization != nil {
		files = append(files, [2]string{"authorization credentials or bearer token file", h.Authorization.CredentialsFile})
	}
	if h.BasicAuth != nil {
		files = append(files, [2]string{"password file", h.BasicAuth.PasswordFile}, [2]string{"username file", h.BasicAuth.UsernameFile})
	}
	files = append(files, certificate(h.TLSConfig)...)
	return c.exist(append(files, [2]string{"CA file", h.TLSConfig.CAFile}))
}

// certificate returns the files of a client certificate. Upstream has checked that it has a key.
func certificate(t promcommon.TLSConfig) [][2]string {
	return [][2]string{{"client cert file", t.CertFile}, {"client key file", t.KeyFile}}
}

// exist checks that files exist, unless only the syntax matters. Each has what it is and its path.
func (c *Checker) exist(files [][2]string) error {
	for _, f := range files {
		if c.SyntaxOnly || f[1] == "" {
			continue
		}
		if _, err := os.Stat(f[1]); err != nil {
			return fmt.Errorf("error checking %s %q: %w", f[0], f[1], err)
		}
	}
	return nil
}
