package ingest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// extraLabels are the labels of the parameters extra_label=name=value of a request, as
// remotewrite.Rules has them. VictoriaMetrics defines them: they are added to every series, instead
// of its labels of the same name.
func extraLabels(r *http.Request, limits *remotewrite.Limits) ([]series.Label, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	var labels []series.Label
	for _, text := range r.URL.Query()["extra_label"] {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, errParameter{fmt.Errorf("extra_label: label %q must have the form name=value", text)}
		}
		labels = append(labels, series.Label{Name: name, Value: value})
	}
	labels, err := limits.CheckExtra(labels)
	if err != nil {
		return nil, errParameter{fmt.Errorf("extra_label: %w", err)}
	}
	return labels, nil
}
