package otlp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/otlptranslator"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// Settings decide which series a data point belongs to. Names and meaning are those of the section
// otlp of Prometheus' configuration
// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/), which the tags yaml
// read. The other tags are those of package settings.
type Settings struct {
	TranslationStrategy  string   `yaml:"translation_strategy" name:"otlp.translation-strategy" default:"UnderscoreEscapingWithSuffixes" enum:"UnderscoreEscapingWithSuffixes,UnderscoreEscapingWithoutSuffixes,NoUTF8EscapingWithSuffixes,NoTranslation" help:"How names of OTLP metrics and attributes become names of metrics and labels, one of ${enum}: with underscores instead of other characters or as they are, with unit and type as suffixes or without." when:"Before the first write, to keep OpenTelemetry's names or those of another system."`
	Promote              []string `yaml:"promote_resource_attributes" name:"otlp.promote-resource-attributes" placeholder:"ATTRIBUTE" help:"OTLP resource attributes that become labels of every series of the resource. The others are labels of target_info." when:"If queries need them without a join with target_info, such as k8s.namespace.name."`
	PromoteAll           bool     `yaml:"promote_all_resource_attributes" name:"otlp.promote-all-resource-attributes" default:"false" help:"Make all OTLP resource attributes labels of every series, except --otlp.ignore-resource-attributes." when:"If senders have few resource attributes and none that changes often."`
	Ignore               []string `yaml:"ignore_resource_attributes" name:"otlp.ignore-resource-attributes" placeholder:"ATTRIBUTE" help:"OTLP resource attributes that --otlp.promote-all-resource-attributes leaves out." when:"With --otlp.promote-all-resource-attributes, for attributes that change with each start, such as process.pid."`
	KeepIdentifying      bool     `yaml:"keep_identifying_resource_attributes" name:"otlp.keep-identifying-resource-attributes" default:"false" help:"Keep service.name, service.namespace and service.instance.id, which become job and instance, as labels of target_info too." when:"If queries join on them."`
	PromoteScopeMetadata bool     `yaml:"promote_scope_metadata" name:"otlp.promote-scope-metadata" default:"false" help:"Make name, version, schema URL and attributes of the instrumentation scope labels otel_scope_*." when:"If several scopes of a service write metrics of the same name."`
	NHCB                 bool     `yaml:"convert_histograms_to_nhcb" name:"otlp.convert-histograms-to-nhcb" default:"false" help:"Store explicit-bucket histograms as native histograms with custom buckets instead of _bucket, _count and _sum series." when:"For fewer series, if queries use native histograms."`
	TypeAndUnitLabels    bool     `yaml:"-" name:"otlp.enable-type-and-unit-labels" default:"false" help:"Add the labels __type__ and __unit__ to series." when:"With names without suffixes, to tell metrics of one name but different units apart."`
	KeyPrefix            bool     `yaml:"label_name_underscore_sanitization" name:"otlp.label-name-underscore-sanitization" negatable:"" default:"true" help:"Put key in front of label names that begin with one underscore." when:"Never, except to match an existing system."`
	Underscores          bool     `yaml:"label_name_preserve_multiple_underscores" name:"otlp.label-name-preserve-multiple-underscores" negatable:"" default:"true" help:"Keep several underscores in a row in label names." when:"Never, except to match an existing system."`
	NativeDelta          bool     `yaml:"-" name:"otlp.native-delta-ingestion" default:"false" help:"Store points with delta temporality as Prometheus' feature of this name does: without the label __temporality__, so that rate and increase do not know them." when:"Never, except to match an existing system."`
}

// Validate reports settings that contradict each other.
func (s *Settings) Validate() error {
	var errs []error
	if s.PromoteAll && len(s.Promote) > 0 {
		errs = append(errs, errors.New("otlp.promote-resource-attributes: has no effect with otlp.promote-all-resource-attributes, want one of them"))
	}
	if !s.PromoteAll && len(s.Ignore) > 0 {
		errs = append(errs, errors.New("otlp.ignore-resource-attributes: wants otlp.promote-all-resource-attributes"))
	}
	for i, a := range slices.Concat(s.Promote, s.Ignore) {
		if strings.TrimSpace(a) == "" || slices.Index(slices.Concat(s.Promote, s.Ignore), a) < i {
			errs = append(errs, fmt.Errorf("otlp resource attributes: %q is empty or named twice", a))
		}
	}
	return errors.Join(errs...)
}

// UTF8 reports whether names keep characters that Prometheus' legacy scheme does not allow.
func (s *Settings) UTF8() bool { return !s.strategy().ShouldEscape() }

func (s *Settings) strategy() otlptranslator.TranslationStrategyOption {
	return otlptranslator.TranslationStrategyOption(s.TranslationStrategy)
}

func (s *Settings) labelNamer() otlptranslator.LabelNamer {
	//lint:ignore SA1019 Prometheus has this setting, too
	return otlptranslator.LabelNamer{UTF8Allowed: s.UTF8(), UnderscoreLabelSanitization: s.KeyPrefix, PreserveMultipleUnderscores: s.Underscores}
}

// promotes reports whether a resource attribute becomes a label of every series. Space around an
// attribute of the settings does not count, as with Prometheus.
func (s *Settings) promotes(attribute string) bool {
	is := func(x string) bool { return strings.TrimSpace(x) == attribute }
	if s.PromoteAll {
		return !slices.ContainsFunc(s.Ignore, is)
	}
	return slices.ContainsFunc(s.Promote, is)
}

// family is a metric's name and unit in Prometheus' terms.
type family struct {
	name string
	unit string
	err  error // why it has no name
}

// The names of maxKnown metrics are kept, unless their texts are longer than maxKnownBytes.
const (
	maxKnown      = 10_000
	maxKnownBytes = 512
)

// names are the translated names of metrics. Translating one takes longer than decoding ten data
// points, and most requests have few points of each metric.
type names struct {
	namer otlptranslator.MetricNamer
	mu    sync.RWMutex
	known map[string]*family
}

// of returns the family of a metric.
func (n *names) of(m *metric) *family {
	var buf [maxKnownBytes + 8]byte
	size := len(m.name) + len(m.unit)
	if size > maxKnownBytes {
		return n.translate(m)
	}
	k := append(remotewrite.AppendKey(append(buf[:0], byte(m.kind)), m.unit), m.name...)
	n.mu.RLock()
	f := n.known[string(k)]
	n.mu.RUnlock()
	if f != nil {
		return f
	}
	f = n.translate(m)
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.known[string(k)]; old != nil {
		return old
	}
	if len(n.known) >= maxKnown {
		clear(n.known)
	}
	n.known[string(k)] = f
	return f
}

func (n *names) translate(m *metric) *family {
	units := otlptranslator.UnitNamer{}
	f := &family{unit: units.Build(string(m.unit))}
	f.name, f.err = n.namer.Build(otlptranslator.Metric{Name: string(m.name), Unit: string(m.unit), Type: m.kind.translated()})
	return f
}
