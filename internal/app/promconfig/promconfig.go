// Package promconfig reads Prometheus' configuration files and rule files, names what Promlake does
// not honour, and checks them as promtool does.
package promconfig

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/consul" // consul_sd_configs
	_ "github.com/prometheus/prometheus/discovery/dns"    // dns_sd_configs
	_ "github.com/prometheus/prometheus/discovery/file"   // file_sd_configs
	_ "github.com/prometheus/prometheus/discovery/http"   // http_sd_configs
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"

	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Config is a configuration file of Prometheus.
type Config struct {
	*config.Config
	// Scrapes are the scrape configurations of the file and of its scrape_config_files.
	Scrapes []*config.ScrapeConfig
	// Ignored names the settings of the file that have no effect in Promlake, sorted, each with the
	// reason.
	Ignored []string
	// OTLP is the section otlp, as its text has it; the zero value: there is none.
	OTLP yaml.Node
	// RuleTexts are rule files that are not read from the disk, by their path.
	RuleTexts map[string][]byte
}

// Load reads a configuration file. Paths in it are relative to its directory.
func Load(path string, logger *slog.Logger) (*Config, error) {
	return load(path, logger, true)
}

// load reads a configuration file, with or without its scrape_config_files.
func load(path string, logger *slog.Logger, others bool) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration (config.file): %w", err)
	}
	c, err := parse(text, filepath.Dir(path), logger, others)
	if err != nil {
		return nil, fmt.Errorf("parsing YAML file %s: %w", path, err)
	}
	return c, nil
}

// Parse reads the text of a configuration file. Paths in it are relative to dir.
func Parse(text []byte, dir string, logger *slog.Logger) (*Config, error) {
	return parse(text, dir, logger, true)
}

func parse(text []byte, dir string, logger *slog.Logger, others bool) (*Config, error) {
	cfg, err := config.Load(string(text), logger)
	if err != nil {
		return nil, explained(err)
	}
	cfg.SetDirectory(dir)
	scrapes := cfg.ScrapeConfigs
	if others {
		if scrapes, err = cfg.GetScrapeConfigs(); err != nil {
			return nil, explained(err)
		}
	}
	var sections struct {
		OTLP   yaml.Node
		Others map[string]any `yaml:",inline"`
	}
	if err := yaml.Unmarshal(text, &sections); err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	return &Config{Config: cfg, Scrapes: scrapes, Ignored: ignoredIn(sections.Others), OTLP: sections.OTLP}, nil
}

// unknownDiscovery is upstream's error for a service discovery that is not part of the program.
var unknownDiscovery = regexp.MustCompile(`field (\w+)_sd_configs not found`)

// discoveries are those of Prometheus that TAGS=all_sd adds. Other names, such as misspelled ones,
// are no discoveries.
var discoveries = strings.Fields("aws azure digitalocean docker dockerswarm ec2 ecs elasticache eureka gce hetzner ionos kubernetes kuma " +
	"lightsail linode marathon msk nerve nomad oci openstack outscale ovhcloud puppetdb rds scaleway serverset stackit triton uyuni vultr")

// explained adds to upstream's error what to do about the discoveries that it names.
func explained(err error) error {
	var absent []string
	for _, m := range unknownDiscovery.FindAllStringSubmatch(err.Error(), -1) {
		if name := m[1] + "_sd_configs"; slices.Contains(discoveries, m[1]) && !slices.Contains(absent, name) {
			absent = append(absent, name)
		}
	}
	if absent == nil {
		return err
	}
	return fmt.Errorf("%w: this program has no %s; build it with make build TAGS=all_sd, which adds all service discoveries of Prometheus, "+
		"or name the targets by file_sd_configs, http_sd_configs or dns_sd_configs", err, strings.Join(absent, ", "))
}

// reasons say why a setting has no effect, by its path in the file: a section, or a part of one.
var reasons = map[string]string{
	"remote_write":          "samples are stored in Promlake's store only",
	"remote_read":           "queries read Promlake's store only",
	"tracing":               "there is no tracing",
	"runtime":               "see --log.level and --memory-limit",
	"global.query_log_file": "there is no query log",
	"storage.exemplars":     "all exemplars are stored",
	tsdbPath:                "there is no TSDB; see --compactor.blocks-retention-period",
}

// tsdbPath is the path of the settings of the TSDB, of which only honoured has an effect.
const (
	tsdbPath = "storage.tsdb"
	honoured = "out_of_order_time_window"
)

// ignoredIn names the settings of a file that have no effect.
func ignoredIn(root map[string]any) (out []string) {
	for path, reason := range reasons {
		in, name := root, path
		if section, part, ok := strings.Cut(path, "."); ok {
			in, _ = root[section].(map[string]any)
			name = part
		}
		v, there := in[name]
		if parts, ok := v.(map[string]any); ok && path == tsdbPath {
			for part := range parts {
				if part != honoured {
					out = append(out, path+"."+part+": "+reason)
				}
			}
		} else if there {
			out = append(out, path+": "+reason)
		}
	}
	slices.Sort(out)
	return out
}

// Discoveries returns what discovers the targets of each job.
func (c *Config) Discoveries() map[string]discovery.Configs {
	out := map[string]discovery.Configs{}
	for _, s := range c.Scrapes {
		out[s.JobName] = s.ServiceDiscoveryConfigs
	}
	return out
}

// Alertmanagers returns what discovers the Alertmanagers of each set.
func (c *Config) Alertmanagers() map[string]discovery.Configs {
	out := map[string]discovery.Configs{}
	for name, a := range c.AlertingConfig.AlertmanagerConfigs.ToMap() {
		out[name] = a.ServiceDiscoveryConfigs
	}
	return out
}

// Without removes a scrape configuration.
func (c *Config) Without(job string) {
	is := func(s *config.ScrapeConfig) bool { return s.JobName == job }
	c.Scrapes = slices.DeleteFunc(c.Scrapes, is)
	c.ScrapeConfigs = slices.DeleteFunc(c.ScrapeConfigs, is)
}

// RulePaths returns the files that rule_files match now.
func (c *Config) RulePaths() ([]string, error) {
	var out []string
	for _, pattern := range c.RuleFiles {
		if _, ok := c.RuleTexts[pattern]; ok {
			out = append(out, pattern)
			continue
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("find rule files %s: %w", pattern, err)
		}
		out = append(out, files...)
	}
	return out, nil
}

// Rules checks rule files.
func (c *Checker) Rules(paths []string) Result { return c.rules(paths, model.UTF8Validation) }

func (c *Checker) rules(paths []string, scheme model.ValidationScheme) (r Result) {
	for _, path := range paths {
		c.say("Checking %s", path)
		groups, errs := ruletemplate.Limits{}.ParseFile(path, c.IgnoreUnknownFields, scheme, c.Parser, c.Logger)
		r.add(c.groupsOf(groups, errs))
		c.say("")
	}
	return r
}

func (c *Checker) groupsOf(groups *rulefmt.RuleGroups, errs []error) (r Result) {
	if len(errs) > 0 {
		c.complain("  FAILED:")
		for _, err := range errs {
			c.complain("%s", err)
		}
		return Result{Errors: true}
	}
	if twice := duplicates(groups); c.Lint.DuplicateRules && len(twice) > 0 {
		c.complain("  FAILED:\nlint error %d duplicate rule(s) found.", len(twice))
		for _, what := range twice {
			c.complain("%s", what)
		}
		c.complain("Might cause inconsistency while recording expressions")
		return Result{Lints: true}
	}
	n := 0
	for _, g := range groups.Groups {
		n += len(g.Rules)
	}
	c.say("  SUCCESS: %d rules found", n)
	return r
}

// duplicates describes the rules of a file that have the name and labels of another one, each once,
// by name and labels.
func duplicates(groups *rulefmt.RuleGroups) (out []string) {
	type rule struct {
		name   string
		labels labels.Labels
	}
	var all []rule
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			all = append(all, rule{cmp.Or(r.Alert, r.Record), rules.FromMaps(g.Labels, r.Labels)})
		}
	}
	compare := func(a, b rule) int {
		return cmp.Or(strings.Compare(a.name, b.name), labels.Compare(a.labels, b.labels))
	}
	slices.SortStableFunc(all, compare)
	for i := 1; i < len(all); i++ {
		if compare(all[i-1], all[i]) != 0 || i > 1 && compare(all[i-2], all[i]) == 0 {
			continue
		}
		what := "Metric: " + all[i].name + "\nLabel(s):"
		all[i].labels.Range(func(l labels.Label) { what += "\n\t" + l.Name + ": " + l.Value })
		out = append(out, what)
	}
	return out
}
