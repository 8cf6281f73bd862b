//go:build !no_kubernetes_sd

package promconfig

import (
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes" // kubernetes_sd_configs

	promcommon "github.com/prometheus/common/config"
)

// kubernetesTLS returns the TLS settings of a discovery of Kubernetes, and none of others.
func kubernetesTLS(d discovery.Config) promcommon.TLSConfig {
	if k, ok := d.(*kubernetes.SDConfig); ok {
		return k.HTTPClientConfig.TLSConfig
	}
	return promcommon.TLSConfig{}
}
