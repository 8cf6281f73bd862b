//go:build all_sd

package promconfig

import _ "github.com/prometheus/prometheus/discovery/install" // all service discoveries of Prometheus
