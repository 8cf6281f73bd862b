package peer

import (
	"bytes"
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Families reads the page of metrics at url: metric families by name. It returns an error if a
// wanted family is missing.
func Families(ctx context.Context, url string, want ...string) (map[string]*dto.MetricFamily, error) {
	text, err := Get(ctx, url)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse metrics: %w", err)
	}
	for _, name := range want {
		if all[name] == nil {
			return nil, fmt.Errorf("parse metrics: %s is not among them", name)
		}
	}
	return all, nil
}
