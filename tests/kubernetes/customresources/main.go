// Command customresources reads JSON objects from the standard input, one a line. It fails if one
// is not of a kind below, or has a field that the type of its kind does not have.
package main

import (
	"bufio"
	"fmt"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

var kinds = map[meta.TypeMeta]func() any{
	{APIVersion: "gateway.networking.k8s.io/v1", Kind: "HTTPRoute"}:  func() any { return new(gateway.HTTPRoute) },
	{APIVersion: "monitoring.coreos.com/v1", Kind: "ServiceMonitor"}: func() any { return new(monitoring.ServiceMonitor) },
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal(lines.Bytes(), &kind); err != nil {
			return err
		}
		object, ok := kinds[kind]
		if !ok {
			return fmt.Errorf("unknown kind %s", kind.String())
		}
		if err := yaml.UnmarshalStrict(lines.Bytes(), object()); err != nil {
			return fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
	return lines.Err()
}
