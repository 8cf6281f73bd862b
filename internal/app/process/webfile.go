package process

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v2"
)

// WebFile is the file of --web.config.file: TLS, client certificates, users and headers of a
// server, in the form of Prometheus
// (https://prometheus.io/docs/prometheus/latest/configuration/https). Certificates and users are
// read again when the files change.
type WebFile struct {
	Users bool // requests need the name and the password of a user

	path string
	tls  bool
}

// readWebFile reads a file; "" is none.
func readWebFile(path string) (WebFile, error) {
	if path == "" {
		return WebFile{}, nil
	}
	config, err := webConfig(path)
	if err != nil {
		return WebFile{}, fmt.Errorf("read --web.config.file: %w", err)
	}
	t := config.TLSConfig
	return WebFile{Users: len(config.Users) > 0, path: path, tls: t.TLSCert+t.TLSCertPath != ""}, nil
}

func webConfig(path string) (web.Config, error) {
	config := web.Config{TLSConfig: web.TLSConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13}}
	if err := web.Validate(path); err != nil {
		return config, fmt.Errorf("%s: %w", path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return config, err
	}
	err = yaml.Unmarshal(text, &config)
	config.TLSConfig.SetDirectory(filepath.Dir(path))
	return config, err
}

// TLS returns the configuration of TLS for a listener of a protocol, such as "h2"; nil without TLS.
func (f WebFile) TLS(protocol string) *tls.Config {
	if !f.tls {
		return nil
	}
	return &tls.Config{NextProtos: []string{protocol}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		file, err := webConfig(f.path)
		if err != nil {
			return nil, err
		}
		config, err := web.ConfigToTLSConfig(&file.TLSConfig)
		if err == nil {
			config.NextProtos = []string{protocol}
		}
		return config, err
	}}
}
