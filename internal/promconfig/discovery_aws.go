//go:build enable_aws_sd

package promconfig

import _ "github.com/prometheus/prometheus/discovery/aws" // registers itself
