//go:build enable_kubernetes_sd

package promconfig

import _ "github.com/prometheus/prometheus/discovery/kubernetes" // registers itself
